// What a daemon that dies leaves to the next one on the same volume: events, uncommitted files, the conversation.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { DaemonProcess } from '#test/support/daemon-process.ts';
import { whyNoOpencode } from '#test/support/opencode.ts';
import { until } from '#test/support/until.ts';
import { BRANCH, makeRig, type Rig } from './rig.ts';

const skip = whyNoOpencode() ?? false;

describe('a daemon on the volume of a dead one', { skip, timeout: 600_000 }, () => {
  let rig: Rig;
  let second: DaemonProcess;
  let lostTurn: string;
  let conversation: string | null;

  before(async () => {
    rig = await makeRig();
  });
  after(async () => {
    await rig?.stop();
  });

  it('FB9 keeps working without the control plane and sends everything afterwards, once', async () => {
    const { controlPlane } = rig;
    const first = rig.start();
    conversation = (await controlPlane.healthy('ready', (health) => health.runtimeReady)).harness.session.id;
    const turnId = controlPlane.prompt('@@stream 40 25');
    await first.call('POST', '/beeuni/nudge', controlPlane.daemonCredential, { reason: 'prompt' });
    await controlPlane.event('message.part.delta', turnId);
    controlPlane.setGone(true);
    const stored = controlPlane.events.length;
    await until('the turn is over for the daemon', () => first.output().includes('"message":"turn ended"'), {
      deadlineMs: 60_000,
    });
    assert.equal(controlPlane.events.length, stored);
    controlPlane.setGone(false);
    const end = await controlPlane.event('turn.ended', turnId);
    assert.equal(end.data['outcome'], 'Succeeded');
    assert.ok(
      controlPlane.events.every((event, at) => event.n === at + 1),
      'no number is missing or double',
    );

    // Now the answers to appends are lost, and the daemon dies in the middle of a turn.
    lostTurn = controlPlane.prompt('@@tool bash {"command":"echo draft > draft.txt; sleep 300","description":"d"}');
    await first.call('POST', '/beeuni/nudge', controlPlane.daemonCredential, { reason: 'prompt' });
    await until('the draft is written', () => existsSync(join(rig.folders.workspace, 'draft.txt')), {
      deadlineMs: 60_000,
    });
    controlPlane.setDeaf(true);
    await until(
      'an append is stored whose answer is lost',
      () =>
        first.output().includes('events wait for the control plane') && first.output().lastIndexOf('events wait') > 0,
      {
        deadlineMs: 60_000,
      },
    ).catch(() => undefined);
    controlPlane.setGone(true);
    writeFileSync(join(rig.folders.workspace, 'unsaved.txt'), 'not committed');
    first.signal('SIGKILL');
    await first.exited;
    await first.cleanUp();
    controlPlane.setGone(false);
    controlPlane.setDeaf(false);
  });

  it('D7 claims the next generation, and D17 the lost turn has one end', async () => {
    second = rig.start();
    const health = await rig.controlPlane.healthy(
      'ready',
      (document) => document.runtimeReady && document.uptime_s < 600,
    );
    await until('the second daemon is the one that reports', () => rig.controlPlane.claims() === 2);
    assert.equal(health.harness.id, 'opencode');
    const ends = rig.controlPlane.eventsOf(lostTurn).filter((event) => event.type === 'turn.ended');
    assert.deepEqual(
      ends.map((event) => event.data['outcome']),
      ['Interrupted'],
    );
  });

  it('FB9 sends what the dead daemon had not sent, and nothing twice', async () => {
    await rig.controlPlane.healthy('ready', (document) => document.runtimeReady);
    const ids = rig.controlPlane.events.map((event) => event.id);
    assert.equal(new Set(ids).size, ids.length, 'every event is there once');
    const running = rig.controlPlane.eventsOf(lostTurn).filter((event) => event.type === 'turn.started');
    assert.equal(running.length, 1);
  });

  it('keeps uncommitted files and the conversation', async () => {
    const health = await rig.controlPlane.healthy('ready', (document) => document.runtimeReady);
    assert.equal(readFileSync(join(rig.folders.workspace, 'unsaved.txt'), 'utf8'), 'not committed');
    assert.equal(readFileSync(join(rig.folders.workspace, 'draft.txt'), 'utf8'), 'draft\n');
    assert.equal(health.harness.session.id, conversation);
    assert.equal(health.branch, BRANCH);
    const turnId = rig.controlPlane.prompt('@@say still here');
    await second.call('POST', '/beeuni/nudge', rig.controlPlane.daemonCredential, { reason: 'prompt' });
    assert.equal((await rig.controlPlane.event('turn.ended', turnId)).data['summary'], 'still here');
  });

  it('A22 brings the session branch back when an agent left another one, and pushes only that', async () => {
    const turnId = rig.controlPlane.prompt(
      `@@tool bash {"command":"git switch --quiet -c elsewhere && git commit --quiet --allow-empty -m stray","description":"d"}\n@@say moved`,
    );
    await second.call('POST', '/beeuni/nudge', rig.controlPlane.daemonCredential, { reason: 'prompt' });
    await rig.controlPlane.event('turn.ended', turnId);
    await until(
      'the session branch is back',
      () => readFileSync(join(rig.folders.workspace, '.git/HEAD'), 'utf8').trim() === `ref: refs/heads/${BRANCH}`,
    );
    assert.equal(rig.git.branch('elsewhere'), undefined);
  });

  it('D7 ends by itself when a newer daemon serves the session', async () => {
    rig.controlPlane.supersede();
    const { code } = await second.exited;
    assert.equal(code, 3);
    assert.match(second.output(), /"cause":"superseded"/);
  });
});
