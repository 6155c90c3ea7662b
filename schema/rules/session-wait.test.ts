// What is said of a session in which nothing runs.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SESSION_CONDITIONS } from '../resources/conditions.ts';
import { modelsTrouble, sessionWait } from './session-wait.ts';

type Seen = Readonly<{
  operatingMode?: string;
  mode?: string;
  phase?: string;
  suspension?: string;
  ready?: string;
  accepted?: string;
}>;

const waitOf = ({ operatingMode = 'Running', mode, phase = 'Pending', suspension, ready, accepted }: Seen) => {
  const condition = (type: string, reason: string | undefined) =>
    reason === undefined ? [] : [{ type, status: 'False', reason, message: `words of ${reason}` }];
  return sessionWait({
    namespace: 'team',
    name: 'fix',
    spec: { operatingMode, mode, projectRef: { name: 'shop' } },
    status: {
      phase,
      suspension: suspension === undefined ? undefined : { reason: suspension },
      conditions: [...condition('Ready', ready), ...condition('SpecAccepted', accepted)],
    },
  });
};

for (const [name, seen, says, todo] of [
  ['deleted', { phase: 'Deleting' }, /^session fix is being deleted$/, /sessions new/],
  ['a Task that failed', { phase: 'Failed', mode: 'Task', ready: 'Failed' }, /has ended \(Failed\)/, /sessions new/],
  ['expired', { phase: 'Expired' }, /has ended \(Expired\)/, /sessions new/],
  ['suspended on request', { operatingMode: 'Suspended' }, /suspended on request/, /beeuni sessions start fix/],
  [
    'suspended with its project',
    { phase: 'Suspended', suspension: 'ProjectSuspended', ready: 'Suspended' },
    /suspended with its project shop/,
    /^resume it: kubectl -n team patch project shop /,
  ],
  [
    'without its project',
    { phase: 'Suspended', suspension: 'ProjectSuspended', ready: 'Suspended', accepted: 'ProjectNotFound' },
    /words of ProjectNotFound/,
    /^$/,
  ],
  [
    'asleep on its budget',
    { phase: 'Suspended', suspension: 'Budget', ready: 'BudgetReached' },
    /waits: words of BudgetReached/,
    /kubectl -n team edit session fix, or project shop/,
  ],
  ['held by a budget', { ready: 'BudgetReached' }, /waits: words of BudgetReached/, /edit session fix/],
  ['queued', { ready: 'Queued' }, /queued: words of Queued; it starts by itself/, /^$/],
  ['not accepted', { ready: 'NotAccepted' }, /not accepted: words of NotAccepted/, /put right/],
  ['cooling down', { ready: 'CoolingDown' }, /after a failure/, /beeuni sessions restart fix/],
  ['failed', { phase: 'Failed', ready: 'Failed' }, /has failed: words of Failed/, /beeuni sessions restart fix/],
  ['out of reach', { phase: 'Running', ready: 'DaemonUnreachable' }, /does not answer/, /^$/],
] as const) {
  test(`a session that is ${name} says why nothing runs and what to do`, () => {
    const wait = waitOf(seen) ?? assert.fail('nothing is said');
    assert.match(wait.says, says);
    assert.match(wait.todo ?? '', todo);
  });
}

test('nothing is said of a session that runs, is on its way, sleeps until the next prompt, or was not looked at', () => {
  assert.equal(waitOf({ phase: 'Running', ready: 'Ready' }), undefined);
  assert.equal(waitOf({ phase: 'Suspended', suspension: 'Idle', ready: 'Suspended' }), undefined);
  // The status is older than the start.
  assert.equal(waitOf({ phase: 'Suspended', suspension: 'Requested', ready: 'Suspended' }), undefined);
  for (const ready of ['Pending', 'Starting', 'Restarting', 'Suspending', 'Disrupted']) {
    assert.equal(waitOf({ ready }), undefined);
  }
  assert.equal(sessionWait({ namespace: 'team', name: 'fix', spec: {}, status: {} }), undefined);
});

test('a status of a newer installation is no error', () => {
  const status = { phase: 7, suspension: 'Sleepy', conditions: { Ready: true } };
  assert.equal(sessionWait({ namespace: 'team', name: 'fix', spec: { projectRef: 'shop' }, status }), undefined);
});

test('every reason of Ready=False and Unknown is known here, so that a new one is decided upon', () => {
  const said = ['NotAccepted', 'Queued', 'BudgetReached', 'CoolingDown', 'Failed'];
  const silent = ['Pending', 'Starting', 'Restarting', 'Suspending', 'Suspended', 'Disrupted', 'Finished', 'Deleting'];
  assert.deepEqual(Object.keys(SESSION_CONDITIONS.Ready.False).sort(), [...said, ...silent].sort());
  assert.deepEqual(Object.keys(SESSION_CONDITIONS.Ready.Unknown).sort(), [
    'ControlPlaneUnavailable',
    'DaemonUnreachable',
    'NodeLost',
  ]);
});

test('a project says which of its models cannot be called, and nothing while it does not know', () => {
  const saying = (status: string) => ({
    conditions: [{ type: 'ModelsValid', status, reason: 'ProviderDisabled', message: 'provider eu is disabled' }],
  });
  assert.equal(
    modelsTrouble('shop', saying('False')),
    'project shop cannot call all of its models now (ProviderDisabled): provider eu is disabled',
  );
  for (const status of [saying('True'), saying('Unknown'), undefined, {}, { conditions: 'odd' }]) {
    assert.equal(modelsTrouble('shop', status), undefined);
  }
});
