// Which calls are sent again.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeRetryingFetch } from './retrying-fetch.ts';

const scripted = (statuses: readonly number[], token = 'new') => {
  const sent: (string | null)[] = [];
  const waits: number[] = [];
  const send = makeRetryingFetch({
    fetch: async (_input, init) => {
      sent.push(new Headers(init?.headers).get('authorization'));
      return new Response('{}', { status: statuses[sent.length - 1] ?? 200 });
    },
    newToken: async () => (token === '' ? undefined : token),
    wait: async (ms) => waits.push(ms),
  });
  const call = async (method: string): Promise<number> =>
    (await send('http://x/', { method, headers: { authorization: 'old' } })).status;
  return { call, sent, waits };
};

test('A199 a read is tried twice more on 502, 503 and 504, after 250 and 500 ms', async () => {
  const { call, sent, waits } = scripted([503, 502, 200]);
  assert.deepEqual([await call('GET'), sent.length, waits], [200, 3, [250, 500]]);
  const gone = scripted([504, 504, 504, 200]);
  assert.deepEqual([await gone.call('GET'), gone.sent.length], [504, 3]);
  const other = scripted([500, 200]);
  assert.deepEqual([await other.call('GET'), other.sent.length], [500, 1]);
});

test('A199 a write is never sent again', async () => {
  const { call, sent } = scripted([503, 200]);
  assert.deepEqual([await call('POST'), sent.length], [503, 1]);
});

test('A199 a 401 is sent again once, with a new token', async () => {
  const { call, sent } = scripted([401, 200]);
  assert.deepEqual([await call('POST'), sent], [200, ['old', 'Bearer new']]);
  const twice = scripted([401, 401, 200]);
  assert.deepEqual([await twice.call('GET'), twice.sent.length], [401, 2]);
});

test('a 401 stays one where there is no other token', async () => {
  const { call, sent } = scripted([401, 200], '');
  assert.deepEqual([await call('GET'), sent.length], [401, 1]);
});
