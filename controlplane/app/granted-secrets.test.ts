// The three grants of a secret.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { grantedSecrets, type ProjectSecret } from './granted-secrets.ts';

const secret = (env: string, agents: readonly string[], identifier?: string): ProjectSecret => ({
  env,
  identifier,
  secretRef: { name: 's', key: env },
  agents,
});
const SECRETS = [secret('A', ['*']), secret('B', ['build']), secret('C', ['review'], 'see-ref')];
const names = (agent: string, grant: 'all' | 'none' | readonly string[], scope?: readonly string[]) =>
  grantedSecrets(SECRETS, agent, grant, scope).map(({ env }) => env);

test('a secret needs the Project, the manifest and the scope of the session', () => {
  assert.deepEqual(names('build', 'all'), ['A', 'B']);
  assert.deepEqual(names('build', ['B']), ['B']);
  assert.deepEqual(names('review', ['see-ref']), ['C'], 'the manifest names it by its identifier');
  assert.deepEqual(names('build', 'none'), []);
  assert.deepEqual(names('build', 'all', []), []);
  assert.deepEqual(names('build', 'all', ['A', 'C']), ['A']);
});

test('no grant and no scope ever adds a secret that the Project does not give the agent', () => {
  const name = fc.constantFrom('A', 'B', 'C', 'see-ref', 'D');
  const grant = fc.oneof(fc.constantFrom('all' as const, 'none' as const), fc.array(name));
  fc.assert(
    fc.property(
      fc.constantFrom('build', 'review', 'other'),
      grant,
      fc.option(fc.array(name), { nil: undefined }),
      (agent, given, scope) => {
        const allowed = SECRETS.filter(({ agents }) => agents.includes('*') || agents.includes(agent)).map(
          ({ env }) => env,
        );
        assert.ok(names(agent, given, scope).every((env) => allowed.includes(env)));
      },
    ),
  );
});
