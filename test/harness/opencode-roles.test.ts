// The roles of the workspace in the real OpenCode: which model is asked for a compaction.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { DaemonProcess } from '#test/support/daemon-process.ts';
import { whyNoOpencode } from '#test/support/opencode.ts';
import { makeRig, type Rig } from './rig.ts';

const skip = whyNoOpencode() ?? false;

describe('roles in OpenCode', { skip, timeout: 300_000 }, () => {
  let rig: Rig;
  let daemon: DaemonProcess;
  before(async () => {
    rig = await makeRig({
      claim: { roles: [{ role: 'compaction', model: 'scripted/small', reason: 'it is assigned to the role' }] },
    });
    daemon = rig.start();
    await rig.controlPlane.healthy('ready', (health) => health.runtimeReady);
  });
  after(() => rig?.stop());

  const modelsSince = (from: number): readonly unknown[] =>
    rig.provider.requests.slice(from).map(({ body }) => (body as { model?: unknown }).model);

  it('B2 J5 a compaction is asked of the model of its role, a prompt of the session’s own', async () => {
    const end = async (turnId: string) => {
      await daemon.call('POST', '/beeuni/nudge', rig.controlPlane.daemonCredential, { reason: 'prompt' });
      const { data } = await rig.controlPlane.event('turn.ended', turnId);
      await rig.controlPlane.healthy('idle', (health) => health.activity.state === 'Idle');
      assert.equal(data['outcome'], 'Succeeded', JSON.stringify(data));
    };
    await end(rig.controlPlane.prompt('@@say hello'));
    assert.deepEqual(new Set(modelsSince(0)), new Set(['scripted/large']));
    const from = rig.provider.requests.length;
    await end(rig.controlPlane.prompt('', { parts: [{ type: 'compact' }] }));
    assert.deepEqual(new Set(modelsSince(from)), new Set(['scripted/small']));
  });
});
