// What a daemon that dies leaves to the next one on the same volume: events, uncommitted files, the conversation.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { DaemonProcess } from '#test/support/daemon-process.ts';
import { openLatch, waitForLatch } from '#test/support/latch.ts';
import { whyNoOpencode } from '#test/support/opencode.ts';
import { until } from '#test/support/until.ts';
import { BRANCH, makeRig, type Rig } from './rig.ts';

const skip = whyNoOpencode() ?? false;

describe('a daemon on the volume of a dead one', { skip, timeout: 600_000 }, () => {
  let rig: Rig;
  let first: DaemonProcess;
  let second: DaemonProcess;
  let lostTurn: string;
  let conversation: string | null;

  before(async () => {
    rig = await makeRig();
  });
  after(async () => {
    await rig?.stop();
  });

  const nudge = (daemon: DaemonProcess) =>
    daemon.call('POST', '/beeuni/nudge', rig.controlPlane.daemonCredential, { reason: 'prompt' });

  /** Stored events of the lost turn whose tool output holds a word. */
  const outputsWith = (word: string) =>
    rig.controlPlane.eventsOf(lostTurn).filter((event) => JSON.stringify(event.data).includes(`\\n${word}\\n"`));

  const spooled = (): string =>
    readdirSync(join(rig.folders.data, 'spool'))
      .map((name) => readFileSync(join(rig.folders.data, 'spool', name), 'utf8'))
      .join('');

  it('FB9 keeps working without the control plane and sends everything afterwards, once', async () => {
    const { controlPlane } = rig;
    first = rig.start();
    conversation = (await controlPlane.healthy('ready', (health) => health.runtimeReady)).harness.session.id;
    const turnId = controlPlane.prompt('@@stream 40 25');
    await nudge(first);
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
  });

  it('D7 claims the next generation after a kill in mid-turn, and D17 the lost turn has one end', async () => {
    const { controlPlane, folders } = rig;
    const [deaf, gone] = [waitForLatch('deaf'), waitForLatch('gone')];
    const command = `echo draft > draft.txt; echo begin; ${deaf}; echo heard; ${gone}; echo unsent; sleep 300`;
    lostTurn = controlPlane.prompt(`@@tool bash {"command":"${command}","description":"d"}`);
    await nudge(first);
    await until('the draft is written', () => existsSync(join(folders.workspace, 'draft.txt')), { deadlineMs: 60_000 });
    controlPlane.setDeaf(true);
    openLatch(folders.workspace, 'deaf');
    await until('an event is stored whose answer is lost', () => outputsWith('heard').length > 0);
    controlPlane.setGone(true);
    openLatch(folders.workspace, 'gone');
    await until('an event is in the spool only', () => spooled().includes('\\nunsent\\n'));
    writeFileSync(join(folders.workspace, 'unsaved.txt'), 'not committed');
    first.signal('SIGKILL');
    await first.exited;
    await first.cleanUp();
    controlPlane.setGone(false);
    controlPlane.setDeaf(false);
    second = rig.start();
    const end = await controlPlane.event('turn.ended', lostTurn);
    assert.equal(controlPlane.claims(), 2);
    assert.equal(end.data['outcome'], 'Interrupted');
  });

  it('FB9 sends what the dead daemon had not sent, and nothing twice', async () => {
    const { events } = rig.controlPlane;
    await until('the unsent event is stored', () => outputsWith('unsent').length > 0);
    assert.deepEqual(
      outputsWith('unsent').map((event) => event.generation),
      [2],
    );
    assert.deepEqual(
      outputsWith('heard').map((event) => event.generation),
      [1],
    );
    assert.equal(new Set(events.map((event) => event.id)).size, events.length, 'every event is there once');
    assert.equal(rig.controlPlane.eventsOf(lostTurn).filter((event) => event.type === 'turn.ended').length, 1);
  });

  it('keeps uncommitted files and the conversation', async () => {
    const health = await rig.controlPlane.healthy('ready', (document) => document.runtimeReady);
    assert.equal(readFileSync(join(rig.folders.workspace, 'unsaved.txt'), 'utf8'), 'not committed');
    assert.equal(readFileSync(join(rig.folders.workspace, 'draft.txt'), 'utf8'), 'draft\n');
    assert.equal(health.harness.session.id, conversation);
    assert.equal(health.branch, BRANCH);
    const turnId = rig.controlPlane.prompt('@@say still here');
    await nudge(second);
    assert.equal((await rig.controlPlane.event('turn.ended', turnId)).data['summary'], 'still here');
  });

  it('A22 brings the session branch back when an agent left another one, and pushes only that', async () => {
    const turnId = rig.controlPlane.prompt(
      `@@tool bash {"command":"git switch --quiet -c elsewhere && git commit --quiet --allow-empty -m stray","description":"d"}\n@@say moved`,
    );
    await nudge(second);
    await rig.controlPlane.event('turn.ended', turnId);
    await until(
      'the session branch is back',
      () => readFileSync(join(rig.folders.workspace, '.git/HEAD'), 'utf8').trim() === `ref: refs/heads/${BRANCH}`,
    );
    assert.equal(rig.git.branch('elsewhere'), undefined);
  });

  it('tells a push that the repository refused, in the log and in its health, until one goes through', async () => {
    const hook = join(rig.git.directory, 'hooks', 'pre-receive');
    const commit = (text: string): string =>
      rig.controlPlane.prompt(
        `@@tool bash {"command":"git commit --quiet --allow-empty -m ${text}","description":"d"}\n@@say done`,
      );
    writeFileSync(hook, '#!/bin/sh\necho closed for the night\nexit 1\n', { mode: 0o755 });
    const refused = commit('refused');
    await nudge(second);
    const { data } = await rig.controlPlane.event('workspace.push_failed', refused);
    assert.match(String(data['message']), /pre-receive hook declined|closed for the night/);
    const told = await rig.controlPlane.healthy('refused', (document) => document.push_error !== null);
    assert.equal(told.push_error, data['message']);
    assert.equal(told.runtimeReady, true);
    rmSync(hook);
    const taken = commit('taken');
    await nudge(second);
    await rig.controlPlane.event('workspace.pushed', taken);
    await rig.controlPlane.healthy('pushed', (document) => document.push_error === null);
  });

  it('drains when the control plane asks: the turn is aborted, and no further prompt is taken', async () => {
    const { controlPlane } = rig;
    const drain = (turn: 'wait' | 'abort') =>
      second.call('POST', '/beeuni/drain', controlPlane.daemonCredential, { turn, deadlineMs: 600_000 });
    const running = controlPlane.prompt('@@tool bash {"command":"sleep 300","description":"d"}');
    const waiting = controlPlane.prompt('@@say never');
    await nudge(second);
    await controlPlane.event('message.part.updated', running);
    assert.deepEqual(await drain('abort'), { status: 202, body: { idle: false } });
    assert.equal((await controlPlane.event('turn.ended', running)).data['outcome'], 'Aborted');
    await controlPlane.healthy('idle', (health) => health.activity.state === 'Idle');
    assert.deepEqual(await drain('wait'), { status: 202, body: { idle: true } });
    await nudge(second);
    assert.deepEqual(controlPlane.eventsOf(waiting), []);
  });

  it('D7 ends by itself when a newer daemon serves the session', async () => {
    rig.controlPlane.supersede();
    const { code } = await second.exited;
    assert.equal(code, 3);
    assert.match(second.output(), /"cause":"superseded"/);
  });
});
