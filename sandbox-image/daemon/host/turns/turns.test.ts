// Turns with a scripted harness: exactly one terminal event per turn, in every path.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createLogger } from '#base/log.ts';
import type { Harness, TurnEnd } from '#daemon/harness/contract/adapter.ts';
import type { Turn } from '#schema/wire/turns.ts';
import { manualClock } from '#test/support/manual-clock.ts';
import { createTurns, type TurnsPorts, verdictOf } from './turns.ts';

const aTurn = (turnId: string): Turn => ({
  turnId,
  promptId: `prompt-of-${turnId}`,
  messageId: 'm',
  parts: [{ type: 'text', text: 'do it' }],
  agent: null,
  model: null,
});

const aRig = (submit: Harness['submit'], ports: Partial<TurnsPorts> = {}) => {
  const clock = manualClock();
  const inbox: Turn[] = [];
  const told: string[] = [];
  const state = { ready: true, onBranch: true, pushes: 0 };
  const turns = createTurns({
    takeNextTurn: async () => inbox.shift() ?? null,
    harness: {
      health: () => ({ version: null, state: state.ready ? 'ok' : 'down', error: null, sessionId: null, details: {} }),
      submit,
      stop: async () => {},
      optional: {},
    },
    harnessId: 'scripted',
    branch: 'b',
    defaults: { agent: 'dev', model: 'a/b' },
    workspace: {
      head: async () => 'c1',
      commitsSince: async () => [],
      push: async () => void (state.pushes += 1),
      onBranch: async () => state.onBranch,
    },
    emit: (event, place) =>
      told.push(
        `${place.turnId} ${event.type}${event.type === 'turn.ended' ? ` ${event.data.outcome} ${event.data.code}` : ''}`,
      ),
    flush: async () => true,
    closeRequests: () => {},
    redact: (text) => text,
    onChange: () => {},
    clock,
    random: () => 0,
    log: createLogger({ level: 'error', write: () => {} }),
    ...ports,
  });
  const ends = () => told.filter((line) => line.includes('turn.ended'));
  return { turns, clock, inbox, told, state, ends };
};

const until = (signal: AbortSignal): Promise<TurnEnd> =>
  new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve({ kind: 'aborted' }), { once: true });
  });

describe('createTurns', () => {
  it('D17 runs waiting prompts one after the other, each with one start and one end', async () => {
    const { turns, inbox, told, state, clock } = aRig(async () => ({ kind: 'completed' }));
    inbox.push(aTurn('1'), aTurn('2'));
    turns.poke();
    turns.poke();
    await clock.advance(0);
    assert.deepEqual(
      told.filter((line) => line.includes('turn.')),
      ['1 turn.started', '1 turn.ended Succeeded null', '2 turn.started', '2 turn.ended Succeeded null'],
    );
    assert.equal(state.pushes, 2);
    assert.equal(turns.activity().turnId, null);
  });

  it('D17 ends the turn when the adapter throws', async () => {
    const { turns, inbox, ends, clock } = aRig(async () => {
      throw new Error('bug');
    });
    inbox.push(aTurn('1'));
    turns.poke();
    await clock.advance(0);
    assert.deepEqual(ends(), ['1 turn.ended Failed unknown']);
  });

  it('aborts only the turn that is named, once', async () => {
    const { turns, inbox, ends, clock } = aRig((_turn, signal) => until(signal));
    inbox.push(aTurn('1'));
    turns.poke();
    await clock.advance(0);
    assert.equal(turns.abort('asked', 'other'), false);
    assert.equal(turns.abort('asked', '1'), true);
    await clock.advance(0);
    assert.deepEqual(ends(), ['1 turn.ended Aborted aborted']);
    assert.equal(turns.abort('asked'), false);
  });

  it('K17 gives a turn its time, then ends it as interrupted, and takes no further prompt', async () => {
    const { turns, inbox, ends, clock } = aRig((_turn, signal) => until(signal));
    inbox.push(aTurn('1'), aTurn('2'));
    turns.poke();
    await clock.advance(0);
    let drained = false;
    void turns.drain(60_000, 'sandbox').then(() => void (drained = true));
    await clock.advance(59_999);
    assert.deepEqual([drained, ends()], [false, []]);
    await clock.advance(1);
    assert.deepEqual([drained, ends()], [true, ['1 turn.ended Interrupted sandbox_lost']]);
    turns.poke();
    await clock.advance(0);
    assert.equal(inbox.length, 1);
  });

  it('K17 ends a prompt that was being taken when the drain began', async () => {
    const taking = Promise.withResolvers<Turn | null>();
    const { turns, ends, clock } = aRig(
      (_turn, signal) => (signal.aborted ? Promise.resolve({ kind: 'aborted' }) : until(signal)),
      {
        takeNextTurn: () => taking.promise,
      },
    );
    turns.poke();
    await clock.advance(0);
    const drained = turns.drain(0, 'asked');
    taking.resolve(aTurn('1'));
    await drained;
    assert.deepEqual(ends(), ['1 turn.ended Aborted aborted']);
  });

  it('does not run a prompt again that it has ended', async () => {
    let given = 0;
    const { turns, ends, clock } = aRig(async () => ({ kind: 'completed' }), {
      takeNextTurn: async () => {
        given += 1;
        return given <= 3 ? aTurn('1') : null;
      },
    });
    turns.poke();
    await clock.advance(60_000);
    assert.deepEqual(ends(), ['1 turn.ended Succeeded null']);
  });

  it('A22 takes no prompt while the session branch is not checked out or the harness is not ready', async () => {
    const { turns, inbox, told, state, clock } = aRig(async () => ({ kind: 'completed' }));
    inbox.push(aTurn('1'));
    state.onBranch = false;
    turns.poke();
    await clock.advance(0);
    state.onBranch = true;
    state.ready = false;
    turns.poke();
    await clock.advance(0);
    assert.deepEqual(told, []);
    state.ready = true;
    turns.poke();
    await clock.advance(0);
    assert.equal(inbox.length, 0);
  });

  it('takes no new prompt before the end of the last one is stored', async () => {
    let stored = false;
    let taken = 0;
    const { turns, clock } = aRig(async () => ({ kind: 'completed' }), {
      flush: async () => stored,
      takeNextTurn: async () => {
        taken += 1;
        return null;
      },
    });
    turns.poke();
    await clock.advance(5_000);
    assert.equal(taken, 0);
    stored = true;
    await clock.advance(6_000);
    assert.equal(taken, 1);
  });
});

describe('what else turns do', () => {
  const steered = (promptId: string) => ({ promptId, messageId: `m-${promptId}`, parts: [] });

  it('does work only while nothing runs, and nothing begins meanwhile', async () => {
    const { turns, inbox, told, clock } = aRig((_turn, signal) => until(signal));
    const working = Promise.withResolvers<number>();
    const work = turns.whileIdle(() => working.promise);
    inbox.push(aTurn('1'));
    turns.poke();
    await clock.advance(0);
    assert.deepEqual(told, []);
    const second = turns.whileIdle(async () => 2);
    working.resolve(1);
    assert.deepEqual(await work, { value: 1 });
    assert.equal(await second, undefined, 'the prompt that waited came first');
    await clock.advance(0);
    assert.deepEqual(turns.activity().turnId, '1');
    assert.equal(await turns.whileIdle(async () => 3), undefined);
  });

  it('waits for the push of a turn that has its end, but not for ever', async () => {
    const pushed = Promise.withResolvers<void>();
    const { turns, inbox, ends, clock } = aRig(async () => ({ kind: 'completed' }), {
      workspace: {
        head: async () => 'c1',
        commitsSince: async () => [],
        push: () => pushed.promise,
        onBranch: async () => true,
      },
    });
    inbox.push(aTurn('1'));
    turns.poke();
    await clock.advance(0);
    assert.equal(ends().length, 1);
    const early = turns.whileIdle(async () => 'early');
    await clock.advance(15_000);
    assert.equal(await early, undefined);
    const late = turns.whileIdle(async () => 'late');
    await clock.advance(1_000);
    pushed.resolve();
    await clock.advance(0);
    assert.deepEqual(await late, { value: 'late' });
  });

  it('goes on after work that failed', async () => {
    const { turns, inbox, ends, clock } = aRig(async () => ({ kind: 'completed' }));
    await assert.rejects(
      turns.whileIdle(async () => Promise.reject(new Error('no'))),
      /no/,
    );
    inbox.push(aTurn('1'));
    turns.poke();
    await clock.advance(0);
    assert.equal(ends().length, 1);
  });

  it('A146 A154 lets a prompt join the running turn once, however often it comes, and tells it', async () => {
    const { turns, inbox, told, clock } = aRig((_turn, signal) => until(signal));
    let sent = 0;
    const send = async (): Promise<boolean> => (sent += 1) > 0;
    assert.equal(await turns.join(steered('p9'), send), undefined);
    inbox.push(aTurn('1'));
    turns.poke();
    await clock.advance(0);
    assert.deepEqual(await Promise.all([turns.join(steered('p9'), send), turns.join(steered('p9'), send)]), ['1', '1']);
    assert.equal(await turns.join(steered('p9'), send), '1');
    assert.deepEqual([sent, told.filter((line) => line.includes('prompt.steered')).length], [1, 1]);
    assert.equal(await turns.join(steered('prompt-of-1'), send), undefined, 'no prompt joins its own turn');
    assert.equal(await turns.join(steered('p8'), async () => false), undefined);
    assert.equal(await turns.join({ ...steered('p8'), turnId: '0' }, send), undefined, 'another turn was meant');
    assert.equal(await turns.join({ ...steered('p8'), turnId: '1' }, send), '1');
    turns.abort('asked');
    assert.equal(await turns.join(steered('p7'), send), undefined);
  });

  it('A24 tells how a turn stands, and "do not know" of a message that it never had', async () => {
    let stored = false;
    const { turns, inbox, clock } = aRig((_turn, signal) => until(signal), {
      flush: async () => stored || inbox.length > 0,
    });
    assert.deepEqual(turns.standing(), { in_flight: false, end: null, orphaned_prompt: null });
    inbox.push(aTurn('1'));
    turns.poke();
    await clock.advance(0);
    assert.deepEqual(turns.standing(), { in_flight: true, end: null, orphaned_prompt: null });
    assert.deepEqual(turns.standing('m-other'), { in_flight: null, end: null, orphaned_prompt: null });
    const { messageId } = aTurn('1');
    turns.abort('asked');
    await clock.advance(0);
    assert.deepEqual(turns.standing(messageId), { in_flight: false, end: 'Aborted', orphaned_prompt: messageId });
    stored = true;
    await clock.advance(10_000);
    assert.deepEqual(turns.standing(), { in_flight: false, end: 'Aborted', orphaned_prompt: null });
  });
});

describe('verdictOf', () => {
  it('A142 keeps the code of a failure and tells an abort from a lost sandbox', () => {
    assert.equal(verdictOf({ kind: 'failed', code: 'credits', message: 'x' }, undefined).code, 'credits');
    assert.equal(verdictOf({ kind: 'aborted' }, 'asked').outcome, 'Aborted');
    assert.equal(verdictOf({ kind: 'aborted' }, 'sandbox').outcome, 'Interrupted');
    assert.equal(verdictOf({ kind: 'completed' }, 'asked').outcome, 'Succeeded');
  });

  it('A142 names the model in an error that is about one, once, and in no other', () => {
    const said = (code: 'unknown_model' | 'harness_died', message: string, model: string | null) =>
      verdictOf({ kind: 'failed', code, message }, undefined, model).message;
    assert.equal(said('unknown_model', 'no such model', 'acme/large-4'), 'no such model (model acme/large-4)');
    assert.equal(said('unknown_model', 'acme/large-4 is gone', 'acme/large-4'), 'acme/large-4 is gone');
    assert.equal(said('unknown_model', 'no such model', null), 'no such model');
    assert.equal(said('harness_died', 'it died', 'acme/large-4'), 'it died');
    const long = said('unknown_model', 'x'.repeat(2_000), 'acme/large-4') ?? '';
    assert.deepEqual([long.length, long.endsWith(' (model acme/large-4)')], [1_024, true]);
  });
});
