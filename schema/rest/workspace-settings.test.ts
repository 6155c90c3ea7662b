// What the document of the API says of the maps of the supervisor.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { BUDGET_KNOBS, BUDGET_NAMES } from '../settings/budgets.ts';
import { HAB_NAMES } from '../settings/hab.ts';
import { supervisorChange } from './workspace-settings.ts';

test('B23 the document names every knob and criterion with its bounds, and null for the reset', () => {
  const { properties } = z.toJSONSchema(supervisorChange, { io: 'input' });
  const { harness, hab_coefficients: hab } = properties as Record<string, { properties: Record<string, object> }>;
  assert.deepEqual(Object.keys(harness?.properties ?? {}), [...BUDGET_NAMES]);
  assert.deepEqual(Object.keys(hab?.properties ?? {}), [...HAB_NAMES]);
  const { least, most, unit, meaning } = BUDGET_KNOBS.keep_groups_min;
  assert.deepEqual(harness?.properties['keep_groups_min'], {
    type: ['integer', 'null'],
    minimum: least,
    maximum: most,
    description: `${meaning} (${unit})`,
  });
});

test('B24 a name and a number that the document does not have still reach the judgement of the route', () => {
  assert.ok(supervisorChange.safeParse({ harness: { no_such_knob: -1 } }).success);
});
