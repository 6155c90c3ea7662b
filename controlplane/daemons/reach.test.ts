// Which address a person's call to a sandbox goes to, and what is said when there is none.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UnavailableError } from '#base/errors.ts';
import type { Session } from '#schema/resources/session.ts';
import { logsRoute } from '#schema/wire/turns.ts';
import { makeReach } from './reach.ts';

type Pod = Readonly<{ uid: string; ip?: string }> | undefined;

const reachOf = (pod: Pod, options: Readonly<{ suspended?: boolean; queued?: boolean; claimedBy?: string }> = {}) => {
  const sent: (readonly [string, string | null])[] = [];
  const session = {
    metadata: { name: 'fix', uid: 'uid-1' },
    spec: { operatingMode: options.suspended === true ? 'Suspended' : 'Running' },
    status: {
      pod,
      conditions:
        options.queued === true ? [{ type: 'Ready', status: 'False', reason: 'Queued', message: 'full' }] : [],
    },
  } as unknown as Session;
  const made = makeReach({
    findSessionByUid: (uid) => (uid === 'uid-1' ? session : undefined),
    findDaemon: async () => ({ pod_uid: options.claimedBy ?? 'pod-1', daemon_credential: Buffer.from('sealed') }),
    unseal: (sealed, context) => `${sealed.toString()} of ${context}`,
    daemonPort: 8000,
    fetch: async (input, init) => {
      sent.push([input as string, new Headers(init?.headers).get('authorization')]);
      return new Response('{"lines":["one"]}', { status: 200 });
    },
  });
  return { ...made, sent };
};
const saying = (message: RegExp) => (error: unknown) =>
  error instanceof UnavailableError && error.code === 'sandbox_unreachable' && message.test(error.message);

test('a call goes to the claimed pod with the credential of its session', async () => {
  const { call, sent } = reachOf({ uid: 'pod-1', ip: '10.0.0.7' });
  assert.deepEqual((await call('uid-1', logsRoute, { query: { tail: 1 } })).body, { lines: ['one'] });
  assert.deepEqual(sent, [['http://10.0.0.7:8000/beeuni/logs?tail=1', 'Bearer sealed of daemon-credential:uid-1']]);
  assert.equal((await reachOf({ uid: 'pod-1', ip: 'fd00::7' }).reach('uid-1')).baseUrl, 'http://[fd00::7]:8000');
});

for (const [name, pod, options, message] of [
  [
    'a suspended session',
    { uid: 'pod-1', ip: '10.0.0.7' },
    { suspended: true },
    /is suspended on request; .*; start it: beeuni sessions start fix/,
  ],
  ['a session without a pod', undefined, {}, /has no running sandbox now/],
  ['a session that waits for a place', undefined, { queued: true }, /is queued: full; it starts by itself/],
  ['a pod without an address', { uid: 'pod-1' }, {}, /has no running sandbox now/],
  ['an address that is none', { uid: 'pod-1', ip: 'evil.example' }, {}, /has no running sandbox now/],
  ['a pod that has not claimed', { uid: 'pod-2', ip: '10.0.0.7' }, {}, /is still starting/],
] as const) {
  test(`${name} is told as such, and nothing is sent`, async () => {
    const { call, sent } = reachOf(pod, options);
    await assert.rejects(call('uid-1', logsRoute, {}), saying(message));
    assert.deepEqual(sent, []);
  });
}
