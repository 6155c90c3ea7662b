// Which environments start a control plane, and what the refusals of the others say.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { InvalidError } from '#base/errors.ts';
import { readConfig } from './config.ts';

const folder = mkdtempSync(join(tmpdir(), 'beeuni-config-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const file = (name: string, text: string): string => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};
const key = file('key', `${Buffer.alloc(32, 7).toString('base64')}\n`);
const least = { BEEUNI_ENCRYPTION_KEY_FILE: key, BEEUNI_DATABASE_DIRECTORY: '/data' };

test('the least environment gives every default', () => {
  const config = readConfig(least);
  assert.deepEqual(config.database, { kind: 'embedded', directory: '/data' });
  assert.equal(config.sealKeys.length, 1);
  assert.equal(config.flags.llm_gateway.default, true);
  assert.deepEqual(config.operator, { namespace: 'beeuni', serviceAccount: 'beeuni-operator' });
  assert.equal(config.envModel, undefined);
});

test('a full environment is read', () => {
  const config = readConfig({
    BEEUNI_ENCRYPTION_KEY_FILE: key,
    BEEUNI_DATABASE_URL_FILE: file('url', 'postgres://u:p@db/beeuni\n'),
    BEEUNI_GIT_ALLOWED_HOSTS: 'git.example.com , forge.example.com',
    BEEUNI_FEATURES: '{"pi_harness":{"default":true}}',
    BEEUNI_ENV_MODEL_BASE_URL: 'http://models',
    BEEUNI_ENV_MODEL_ID: 'm',
    BEEUNI_ENV_MODEL_KEY_FILE: file('model-key', 'sk-canary\n'),
    BEEUNI_STATUS_SUMMARIES: 'false',
    BEEUNI_OPERATOR_NAMESPACE: 'ops',
    BEEUNI_SERVICE_HOST: '10.0.0.1',
  });
  assert.deepEqual(config.database, { kind: 'url', url: 'postgres://u:p@db/beeuni' });
  assert.deepEqual(config.settings.BEEUNI_GIT_ALLOWED_HOSTS, ['git.example.com', 'forge.example.com']);
  assert.deepEqual(config.flags.pi_harness, { default: true, available: true });
  assert.deepEqual(config.envModel, { baseUrl: 'http://models', id: 'm', apiKey: 'sk-canary' });
  assert.equal(config.settings.BEEUNI_STATUS_SUMMARIES, false);
  assert.equal(config.operator.namespace, 'ops');
});

const refused: readonly [name: string, environment: Record<string, string>, ...messages: RegExp[]][] = [
  ['nothing at all', {}, /BEEUNI_ENCRYPTION_KEY_FILE: is required/],
  ['an unknown name', { ...least, BEEUNI_COLOUR: 'red' }, /BEEUNI_COLOUR: unknown name/],
  [
    'several problems',
    { ...least, BEEUNI_PUBLIC_PORT: 'x', BEEUNI_LOG_LEVEL: 'loud', BEEUNI_STATUS_SUMMARIES: 'perhaps' },
    /BEEUNI_PUBLIC_PORT: must be a port number/,
    /BEEUNI_LOG_LEVEL: must be one of debug, info, warn, error/,
    /BEEUNI_STATUS_SUMMARIES: must be true or false/,
  ],
  ['a number above its bound', { ...least, BEEUNI_DATABASE_POOL_SIZE: '501' }, /POOL_SIZE: must be at most 500/],
  ['a relative path', { ...least, BEEUNI_ENCRYPTION_KEY_FILE: 'key' }, /must be an absolute path/],
  ['a missing file', { ...least, BEEUNI_ENCRYPTION_KEY_FILE: '/nowhere/key' }, /cannot be read \(ENOENT\)/],
  ['a short key', { ...least, BEEUNI_ENCRYPTION_KEY_FILE: file('short', 'aGk=') }, /is not 32 bytes in base64 or hex/],
  ['no database', { BEEUNI_ENCRYPTION_KEY_FILE: key }, /exactly one of/],
  ['two databases', { ...least, DATABASE_URL: 'postgres://db/b' }, /exactly one of/],
  ['another database', { BEEUNI_ENCRYPTION_KEY_FILE: key, DATABASE_URL: 'mysql://db' }, /must begin with postgres/],
  ['a model without its address', { ...least, BEEUNI_ENV_MODEL_ID: 'm' }, /are needed together/],
  ['flags that are no JSON', { ...least, BEEUNI_FEATURES: 'on' }, /BEEUNI_FEATURES: must be JSON as/],
  ['an unknown flag', { ...least, BEEUNI_FEATURES: '{"speed":{}}' }, /BEEUNI_FEATURES: must be JSON as/],
  ['one port twice', { ...least, BEEUNI_PUBLIC_PORT: '9090' }, /the four ports must differ/],
];
for (const [name, environment, ...messages] of refused) {
  test(`refuses ${name}`, () => {
    assert.throws(
      () => readConfig(environment),
      (error: unknown) => {
        assert.ok(error instanceof InvalidError);
        for (const message of messages) assert.match(error.message, message);
        return true;
      },
    );
  });
}
