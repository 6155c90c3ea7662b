// What a call says and how it ends that waits for the turn of one prompt.
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import type { PromptView } from '#schema/rest/prompts.ts';
import type { Api } from './connection/api.ts';
import { CommandError, EXIT } from './failure.ts';
import type { Io } from './io.ts';
import { secondsOf, sendAndWatch } from './send-prompt.ts';

const SESSION = { namespace: 'team', name: 'fix' };
const FAILED = {
  ...SESSION,
  ready: 'False',
  phase: 'Failed',
  readyReason: 'Failed',
  spec: {},
  status: { phase: 'Failed', conditions: [{ type: 'Ready', status: 'False', reason: 'Failed', message: 'no room' }] },
};

/** A control plane with a session in which nothing runs: its log is empty and stays open until the reader leaves. */
const silentApi = (): Api => {
  const client = {
    call: async () => ({ body: FAILED }),
    sse: async (_route: unknown, { query }: { query: { since?: number } }, { signal }: { signal: AbortSignal }) =>
      (async function* () {
        if (query.since === 0) yield { event: 'hello', data: { sessionUid: 'u', firstSeq: 1, headSeq: 7 } };
        await new Promise<void>((resolve) => {
          if (signal.aborted) resolve();
          signal.addEventListener('abort', () => resolve());
        });
      })(),
  };
  return { client: async () => client } as unknown as Api;
};

const ioOf = (stdin: boolean): Io =>
  ({ stdout: new PassThrough(), isTerminal: { stdin, stdout: stdin }, onInterrupt: () => () => {} }) as unknown as Io;

const prompt = { id: 'p1', deliveryReason: null } as PromptView;

test('A239 a wait for a turn ends with --timeout as other waits do, and the prompt stays', async () => {
  const notes: string[] = [];
  const note = (line: string) => notes.push(line);
  await assert.rejects(
    sendAndWatch(silentApi(), SESSION, async () => prompt, { io: ioOf(false), note, seconds: 0 }),
    (error) =>
      error instanceof CommandError &&
      error.exitCode === EXIT.unavailable &&
      /prompt p1 is not over after 0 s/.test(error.message) &&
      /beeuni sessions log team\/fix --follow/.test(error.hint ?? ''),
  );
});

test('A239 a call says once how a wait is left where nothing runs', async () => {
  const notes: string[] = [];
  let leave = (): void => {};
  const io: Io = {
    ...ioOf(false),
    onInterrupt: (react) => {
      leave = () => {
        react();
        react();
      };
      return () => {};
    },
  };
  const note = (line: string): void => {
    notes.push(line);
    if (line === 'leave so') leave();
  };
  assert.equal(
    await sendAndWatch(silentApi(), SESSION, async () => prompt, { io, note, leaveHint: 'leave so' }),
    EXIT.interrupted,
  );
  assert.match(notes[0] ?? '', /session fix has failed: no room/);
  assert.equal(notes.filter((line) => line === 'leave so').length, 1, notes.join('\n'));
});

test('--timeout takes whole seconds', () => {
  assert.deepEqual([secondsOf(undefined), secondsOf('30')], [undefined, 30]);
  for (const text of ['', '-1', '1.5', 'soon', '999999']) assert.throws(() => secondsOf(text), CommandError, text);
});
