// Which model OpenCode is given for a job that it does itself.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClaimedModel, ClaimedRole } from '#schema/wire/claim.ts';
import type { HarnessSession } from '../contract/adapter.ts';
import { modelOfRole } from './config-files.ts';

const aModel = (name: string): ClaimedModel => ({
  name,
  contextWindowTokens: 1_000,
  maxOutputTokens: 100,
  input: ['text'],
  reasoning: false,
});
const aSession = (roles: readonly ClaimedRole[] | undefined): HarnessSession => ({
  uid: 'u',
  title: 't',
  agent: null,
  agents: [],
  model: aModel('p/large'),
  models: [aModel('p/small')],
  roles,
  unattended: false,
});
const role = (model: string | null): readonly ClaimedRole[] => [{ role: 'compaction', model, reason: '' }];

test('B2 a role gives its model if the session has it, and nothing when it is off, unknown or absent', () => {
  assert.equal(modelOfRole(aSession(role('p/small')), 'compaction'), 'p/small');
  assert.equal(modelOfRole(aSession(role('p/large')), 'compaction'), 'p/large');
  assert.equal(modelOfRole(aSession(role(null)), 'compaction'), undefined);
  assert.equal(modelOfRole(aSession(role('p/foreign')), 'compaction'), undefined);
  assert.equal(modelOfRole(aSession(role('p/small')), 'title'), undefined);
  assert.equal(modelOfRole(aSession(undefined), 'compaction'), undefined);
});
