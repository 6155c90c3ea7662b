// Agent and model of a Session: the operator shows what the claim will give, by the same layers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aProject, aProjectFact, aRegistryFact, aSession, observed } from '#test/support/session-fixtures.ts';
import { specAccepted } from './accept.ts';
import { sessionAgent, sessionModel } from './effective.ts';

const anAgent = (model: string | null) =>
  ({ name: 'coder', mode: 'primary', model, template: null, secrets: 'none' }) as const;

test('A214 a default of the Project that is no longer usable is skipped, and the session is accepted', () => {
  const project = aProject({ defaults: { model: 'acme/retired' } });
  const fact = aProjectFact();
  assert.deepEqual(sessionModel(aSession(), project, fact, aRegistryFact(), 'coder'), {
    value: 'acme/coder-large',
    layer: 'Platform',
    overrode: [],
  });
  assert.equal(specAccepted(observed({ project, projectFact: fact })).status, 'True');
});

test('A214 a model of the agent file that is no longer usable is skipped', () => {
  const fact = aProjectFact({}, { agents: [anAgent('gone/model')] });
  assert.equal(sessionModel(aSession(), aProject(), fact, aRegistryFact(), 'coder')?.layer, 'Platform');
});

test("A214 the session's own model is not skipped: the refusal names it", () => {
  const o = observed({ session: aSession({ model: 'acme/retired' }) });
  const verdict = specAccepted(o);
  assert.equal(verdict.reason, 'ModelInvalid');
  assert.match(verdict.message, /acme\/retired, named by Session: unknown_model/);
});

test('A192 the last layer is the model of the installation, not that of the default agent', () => {
  const fact = aProjectFact(
    { models: { ...aProjectFact().models, default: 'acme/of-the-default-agent' } },
    { agents: [anAgent('acme/of-the-default-agent'), { ...anAgent(null), name: 'writer' }] },
  );
  assert.equal(sessionModel(aSession(), aProject(), fact, aRegistryFact(), 'writer')?.value, 'acme/coder-large');
});

test('A105 a default agent of the Project that the manifest no longer declares is skipped', () => {
  const project = aProject({ defaults: { agent: 'gone' } });
  const manifest = aProjectFact().manifest.lastValid ?? assert.fail('no manifest');
  assert.deepEqual(sessionAgent(aSession(), project, manifest), { value: 'coder', layer: 'Manifest', overrode: [] });
});

test('while the registry is not known the model stays what the layers say', () => {
  const project = aProject({ defaults: { model: 'acme/unknown-yet' } });
  assert.equal(sessionModel(aSession(), project, aProjectFact(), undefined, 'coder')?.layer, 'Project');
});
