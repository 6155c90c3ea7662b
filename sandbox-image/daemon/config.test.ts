// The daemon's environment: defaults, unknown names, wrong values, and no name for a secret.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { daemonEnvironment, parseConfig } from './config.ts';

const MINIMUM = { BEEUNI_CONTROL_PLANE_URL: 'http://control-plane:8081/' };

describe('parseConfig', () => {
  it('fills in what the pod does not set', () => {
    const config = parseConfig(MINIMUM);
    assert.equal(config.controlPlaneUrl, 'http://control-plane:8081');
    assert.equal(config.port, 8000);
    assert.equal(config.harness, undefined);
    assert.equal(config.drainMs, 60_000);
    assert.equal(config.probeTarget, undefined);
  });

  it('lists every problem at once, unknown BEEUNI_ names too', () => {
    assert.throws(
      () => parseConfig({ BEEUNI_PORT: 'x', BEEUNI_SESSION: 's', BEEUNI_WORKSPACE_DIR: 'relative' }),
      (error) => {
        const text = String(error);
        for (const name of ['BEEUNI_CONTROL_PLANE_URL', 'BEEUNI_PORT', 'BEEUNI_SESSION', 'BEEUNI_WORKSPACE_DIR']) {
          assert.ok(text.includes(name), `${name} in ${text}`);
        }
        return true;
      },
    );
  });

  it('A11 takes any harness id: whether there is an adapter is not its business', () => {
    assert.equal(parseConfig({ ...MINIMUM, BEEUNI_HARNESS: 'someday' }).harness, 'someday');
  });

  it('finds the API server for the isolation probe', () => {
    const around = { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '6443' };
    assert.deepEqual(parseConfig({ ...MINIMUM, ...around }).probeTarget, { host: '10.0.0.1', port: 6443 });
  });

  it('has no name that would hold a secret: the only one about a token is its file', () => {
    const suspicious = Object.keys(daemonEnvironment.shape).filter((name) =>
      /TOKEN|SECRET|KEY|PASSWORD|CREDENTIAL/.test(name),
    );
    assert.deepEqual(suspicious, ['BEEUNI_TOKEN_FILE']);
  });
});
