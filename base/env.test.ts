// Reading an environment: every problem at once, nothing secret shown.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { describeEnvironment, readEnvironment, redactSettings } from './env.ts';
import { InvalidError } from './errors.ts';

const schema = z.object({
  BEEUNI_PORT: z.coerce.number().int().min(1).max(65_535).default(8080).describe('Port to listen on.'),
  BEEUNI_NAME: z.string().min(1).describe('Name of the installation.'),
  BEEUNI_DRY: z.stringbool().default(false),
  DATABASE_URL: z.url().optional(),
});

test('settings are typed, filled and frozen', () => {
  const settings = readEnvironment(schema, { BEEUNI_NAME: 'a', BEEUNI_DRY: 'true', PATH: '/bin' });
  assert.deepEqual(settings, { BEEUNI_PORT: 8080, BEEUNI_NAME: 'a', BEEUNI_DRY: true });
  assert.ok(Object.isFrozen(settings));
});

test('every problem is listed: a wrong value, a missing name, an unknown name', () => {
  assert.throws(
    () => readEnvironment(schema, { BEEUNI_PORT: 'x', BEEUNI_NMAE: 'a' }),
    (error: unknown) => {
      assert.ok(error instanceof InvalidError);
      assert.equal(error.code, 'invalid_configuration');
      for (const name of ['BEEUNI_PORT', 'BEEUNI_NAME', 'BEEUNI_NMAE: unknown name'])
        assert.match(error.message, new RegExp(name));
      return true;
    },
  );
});

test('an empty variable is an absent one', () => {
  assert.throws(() => readEnvironment(schema, { BEEUNI_NAME: '' }), /BEEUNI_NAME/);
});

test('names that Kubernetes adds for a Service of ours are no settings', () => {
  const links = { BEEUNI_CONTROL_PLANE_SERVICE_HOST: '10.0.0.1', BEEUNI_CONTROL_PLANE_PORT_8080_TCP_ADDR: '10.0.0.1' };
  assert.equal(readEnvironment(schema, { BEEUNI_NAME: 'a', ...links }).BEEUNI_NAME, 'a');
});

test('printed settings hold no secret', () => {
  assert.deepEqual(redactSettings({ DATABASE_URL: 'postgres://u:p@h/d', BEEUNI_NAME: 'a' }), {
    DATABASE_URL: '[redacted]',
    BEEUNI_NAME: 'a',
  });
});

test('the reference page shows defaults and what is required', () => {
  assert.deepEqual(describeEnvironment(schema).slice(0, 2), [
    { name: 'BEEUNI_PORT', description: 'Port to listen on.', required: false, default: 8080 },
    { name: 'BEEUNI_NAME', description: 'Name of the installation.', required: true, default: undefined },
  ]);
});
