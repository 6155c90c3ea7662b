// OpenCode's own terminal client, in a terminal of the sandbox, beside the session that the daemon serves.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { DaemonProcess } from '#test/support/daemon-process.ts';
import { whyNoOpencode } from '#test/support/opencode.ts';
import { openSocket } from '#test/support/terminal-socket.ts';
import { until } from '#test/support/until.ts';
import { makeRig, type Rig } from './rig.ts';

describe('the terminal client of OpenCode', { timeout: 300_000, skip: whyNoOpencode() }, () => {
  let rig: Rig;
  let daemon: DaemonProcess;
  before(async () => {
    rig = await makeRig();
    daemon = rig.start();
    await rig.controlPlane.healthy('ready', (document) => document.runtimeReady);
  });
  after(async () => {
    await rig?.stop();
  });

  it('A237 runs in the sandbox, shows the conversation, and its password is seen by nobody outside', async () => {
    const turn = rig.controlPlane.prompt('@@say the answer is forty-two');
    await rig.controlPlane.event('turn.ended', turn);
    const url = `${(await daemon.url()).replace('http', 'ws')}/beeuni/terminal?client=true&id=client&cols=120&rows=40`;
    const socket = openSocket(url, { authorization: `Bearer ${rig.controlPlane.daemonCredential}` });
    const { terminal } = await socket.notice('attached');
    assert.equal(terminal.args[0], 'attach');
    assert.doesNotMatch(JSON.stringify(terminal), /password/i);
    await until('the client shows the conversation', () => socket.text().includes('forty-two'), {
      deadlineMs: 90_000,
      describe: () => socket.text().slice(-2_000),
    });
    const ended = await daemon.call('DELETE', '/beeuni/terminals/client', rig.controlPlane.daemonCredential);
    assert.equal(ended.status, 204);
    await socket.notice('exit');
  });
});
