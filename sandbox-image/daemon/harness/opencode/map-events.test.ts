// The mapping against recorded streams of the real OpenCode 1.18.33: golden files say what comes out.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { EVENT_DATA } from '#schema/events/envelope.ts';
import { createEventMapper, type Effect, type Frame } from './map-events.ts';
import { type TurnWatch, turnEndOf, watchEffect, watchTurn } from './turn-watch.ts';

const ROOT = 'ses_dd332dd6dffeCmRNuFw5erGRT9';
const folder = fileURLToPath(new URL('./golden/', import.meta.url));
const names = readdirSync(`${folder}recorded`).map((name) => name.replace('.ndjson', ''));

const recorded = (name: string): Frame[] =>
  readFileSync(`${folder}recorded/${name}.ndjson`, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Frame);

const effectsOf = (frames: readonly Frame[]): readonly Effect[] => {
  const mapper = createEventMapper(ROOT);
  return frames.flatMap((frame) => mapper.map(frame));
};

/** The prompt of a recording is its first user message of the root session. */
const promptOf = (effects: readonly Effect[]): string => {
  for (const effect of effects) if (effect.kind === 'message' && effect.role === 'user') return effect.id;
  return '';
};

const print = (effect: Effect): string => {
  if (effect.kind === 'emit') {
    const { type, threadId, data } = effect.event;
    return `${threadId === 'root' ? 'root' : 'child'} ${type} ${JSON.stringify(data)}`;
  }
  const { kind, ...rest } = effect;
  return `> ${kind} ${JSON.stringify(rest)}`;
};

describe('recorded streams', () => {
  for (const name of names) {
    it(`A141 maps the stream "${name}" to the product's events`, (t) => {
      const effects = effectsOf(recorded(name));
      const watch = effects.reduce<TurnWatch>(watchEffect, watchTurn(promptOf(effects)));
      const lines = [...effects.map(print), `= ${watch.phase} ${JSON.stringify(turnEndOf(watch))}`];
      t.assert.fileSnapshot(lines.join('\n'), `${folder}${name}.txt`, { serializers: [String] });
    });
  }

  it('emits only data that the event contract accepts', () => {
    for (const name of names) {
      for (const effect of effectsOf(recorded(name))) {
        if (effect.kind !== 'emit') continue;
        const { type, data } = effect.event;
        const result = EVENT_DATA[type].safeParse(data);
        assert.equal(result.error?.message, undefined, `${name}: ${type}`);
      }
    }
  });

  it('tells nothing twice when a stream is read again after a gap', () => {
    for (const name of names) {
      const mapper = createEventMapper(ROOT);
      const frames = recorded(name).filter(
        (frame) => frame.type.startsWith('message.') && !frame.type.endsWith('delta'),
      );
      const last = new Map<string, Frame>();
      for (const frame of frames) {
        const properties = frame.properties as { info?: { id: string }; part?: { id: string } };
        last.set(properties.info?.id ?? properties.part?.id ?? '', frame);
        mapper.map(frame);
      }
      const again = [...last.values()].flatMap((frame) => mapper.map(frame));
      assert.deepEqual(again, [], name);
    }
  });

  it('ends each tool call exactly once', () => {
    for (const name of names) {
      const ends = effectsOf(recorded(name)).flatMap((effect) =>
        effect.kind === 'emit' && effect.event.type === 'tool.terminal' ? [effect.event.data.callId] : [],
      );
      assert.equal(new Set(ends).size, ends.length, name);
    }
  });
});

describe('createEventMapper', () => {
  it('says nothing of sessions that are not below the root', () => {
    const frames = recorded('text').map(
      (frame) => JSON.parse(JSON.stringify(frame).replaceAll(ROOT, 'ses_other')) as Frame,
    );
    assert.deepEqual(effectsOf(frames), []);
  });

  it('reads an absent or wrong property as nothing, never as an error', () => {
    const mapper = createEventMapper(ROOT);
    for (const type of new Set(names.flatMap((name) => recorded(name).map((frame) => frame.type)))) {
      assert.doesNotThrow(() => mapper.map({ type, properties: { sessionID: ROOT } }), type);
      assert.doesNotThrow(() => mapper.map({ type, properties: {} }), type);
      const wrong = { sessionID: ROOT, info: 7, part: 'x', status: null, error: [], id: {}, todos: 1 };
      assert.doesNotThrow(() => mapper.map({ type, properties: wrong }), type);
    }
  });
});
