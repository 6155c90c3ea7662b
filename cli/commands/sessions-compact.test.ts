// What a compaction says when it is over, with something to leave out and without.
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import type { Call } from '../command.ts';
import { command } from './sessions-compact.ts';

const at = { sessionUid: 's', runId: null, threadId: 'root', turnId: 't', at: '2026-11-30T12:00:00.000Z' };
const event = (seq: number, type: string, data: Record<string, unknown>) => ({
  event: type,
  data: { ...at, id: `e${seq}`, seq, type, data, hidden: false, causedBy: null },
});

/** What is printed of a compaction whose turn has these events before its end. */
const said = async (...types: readonly string[]): Promise<string> => {
  const ended = { promptId: 'p1', outcome: 'Succeeded', code: null, message: null, summary: null, commit: null };
  const events = [...types.map((type, n) => event(n + 1, type, { auto: false })), event(9, 'turn.ended', ended)];
  const client = {
    call: async () => ({ body: { id: 'p1', deliveryReason: null, ready: 'True', name: 'fix', spec: {}, status: {} } }),
    sse: async () =>
      (async function* () {
        yield { event: 'hello', data: { sessionUid: 's', firstSeq: 0, headSeq: 0 } };
        yield* events;
      })(),
  };
  let text = '';
  const stdout = new PassThrough().setEncoding('utf8').on('data', (more: string) => {
    text += more;
  });
  const call = {
    api: { client: async () => client, nameOf: (name: string) => ({ namespace: 'team', name }) },
    args: ['fix'],
    io: { stdout, onInterrupt: () => () => {} },
    note: (line: string) => {
      text += `${line}\n`;
    },
  };
  assert.equal(await command.run(call as unknown as Call<Record<string, never>>), 0);
  return text;
};

test('A135 J18 a compaction says that it was done, or that there was nothing to summarise', async () => {
  assert.equal(await said('session.compacted'), '-- the conversation was summarised\n');
  assert.equal(await said(), 'nothing to summarise: the conversation stays as it is\n');
});
