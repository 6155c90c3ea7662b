// What a status says of a pass that cannot succeed, and of an object that cannot be read.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ForbiddenError } from '#base/errors.ts';
import type { KubeClient } from '#kube/client.ts';
import { type KubeObject, SESSIONS } from '#kube/resource-types.ts';
import { PROJECT_CONDITIONS, SESSION_CONDITIONS } from '#schema/resources/conditions.ts';
import { withFailed } from './failed-condition.ts';
import { sayUnreadable } from './unreadable.ts';

const at = Date.parse('2026-11-30T12:00:00Z');
const ready = {
  type: 'Ready',
  status: 'True' as const,
  reason: 'Ready',
  message: '',
  observedGeneration: 1,
  lastTransitionTime: '2026-11-30T11:00:00Z',
};
const accepted = { ...ready, type: 'SpecAccepted', reason: 'Accepted' };

test('0011 a pass that cannot succeed makes Ready False with a reason of the closed list, and no condition of its own', () => {
  const after = withFailed([ready, accepted], new ForbiddenError('forbidden', 'may not create pods'), 2, at);
  assert.deepEqual(after, [
    {
      ...ready,
      status: 'False',
      reason: 'Failed',
      message: 'forbidden: may not create pods',
      observedGeneration: 2,
      lastTransitionTime: '2026-11-30T12:00:00Z',
    },
    accepted,
  ]);
  for (const words of [PROJECT_CONDITIONS.Ready.False, SESSION_CONDITIONS.Ready.False]) assert.ok('Failed' in words);
});

test('0011 a bug shows no words of its own to people', () => {
  assert.equal(withFailed(undefined, undefined, 1, at)[0]?.message, 'internal: see the log of the operator');
});

const world = (object: Record<string, unknown> | undefined) => {
  const bodies: Record<string, unknown>[] = [];
  let stored = object as KubeObject | undefined;
  const client = {
    get: async () => stored,
    serverNowMs: () => at,
    request: async ({ body }: { body?: unknown }) => {
      bodies.push(body as Record<string, unknown>);
      stored = { ...stored, ...(body as KubeObject), metadata: stored?.metadata ?? { name: 's' } };
      return stored;
    },
  } as unknown as KubeClient;
  const say = () => sayUnreadable(client, SESSIONS, { namespace: 'n', name: 's' }, 'odd', new AbortController().signal);
  return { say, bodies };
};

test('0011 an object that cannot be read keeps its status, says why, and is written once', async () => {
  const { say, bodies } = world({
    metadata: { namespace: 'n', name: 's', uid: 'u', resourceVersion: '7', generation: 3 },
    status: { pod: { attempt: 2 }, conditions: [ready, accepted] },
  });
  const error = await say();
  assert.match(error.message, /sessions\/s cannot be read: odd/);
  await say();
  assert.equal(bodies.length, 1);
  const [body] = bodies;
  assert.equal((body?.['metadata'] as { resourceVersion: string } | undefined)?.resourceVersion, '7');
  const status = body?.['status'] as { pod: unknown; conditions: Record<string, unknown>[] } | undefined;
  assert.deepEqual(status?.pod, { attempt: 2 });
  assert.deepEqual(
    status?.conditions.map(({ type, status: value, reason }) => [type, value, reason]),
    [
      ['Ready', 'False', 'Failed'],
      ['SpecAccepted', 'True', 'Accepted'],
    ],
  );
});

test('an object that is gone meanwhile is not written', async () => {
  const { say, bodies } = world(undefined);
  await say();
  assert.deepEqual(bodies, []);
});
