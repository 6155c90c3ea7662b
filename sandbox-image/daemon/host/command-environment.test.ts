// What commands of the agent get: the session's facts and the granted secrets, which never override ours.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ClaimAnswer } from '#schema/wire/claim.ts';
import { commandEnvironment } from './command-environment.ts';

const claim = {
  session: { namespace: 'n', name: 's', uid: 'u' },
  project: { name: 'p', uid: 'pu' },
  branch: 'b',
  baseBranch: 'main',
  baseCommit: 'c',
  agent: 'dev',
  model: null,
  credential: 'bs_secret',
  daemonCredential: 'dc_secret',
} as ClaimAnswer;

describe('commandEnvironment', () => {
  it('A202 tells commands what they work on, without any credential', () => {
    const environment = commandEnvironment(claim, { revision: 3, environment: { API_KEY: 'k' } });
    assert.deepEqual(environment, {
      API_KEY: 'k',
      BEEUNI_PROJECT_ID: 'pu',
      BEEUNI_SESSION: 's',
      BEEUNI_SESSION_UID: 'u',
      BEEUNI_BRANCH: 'b',
      BEEUNI_DEFAULT_BRANCH: 'main',
      BEEUNI_BASE_REF: 'c',
      BEEUNI_AGENT: 'dev',
      BEEUNI_SECRET_NAMES: 'API_KEY',
      BEEUNI_SECRETS_REVISION: '3',
    });
  });

  it('lets no grant steer the harness or pose as ours', () => {
    const names = ['BEEUNI_SESSION', 'OPENCODE_CONFIG', 'PATH', 'HOME', 'LD_PRELOAD', 'NODE_OPTIONS', 'XDG_DATA_HOME'];
    const grants = { revision: 1, environment: Object.fromEntries(names.map((name) => [name, 'evil'])) };
    assert.ok(!Object.values(commandEnvironment(claim, grants)).includes('evil'));
  });
});
