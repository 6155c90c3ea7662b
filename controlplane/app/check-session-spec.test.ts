// What the REST API refuses of a new session, and what it says.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BeeuniError } from '#base/errors.ts';
import type { Project } from '#schema/resources/project.ts';
import { makeCheckSessionSpec } from './check-session-spec.ts';

const project = (allowed?: readonly string[], agents?: readonly string[]): Project =>
  ({
    metadata: { namespace: 'team', name: 'shop' },
    spec: { models: allowed === undefined ? undefined : { allowed } },
    status: agents === undefined ? undefined : { manifest: { agents } },
  }) as unknown as Project;

const check = (found: Project | undefined) =>
  makeCheckSessionSpec({
    fetchProject: async (namespace, name) => (namespace === 'team' && name === 'shop' ? found : undefined),
    judgeModel: async (name) =>
      name.startsWith('acme/')
        ? { name, valid: true, code: null, message: null, suggestions: [] }
        : {
            name,
            valid: false,
            code: 'unknown_model',
            message: 'no such model; nearest: acme/large',
            suggestions: ['acme/large'],
          },
  });

const refusal = async (found: Project | undefined, spec: Record<string, unknown>): Promise<string> => {
  try {
    await check(found)('team', { projectRef: { name: 'shop' }, ...spec });
    return 'accepted';
  } catch (error) {
    assert.ok(error instanceof BeeuniError);
    return `${error.status} ${error.code}: ${error.message}`;
  }
};

test('a session that names what exists is accepted', async () => {
  assert.equal(await refusal(project(['acme/*'], ['build']), { agent: 'build', model: 'acme/large' }), 'accepted');
  assert.equal(await refusal(project(), {}), 'accepted');
  assert.equal(await refusal(project(), { agent: 'not-read-yet' }), 'accepted');
});

test('each refusal says what to do', async () => {
  assert.equal(await refusal(undefined, {}), '404 project_not_found: there is no project shop in namespace team');
  assert.equal(
    await refusal(project(undefined, ['build', 'review']), { agent: 'biuld' }),
    '400 unknown_agent: project shop declares no enabled agent biuld; it declares build, review',
  );
  assert.equal(await refusal(project(), { model: 'other/x' }), '400 unknown_model: no such model; nearest: acme/large');
  assert.equal(
    await refusal(project(['acme/small']), { model: 'acme/large' }),
    '403 model_not_allowed: project shop does not allow the model acme/large; it allows acme/small',
  );
  assert.match(
    await refusal(project(), { projectRef: 'shop' }),
    /^400 invalid_request: body\.spec\.projectRef\.name is required/,
  );
});
