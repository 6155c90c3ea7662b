// Which part of a harness runs a turn, and what a turn gets that nobody can run.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PromptTurn, TurnEnd } from '#daemon/harness/contract/adapter.ts';
import type { OptionalMembers } from '#daemon/harness/contract/capabilities.ts';
import type { Turn } from '#schema/wire/turns.ts';
import { runTurn } from './run-turn.ts';

const DONE: TurnEnd = { kind: 'completed' };

const run = async (parts: Turn['parts'], optional: OptionalMembers | 'all' = 'all') => {
  const seen: unknown[] = [];
  const all: OptionalMembers = {
    compact: async () => (seen.push('compact'), DONE),
    commands: { list: async () => [], run: async (_turn, name, text) => (seen.push(`/${name} ${text}`), DONE) },
    shell: async (_turn, command) => (seen.push(`$ ${command}`), DONE),
  };
  const harness = {
    submit: async (turn: PromptTurn) => (seen.push(turn.parts.map((part) => part.text)), DONE),
    optional: optional === 'all' ? all : optional,
  };
  const turn = { turnId: 't', promptId: 'p', messageId: 'm', parts, agent: null, model: null };
  return { seen, end: await runTurn(harness, turn, new AbortController().signal) };
};

describe('runTurn', () => {
  it('brings each kind of turn to the member that runs it', async () => {
    const ran = async (parts: Turn['parts']) => (await run(parts)).seen;
    assert.deepEqual(
      await ran([
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
      ]),
      [['a', 'b']],
    );
    assert.deepEqual(await ran([{ type: 'command', name: 'greet', arguments: 'Bea' }]), ['/greet Bea']);
    assert.deepEqual(await ran([{ type: 'shell', command: 'ls' }]), ['$ ls']);
    assert.deepEqual(await ran([{ type: 'compact' }]), ['compact']);
  });

  it('A64 ends a turn that the harness cannot run, and names the capability', async () => {
    for (const [part, capability] of [
      [{ type: 'compact' }, 'session.compact'],
      [{ type: 'shell', command: 'ls' }, 'session.shell'],
      [{ type: 'command', name: 'x', arguments: '' }, 'session.commands'],
    ] as const) {
      const { end } = await run([part], {});
      assert.deepEqual(end, {
        kind: 'failed',
        code: 'feature_not_supported',
        message: `this harness does not offer ${capability}`,
      });
    }
  });

  it('runs nothing of a turn that mixes what stands alone', async () => {
    const { seen, end } = await run([{ type: 'text', text: 'a' }, { type: 'compact' }]);
    assert.deepEqual([seen, end.kind], [[], 'failed']);
    assert.equal((await run([{ type: 'compact' }, { type: 'compact' }])).end.kind, 'failed');
  });
});
