// The gauges of the fleet, from caches that are played.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMetrics } from '#base/metrics.ts';
import { FLEET_METRICS } from '#schema/metrics.ts';
import { aProject, aSession, podUid, SESSION_UID } from '#test/support/session-fixtures.ts';
import { reportFleet } from './fleet-metrics.ts';

type FleetCaches = Parameters<typeof reportFleet>[0];

/** A cache of the values, owned by a Session each where `ownerUid` says so. */
const cacheOf = (
  entries: readonly Readonly<{ value: unknown; ownerUid?: string }>[],
  knownUids: readonly string[] = [],
) => ({
  cache: {
    entries: () => entries,
    byUid: (uid: string) => (knownUids.includes(uid) ? { key: 'k' } : undefined),
  },
});

test('§10 gauges tell of running turns, open networks, conditions of projects and children without a Session', async () => {
  const status = { lastTransitionTime: '2026-11-30T12:00:00Z', message: '' };
  const session = aSession(
    {},
    {
      status: {
        phase: 'Running',
        harness: { id: 'pi', reason: 'default' },
        pod: { uid: podUid(1), attempt: 1 },
        activity: { state: 'WaitingForInput', since: '2026-11-30T12:00:00Z' },
        conditions: [{ type: 'NetworkIsolated', status: 'False', reason: 'NotEnforced', ...status }],
      },
    },
  );
  const project = {
    ...aProject(),
    status: { conditions: [{ type: 'Ready', status: 'False', reason: 'NotReady', ...status }] },
  };
  const caches = {
    projects: cacheOf([{ value: project }]),
    sessions: cacheOf([{ value: session }], [SESSION_UID]),
    pods: cacheOf([
      { value: {}, ownerUid: SESSION_UID },
      { value: {}, ownerUid: 'gone' },
    ]),
    networkPolicies: cacheOf([]),
    // Retained: nobody owns it.
    volumes: cacheOf([{ value: {} }]),
  } as unknown as FleetCaches;
  const { instruments, page } = createMetrics(FLEET_METRICS);
  reportFleet(caches, 3, instruments);
  const text = await page.render();
  for (const line of [
    'beeuni_turns_active{harness="pi"} 1',
    'beeuni_isolation_not_enforced 1',
    'beeuni_project_condition{type="Ready",status="False"} 1',
    'beeuni_orphans{kind="Pod"} 1',
    'beeuni_orphans{kind="PersistentVolumeClaim"} 0',
    'beeuni_sessions_queued 3',
  ]) {
    assert.ok(text.split('\n').includes(line), `${line} is missing in\n${text}`);
  }
});
