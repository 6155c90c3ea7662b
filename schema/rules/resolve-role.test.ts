// The resolver of model roles: order of the steps and the reason of each choice.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MODEL_ROLES, type ModelRole, NO_ROLES, type RoleSlots } from '../settings/roles.ts';
import { type RoleCandidates, reasonOutsideRuns, resolveRole } from './resolve-role.ts';

const DEAD = 'dead/model';
const why = (name: string): string | undefined => (name === DEAD ? 'provider dead is disabled' : undefined);
const all = { run: 'p/run', environment: 'env/model' };
const resolve = (role: ModelRole, slots: Partial<RoleSlots>, rest: Omit<RoleCandidates, 'slots'> = all) =>
  resolveRole(role, { slots: { ...NO_ROLES, ...slots }, ...rest }, why);

test('B2 an empty slot gives: judge off, vision the main model, compaction and title the judge, extraction the model of the run', () => {
  const chosen = MODEL_ROLES.map((role) => [role, resolve(role, { judge: role === 'judge' ? '' : 'p/judge' }).model]);
  assert.deepEqual(Object.fromEntries(chosen), {
    judge: null,
    vision: 'p/run',
    compaction: 'p/judge',
    title: 'p/judge',
    extraction: 'p/run',
  });
});

test('B2 B5 without slot and judge the environment model is the last step of compaction, title and extraction', () => {
  const outside = { run: null, environment: 'env/model' };
  for (const role of ['compaction', 'title', 'extraction'] as const) {
    assert.deepEqual(
      [role, resolve(role, {}, outside).model, resolve(role, {}, outside).step],
      [role, 'env/model', 'environment'],
    );
  }
  assert.equal(resolve('judge', {}, outside).model, null);
  assert.equal(resolve('vision', {}, outside).model, null);
});

test('B4 a slot whose model has no client is passed with the reason, and the judge is asked before the last fallback', () => {
  const choice = resolve('compaction', { compaction: DEAD, judge: 'p/judge' });
  assert.deepEqual(
    [choice.model, choice.step, choice.passed],
    ['p/judge', 'judge', [{ step: 'slot', model: DEAD, why: 'provider dead is disabled' }]],
  );
  const both = resolve('title', { title: DEAD, judge: DEAD });
  assert.deepEqual([both.model, both.step], ['env/model', 'environment']);
  assert.equal(both.passed.length, 2);
});

test('B4 a slot that works wins over everything, and says so', () => {
  for (const role of MODEL_ROLES) {
    const choice = resolve(role, { [role]: 'p/slot', ...(role === 'judge' ? {} : { judge: 'p/judge' }) });
    assert.deepEqual([choice.model, choice.step, choice.reason], ['p/slot', 'slot', 'it is assigned to the role']);
  }
});

test('a role that nothing can do is off, with the reason of the last model that was asked', () => {
  const choice = resolve('title', { title: DEAD }, { run: null, environment: null });
  assert.deepEqual([choice.model, choice.step, choice.reason], [null, null, 'off: provider dead is disabled']);
  assert.equal(resolve('judge', {}).reason, 'off: nothing is assigned to the role');
  assert.equal(
    resolve('title', {}, { run: null, environment: null }).reason,
    'off: nothing is assigned to the role, nothing is assigned to the role judge, the environment names no model',
  );
});

test('D19 a role that goes by the run is not called off or fixed where no run is looked at', () => {
  const outside = { run: null, environment: null };
  const reason = (role: ModelRole, slots: Partial<RoleSlots> = {}) =>
    reasonOutsideRuns(role, resolve(role, slots, outside));
  assert.equal(
    reason('vision'),
    'in a run the model of the run, if it takes images; outside of one off: nothing is assigned to the role, there is no run',
  );
  assert.equal(
    reason('extraction', { judge: 'p/judge' }),
    'in a run the model of the run; else it is assigned to the role judge',
  );
  assert.equal(reason('vision', { vision: 'p/eyes' }), 'it is assigned to the role');
  assert.equal(reason('judge'), 'off: nothing is assigned to the role');
});
