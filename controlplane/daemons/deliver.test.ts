// Where calls to sandboxes go, and what they carry. Must not need a network: fetch is a port.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SessionKind } from '#schema/resources/session.ts';
import { daemonUrl } from './address.ts';
import { makeDeliver } from './deliver.ts';

const UID = '11111111-2222-3333-4444-555555555555';
const POD_UID = '99999999-2222-3333-4444-555555555555';

const bench = (pod: { uid?: string; ip?: string } = {}) => {
  const calls: { url: string; init: RequestInit }[] = [];
  const unreachable: string[] = [];
  const answers: Response[] = [];
  const session = SessionKind.object.parse({
    apiVersion: SessionKind.apiVersion,
    kind: 'Session',
    metadata: {
      namespace: 'team',
      name: 'fix',
      uid: UID,
      resourceVersion: '1',
      creationTimestamp: '2026-11-30T12:00:00Z',
    },
    spec: { projectRef: { name: 'shop' } },
    status: { pod: { name: 'p', uid: POD_UID, attempt: 1, ip: '10.1.2.3', ...pod } },
  });
  const deliver = makeDeliver({
    findSessionByUid: (uid) => (uid === UID ? session : undefined),
    findDaemon: async () => ({ pod_uid: POD_UID, daemon_credential: Buffer.from('sealed') }),
    unseal: (sealed, context) => `${sealed.toString()} for ${context}`,
    daemonPort: 8000,
    fetch: async (url, init) => {
      calls.push({ url: new Request(url).url, init: init ?? {} });
      const answer = answers.shift();
      if (answer === undefined) throw new TypeError('fetch failed');
      return answer;
    },
    onUnreachable: (_uid, call) => unreachable.push(call),
  });
  return { deliver, calls, unreachable, answers };
};

test('D12 a call goes to the pod of the status with the credential of the claim, and follows no redirect', async () => {
  const { deliver, calls, answers } = bench();
  answers.push(Response.json({ idle: true }, { status: 202 }));
  assert.deepEqual(await deliver.drain(UID, 'abort', 5_000), { idle: true });
  const [call] = calls;
  assert.equal(call?.url, 'http://10.1.2.3:8000/beeuni/drain');
  const headers = new Headers(call?.init.headers);
  assert.equal(headers.get('authorization'), `Bearer sealed for daemon-credential:${UID}`);
  assert.equal(call?.init.redirect, 'manual');
  assert.deepEqual(await new Response(call?.init.body).json(), { turn: 'abort', deadlineMs: 5_000 });
});

test('a redirect, an error, an odd answer and silence are "not reached", never thrown', async () => {
  const { deliver, unreachable, answers } = bench();
  answers.push(new Response(null, { status: 302, headers: { location: 'http://169.254.169.254/' } }));
  answers.push(Response.json({ error: { code: 'unauthenticated', message: 'no' } }, { status: 401 }));
  answers.push(new Response('<html>', { status: 202 }));
  for (let n = 0; n < 4; n += 1) assert.equal(await deliver.drain(UID, 'wait', 0), undefined);
  assert.deepEqual(unreachable, ['drain', 'drain', 'drain', 'drain']);
});

test('nothing is sent to a pod that is not the claimed one, to no address, or for a session that is not there', async () => {
  for (const pod of [{ uid: UID }, { ip: 'metadata.internal' }, { ip: '10.0.0.1@evil' }]) {
    const { deliver, calls } = bench(pod);
    await deliver.nudge(UID, 'prompt');
    assert.deepEqual(calls, [], JSON.stringify(pod));
  }
  const { deliver, calls } = bench();
  await deliver.abort('other', 'turn');
  assert.deepEqual(calls, []);
});

test('an address of either family becomes a URL, anything else does not', () => {
  assert.equal(daemonUrl('10.0.0.7', 8000), 'http://10.0.0.7:8000');
  assert.equal(daemonUrl('fd00::7', 8000), 'http://[fd00::7]:8000');
  for (const ip of ['', 'localhost', '10.0.0.7/x', '010.0.0.7']) assert.equal(daemonUrl(ip, 8000), undefined, ip);
});
