// What a suspended Session says of its files: kept, never there, only what was pushed, or lost with their volume.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SessionSpecInput } from '#schema/resources/session.ts';
import { SessionWorld } from '#test/support/session-world.ts';
import type { ObservedSession } from './observed.ts';
import { planSession } from './plan.ts';

const suspendedAfterRun = (spec: Partial<SessionSpecInput> = {}): ObservedSession => {
  const world = new SessionWorld(spec);
  world.settle();
  world.edit({ operatingMode: 'Suspended' });
  world.settle();
  return world.observe() ?? assert.fail('the Session is gone');
};

const readyMessage = (o: ObservedSession): string => {
  const ready = planSession(o).status?.conditions?.find(({ type }) => type === 'Ready');
  return ready?.message ?? assert.fail('there is no Ready');
};

test('K18 the files of a persistent workspace are kept', () => {
  assert.match(readyMessage(suspendedAfterRun()), /\(Requested\); its files are kept$/);
});

test('K18 an ephemeral workspace keeps what was pushed', () => {
  assert.match(readyMessage(suspendedAfterRun({ workspace: { type: 'Ephemeral' } })), /workspace is Ephemeral$/);
});

test('a volume that somebody deleted is told, with what it means', () => {
  const message = readyMessage({ ...suspendedAfterRun(), volume: undefined });
  assert.match(message, /its volume is gone: what was not pushed is lost, and the next start clones again$/);
});

test('a Session that never ran has no files', () => {
  const world = new SessionWorld({ operatingMode: 'Suspended' });
  world.settle();
  assert.match(readyMessage(world.observe() ?? assert.fail('the Session is gone')), /it has no files yet$/);
});
