// How a daemon begins and why it may refuse to: no harness program is needed for any of this.
import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, it } from 'node:test';
import { healthDocument } from '#schema/wire/health.ts';
import { until } from '#test/support/until.ts';
import { BRANCH, makeRig, type Rig } from './rig.ts';

/** A directory with a program that stands where OpenCode is expected and ends at once. */
const withBrokenHarness = (rig: Rig): Readonly<Record<string, string>> => {
  const folder = join(rig.folders.root, 'bin');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'opencode'), '#!/bin/sh\necho "cannot start today" >&2\nexit 9\n');
  chmodSync(join(folder, 'opencode'), 0o755);
  return { PATH: `${folder}:${process.env['PATH'] ?? ''}` };
};

describe('the boot of a daemon', { timeout: 300_000 }, () => {
  let rig: Rig | undefined;
  afterEach(async () => {
    await rig?.stop();
    rig = undefined;
  });

  it('A12 ends with harness_not_available for an id without an adapter, and starts no other harness', async () => {
    rig = await makeRig();
    for (const id of ['beaver', 'someday']) {
      const daemon = rig.start({ BEEUNI_HARNESS: id });
      assert.equal((await daemon.exited).code, 4);
      assert.match(daemon.output(), /"cause":"harness_not_available"/);
    }
    assert.equal(rig.controlPlane.claims(), 0);
  });

  it('A143 A144 names the verb in each answer of the runtime, and in one that comes too early how far the boot is', async () => {
    rig = await makeRig();
    const daemon = rig.start(withBrokenHarness(rig));
    const url = await daemon.url();
    const early = await fetch(`${url}/beeuni/runtime/commands`);
    assert.deepEqual([early.status, early.headers.get('x-beeuni-turn-verb')], [401, 'commands']);
    await rig.controlPlane.healthy('the harness does not start', (document) => document.boot_error !== null);
    const headers = { authorization: `Bearer ${rig.controlPlane.daemonCredential}` };
    const answer = await fetch(`${url}/beeuni/runtime/commands`, { headers });
    assert.equal(answer.status, 503);
    assert.equal(((await answer.json()) as { error: { code: string } }).error.code, 'runtime_not_ready');
    assert.deepEqual(
      [answer.headers.get('x-beeuni-turn-verb'), answer.headers.get('x-beeuni-boot-phase')],
      ['commands', 'checked-out'],
    );
    assert.equal((await fetch(`${url}/beeuni/health`)).headers.get('x-beeuni-turn-verb'), null);
  });

  it('A12 reports harness_not_available when only the claim names the harness', async () => {
    rig = await makeRig({ claim: { harness: 'beaver' } });
    const daemon = rig.start({ BEEUNI_HARNESS: undefined });
    const health = await rig.controlPlane.healthy('a boot error', (document) => document.boot_error !== null);
    assert.match(health.boot_error ?? '', /^harness_not_available: .* beaver$/);
    assert.deepEqual([health.boot_error_category, health.status, health.runtimeReady], ['HarnessBoot', 'error', false]);
    assert.equal(health.harness.id, 'beaver');
    assert.equal((await daemon.health()).daemon, 'ok');
  });

  it('ends when the claim names another harness than the pod was made for', async () => {
    rig = await makeRig({ claim: { harness: 'pi' } });
    assert.equal((await rig.start().exited).code, 5);
  });

  it('lists every wrong name before it opens a port', async () => {
    rig = await makeRig();
    const daemon = rig.start({ BEEUNI_SESSION: 'x', BEEUNI_PORT: 'many', BEEUNI_CONTROL_PLANE_URL: undefined });
    assert.equal((await daemon.exited).code, 2);
    for (const name of ['BEEUNI_SESSION', 'BEEUNI_PORT', 'BEEUNI_CONTROL_PLANE_URL'])
      assert.match(daemon.output(), new RegExp(name));
    assert.doesNotMatch(daemon.output(), /"message":"listening"/);
  });

  it('ends with the folder and the cause when a data mount takes no file', async () => {
    rig = await makeRig();
    const daemon = rig.start({ BEEUNI_DATA_DIR: '/proc/self/nothing' });
    assert.equal((await daemon.exited).code, 6);
    assert.match(daemon.output(), /"cause":"data_mount".*\/proc\/self\/nothing is not writable for uid \d+ \(\w+\)/);
  });

  it('A19 answers health to everybody before it has a session, and nothing else to anybody', async () => {
    rig = await makeRig();
    rig.controlPlane.setUnassigned(true);
    const daemon = rig.start();
    const health = healthDocument.parse(await daemon.health());
    assert.deepEqual([health.status, health.runtimeReady, health.auth], ['starting', false, 'unconfigured']);
    for (const [method, path] of [
      ['POST', '/beeuni/nudge'],
      ['POST', '/beeuni/abort'],
      ['POST', '/beeuni/drain'],
      ['POST', '/beeuni/env'],
      ['GET', '/beeuni/logs'],
    ] as const) {
      for (const credential of [undefined, 'undefined', '', rig.controlPlane.daemonCredential]) {
        const answer = await daemon.call(method, path, credential, method === 'POST' ? {} : undefined);
        assert.equal(answer.status, 401, `${method} ${path} with ${credential}`);
      }
    }
    daemon.signal('SIGTERM');
    assert.equal((await daemon.exited).code, 0);
  });

  it('serves on and ends as asked when nobody reads its log any more', async () => {
    rig = await makeRig();
    rig.controlPlane.setUnassigned(true);
    const daemon = rig.start();
    await daemon.health();
    daemon.closeOutput();
    // Each of these is told in the log.
    for (let call = 0; call < 5; call += 1) await daemon.call('POST', '/beeuni/nudge', 'wrong', {});
    assert.equal((await daemon.health()).status, 'starting');
    daemon.signal('SIGTERM');
    assert.equal((await daemon.exited).code, 0);
  });

  it('D6 waits for its session and claims it when there is one', async () => {
    rig = await makeRig();
    rig.controlPlane.setUnassigned(true);
    const daemon = rig.start(withBrokenHarness(rig));
    await until('the daemon waits', () => daemon.output().includes('waiting for a session'));
    rig.controlPlane.setUnassigned(false);
    await rig.controlPlane.healthy('claimed', (document) =>
      document.boot_timeline.some((entry) => entry.stage === 'claimed'),
    );
    assert.equal(rig.controlPlane.claims(), 1);
  });

  it('reports a harness that does not start, with its cause, and stays alive', async () => {
    rig = await makeRig();
    const daemon = rig.start(withBrokenHarness(rig));
    const health = await rig.controlPlane.healthy('a boot error', (document) => document.boot_error !== null);
    assert.equal(health.boot_error_category, 'HarnessBoot');
    assert.match(health.boot_error ?? '', /opencode exited with code 9/);
    assert.deepEqual([health.repo_ready, health.runtimeReady, health.harness.state], [true, false, 'error']);
    const logs = await daemon.call('GET', '/beeuni/logs?source=harness', rig.controlPlane.daemonCredential);
    assert.ok((logs.body as { lines: string[] }).lines.includes('cannot start today'));
  });

  it('reports a repository that cannot be fetched as CloneFailed, and heals by itself', async () => {
    rig = await makeRig();
    rig.controlPlane.setGone(true);
    const daemon = rig.start(withBrokenHarness(rig));
    const health = await until('the clone failed', async () => {
      const document = await daemon.health();
      return document.boot_error_category === 'CloneFailed' && document;
    });
    assert.deepEqual([health.repo_ready, health.commit_sha, health.status], [false, null, 'error']);
    assert.match(health.boot_error ?? '', /^git fetch failed: /);
    rig.controlPlane.setGone(false);
    await rig.controlPlane.healthy(
      'checked out',
      (document) => document.repo_ready && document.boot_error_category !== 'CloneFailed',
    );
  });

  it('A22 checks out the session branch with the author of the claim and no credential in its configuration', async () => {
    rig = await makeRig();
    rig.start(withBrokenHarness(rig));
    await rig.controlPlane.healthy('checked out', (document) => document.repo_ready);
    const read = (path: string) => readFileSync(join(rig?.folders.workspace ?? '', '.git', path), 'utf8');
    assert.equal(read('HEAD').trim(), `ref: refs/heads/${BRANCH}`);
    const config = read('config');
    assert.match(config, /name = Ada Agent\n\s+email = ada@example.com/);
    assert.match(config, /url = http:\/\/127\.0\.0\.1:\d+\/git\n/);
    assert.ok(!/bs_|Bearer|extraHeader|credential/i.test(config));
    assert.ok(!existsSync(join(rig.folders.workspace, '.git/hooks')));
  });

  it('continues a session branch that the remote already has', async () => {
    rig = await makeRig();
    rig.git.git('branch', BRANCH, 'main');
    const commit = rig.git.git('commit-tree', 'main^{tree}', '-p', 'main', '-m', 'earlier work');
    rig.git.git('update-ref', `refs/heads/${BRANCH}`, commit);
    rig.start(withBrokenHarness(rig));
    const health = await rig.controlPlane.healthy('checked out', (document) => document.repo_ready);
    assert.equal(health.commit_sha, commit);
  });

  it('holds the harness back while isolation is required and cannot be shown', async () => {
    rig = await makeRig();
    const daemon = rig.start({ ...withBrokenHarness(rig), BEEUNI_ISOLATION_PROBE: 'require' });
    const health = await rig.controlPlane.healthy(
      'held back',
      (document) => document.boot_error !== null && document.repo_ready,
    );
    assert.match(health.boot_error ?? '', /isolation is required/);
    assert.doesNotMatch(daemon.output(), /cannot start today/);
  });

  it('tells an open network from a closed one', async () => {
    rig = await makeRig();
    const { port } = new URL(rig.controlPlane.url);
    const open = { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: port };
    rig.start({ ...withBrokenHarness(rig), ...open });
    await rig.controlPlane.healthy('not enforced', (document) => document.isolation === 'not-enforced');
    await rig.stop();
    rig = await makeRig();
    rig.start({ ...withBrokenHarness(rig), KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: '1' });
    await rig.controlPlane.healthy('enforced', (document) => document.isolation === 'enforced');
  });
});
