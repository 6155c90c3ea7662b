// The demo's scripted model with the real OpenCode: a plain prompt, as a newcomer types it, ends in a pushed file.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { DaemonProcess } from '#test/support/daemon-process.ts';
import { whyNoOpencode } from '#test/support/opencode.ts';
import { until } from '#test/support/until.ts';
import { BRANCH, makeRig, type Rig } from './rig.ts';

const skip = whyNoOpencode() ?? false;

describe('the scripted model with OpenCode', { skip, timeout: 300_000 }, () => {
  let rig: Rig;
  let daemon: DaemonProcess;
  before(async () => {
    rig = await makeRig({ files: { 'README.md': '# Shop\n' } });
    daemon = rig.start();
    await rig.controlPlane.healthy('ready', (health) => health.runtimeReady);
  });
  after(async () => {
    await rig?.stop();
  });

  it('a plain prompt that asks for a file ends with the file on the session branch and a sentence that says so', async () => {
    const turnId = rig.controlPlane.prompt('Add a file HELLO.md that says "Hello from Beeuni", and commit it.');
    await daemon.call('POST', '/beeuni/nudge', rig.controlPlane.daemonCredential, { reason: 'prompt' });
    const end = await rig.controlPlane.event('turn.ended', turnId);
    assert.equal(end.data['outcome'], 'Succeeded', JSON.stringify(end.data));
    assert.match(String(end.data['summary']), /HELLO\.md says "Hello from Beeuni" and is committed/);
    await until('the branch is pushed', () => rig.git.branch(BRANCH));
    assert.equal(rig.git.git('show', `${BRANCH}:HELLO.md`).trim(), 'Hello from Beeuni');
  });
});
