// Files, changes and terminals of a sandbox: the real daemon on port 8000, and a control plane's public server in front of it.
// No harness program is needed: a workspace is there as soon as it is checked out.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { FileView, WorkspaceDiff } from '#schema/wire/files.ts';
import type { TerminalView } from '#schema/wire/terminals.ts';
import type { DaemonProcess } from '#test/support/daemon-process.ts';
import { openSocket, type TestSocket } from '#test/support/terminal-socket.ts';
import { until } from '#test/support/until.ts';
import { CANARY, makeRig, type Rig } from './rig.ts';

describe('the workspace of a sandbox', { timeout: 900_000 }, () => {
  let rig: Rig;
  let daemon: DaemonProcess;
  let credential: string;
  let workspace: string;

  before(async () => {
    rig = await makeRig({ claim: { env: { SHOP_KEY: CANARY.grantedSecret } } });
    const folder = join(rig.folders.root, 'bin');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'opencode'), '#!/bin/sh\nexit 9\n');
    chmodSync(join(folder, 'opencode'), 0o755);
    rig.controlPlane.setUnassigned(true);
    daemon = rig.start({ PATH: `${folder}:${process.env['PATH'] ?? ''}` });
    credential = rig.controlPlane.daemonCredential;
    workspace = rig.folders.workspace;
  });
  after(async () => {
    await rig?.stop();
  });

  const get = async <T>(path: string): Promise<T> => {
    const answer = await daemon.call('GET', path, credential);
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    return answer.body as T;
  };
  const codeOf = async (method: string, path: string, body?: unknown): Promise<string> => {
    const answer = await daemon.call(method, path, credential, body);
    return (answer.body as { error?: { code: string } } | undefined)?.error?.code ?? `status ${answer.status}`;
  };
  const attach = async (query = ''): Promise<TestSocket> =>
    openSocket(`${(await daemon.url()).replace('http', 'ws')}/beeuni/terminal${query}`, {
      authorization: `Bearer ${credential}`,
    });

  it('A200 shows nothing before the claim, and afterwards nothing without the credential of the control plane', async () => {
    for (const [method, path] of [
      ['GET', '/beeuni/files'],
      ['PUT', '/beeuni/files?path=x'],
      ['GET', '/beeuni/diff'],
      ['GET', '/beeuni/terminals'],
      ['GET', '/beeuni/terminal'],
      ['DELETE', '/beeuni/terminals/x'],
    ] as const) {
      const answer = await daemon.call(method, path, credential, method === 'PUT' ? { content: '' } : undefined);
      assert.equal(answer.status, 401, `${method} ${path}`);
    }
    rig.controlPlane.setUnassigned(false);
    await rig.controlPlane.healthy('checked out', (document) => document.repo_ready);
    const base = await daemon.url();
    for (const token of ['', 'Bearer ', 'Bearer wrong', `Basic ${credential}`]) {
      const refused = await openSocket(`${base.replace('http', 'ws')}/beeuni/terminal`, { authorization: token })
        .refusal;
      assert.equal(refused, 401, token);
    }
    assert.deepEqual(await get('/beeuni/terminals'), { terminals: [] });
  });

  it('lists and reads the checkout, and writes a file that git sees', async () => {
    const folder = await get<FileView>('/beeuni/files');
    assert.ok(folder.type === 'folder' && folder.entries.some(({ name }) => name === 'README.md'));
    const file = await get<FileView>('/beeuni/files?path=README.md');
    assert.equal(file.type === 'file' && file.content, '# Shop\n');
    const written = await daemon.call('PUT', '/beeuni/files?path=README.md', credential, { content: '# New shop\n' });
    assert.deepEqual(written.body, { path: 'README.md', sizeBytes: 11, created: false });
    const made = await daemon.call('PUT', '/beeuni/files?path=added.txt', credential, { content: 'one\n' });
    assert.deepEqual(made.body, { path: 'added.txt', sizeBytes: 4, created: true });
    const diff = await get<WorkspaceDiff>('/beeuni/diff');
    assert.equal(diff.baseCommit, rig.git.baseCommit);
    assert.deepEqual(diff.files, [{ path: 'README.md', additions: 1, deletions: 1 }]);
    assert.deepEqual(diff.untracked, ['added.txt']);
    assert.match(diff.patch, /^\+# New shop$/m);
  });

  it('shows what was committed as well', async () => {
    const git = (...words: string[]) => execFileSync('git', ['-C', workspace, ...words], { encoding: 'utf8' });
    git('add', 'added.txt');
    git('commit', '-q', '-m', 'Add a file');
    const diff = await get<WorkspaceDiff>('/beeuni/diff');
    assert.deepEqual(diff.files.map(({ path }) => path).sort(), ['README.md', 'added.txt']);
    assert.equal(diff.headCommit, git('rev-parse', 'HEAD').trim());
  });

  it('FF5 FF8 follows no link out, and runs no filter, driver or monitor of the repository', async () => {
    const marker = join(rig.folders.root, 'ran');
    const evil = join(rig.folders.root, 'evil.sh');
    writeFileSync(evil, `#!/bin/sh\ntouch ${marker}\ncat\n`);
    chmodSync(evil, 0o755);
    symlinkSync('/etc', join(workspace, 'etc'));
    symlinkSync(rig.folders.tokenFile, join(workspace, 'token'));
    for (const path of ['etc/passwd', 'etc', 'token', '../secret', '/etc/passwd', '%2e%2e/x']) {
      assert.equal(
        await codeOf('GET', `/beeuni/files?path=${encodeURIComponent(path)}`),
        path === '%2e%2e/x' ? 'not_found' : 'path_not_allowed',
        path,
      );
    }
    assert.equal(await codeOf('PUT', '/beeuni/files?path=token', { content: 'x' }), 'path_not_allowed');
    assert.equal(readFileSync(rig.folders.tokenFile, 'utf8'), CANARY.podToken);
    writeFileSync(join(workspace, '.gitattributes'), '* filter=evil diff=evil\n');
    const config = (key: string, value: string) =>
      execFileSync('git', ['-C', workspace, 'config', '--local', key, value]);
    for (const key of [
      'filter.evil.clean',
      'filter.evil.process',
      'diff.evil.command',
      'diff.evil.textconv',
      'core.fsmonitor',
    ])
      config(key, evil);
    config('filter.evil.required', 'true');
    writeFileSync(join(workspace, 'README.md'), '# Changed again\n');
    const diff = await get<WorkspaceDiff>('/beeuni/diff');
    assert.ok(diff.patch.includes('# Changed again'));
    assert.ok(diff.untracked.includes('token'));
    assert.ok(!diff.patch.includes(CANARY.podToken));
    assert.equal(existsSync(marker), false, 'a program of the repository ran');
  });

  it('A201 runs a shell with the environment of commands, resizes it, and gives its exit code', async () => {
    const shell = await attach('?id=main&cols=100&rows=40');
    const { terminal } = await shell.notice('attached');
    assert.deepEqual(
      [terminal.id, terminal.command, terminal.cwd, terminal.status, terminal.attachedViewers],
      ['main', '/bin/bash', workspace, 'running', 1],
    );
    assert.equal(typeof terminal.pid, 'number');
    shell.send('stty size; echo "$BEEUNI_SESSION-$SHOP_KEY"; pwd\r');
    await shell.shows('40 100');
    await shell.shows(`fix-login-${CANARY.grantedSecret}`);
    await shell.shows(workspace);
    shell.notify({ type: 'resize', cols: 132, rows: 50 });
    shell.send('stty size\r');
    await shell.shows('50 132');
    shell.send('env | sort | head -c 100000; echo end-of-env\r');
    await shell.shows('end-of-env');
    for (const secret of [CANARY.podToken, CANARY.providerKey, credential, ...rig.controlPlane.credentials()]) {
      assert.ok(!shell.text().includes(secret), 'a credential of the daemon is in the environment');
    }
    shell.send('exit 7\r');
    assert.deepEqual(await shell.notice('exit'), { type: 'exit', exitCode: 7 });
    assert.equal((await shell.closed).code, 1000);
  });

  it('A201 reports a terminal that has ended, and does not make it again', async () => {
    const again = await attach('?id=main');
    const { terminal } = await again.notice('attached');
    assert.deepEqual([terminal.status, terminal.exitCode, terminal.pid], ['exited', 7, null]);
    await again.shows('50 132');
    assert.deepEqual(await again.notice('exit'), { type: 'exit', exitCode: 7 });
    assert.equal(await codeOf('DELETE', '/beeuni/terminals/main'), 'status 204');
    assert.equal(await codeOf('DELETE', '/beeuni/terminals/main'), 'not_found');
  });

  it('A201 keeps a terminal that nobody looks at, and replays the newest 64 KiB to whoever attaches', async () => {
    const first = await attach('?id=kept');
    await first.notice('attached');
    first.send('for i in $(seq 1 20000); do echo "line $i"; done; echo all-done\r');
    await first.shows(/[\r\n]all-done/);
    first.close();
    await first.closed;
    const { terminals } = await until('nobody looks', async () => {
      const list = await get<{ terminals: TerminalView[] }>('/beeuni/terminals');
      return list.terminals.some(({ attachedViewers }) => attachedViewers === 0) && list;
    });
    assert.deepEqual([terminals[0]?.status, terminals[0]?.abandoned], ['running', false]);
    const second = await attach('?id=kept');
    assert.equal((await second.notice('attached')).terminal.pid, terminals[0]?.pid);
    await second.shows('all-done');
    assert.ok(!second.text().includes('line 1\r\n'), 'more than the newest part was replayed');
    assert.ok(Buffer.byteLength(second.text()) <= 65_536 + 1_024);
    const third = await attach('?id=kept');
    await third.notice('attached');
    second.send('echo both-see-this\r');
    await second.shows(/[\r\n]both-see-this/);
    await third.shows(/[\r\n]both-see-this/);
    assert.equal(await codeOf('DELETE', '/beeuni/terminals/kept'), 'status 204');
    await second.closed;
  });

  it('A201 Ctrl-C reaches the program, one command line can be run alone, and bytes are bytes', async () => {
    const shell = await attach('?command=cat');
    await shell.notice('attached');
    shell.send('grüße 🐝\r');
    // The terminal's echo, and then what the program gives back: now it runs.
    await shell.shows('grüße 🐝\r\ngrüße 🐝');
    shell.send('\u0003');
    assert.equal((await shell.notice('exit')).exitCode, 130);
    const one = await attach(`?command=${encodeURIComponent('echo "$0"; exit 3')}`);
    assert.equal((await one.notice('exit')).exitCode, 3);
  });

  it('refuses what is no terminal: wrong ids, sizes, frames, plain requests, and one too many', async () => {
    for (const query of ['?id=UP', '?id=a/b', '?cols=0', '?rows=5000', '?command=']) {
      const socket = openSocket(`${(await daemon.url()).replace('http', 'ws')}/beeuni/terminal${query}`, {
        authorization: `Bearer ${credential}`,
      });
      assert.equal(await socket.refusal, 400, query);
    }
    assert.equal(await codeOf('GET', '/beeuni/terminal'), 'invalid_request');
    const odd = await attach('?command=cat');
    await odd.notice('attached');
    odd.raw('not json');
    assert.equal((await odd.closed).code, 1008);
    const large = await attach('?command=cat');
    await large.notice('attached');
    large.send('x'.repeat(70_000));
    assert.equal((await large.closed).code, 1009);
    const many: TestSocket[] = [];
    let refused: number | undefined;
    for (let n = 0; n < 20 && refused === undefined; n += 1) {
      const socket = await attach('?command=cat');
      many.push(socket);
      refused = await Promise.race([socket.refusal, socket.notice('attached').then(() => undefined)]);
    }
    assert.equal(refused, 429);
    for (const { id } of (await get<{ terminals: TerminalView[] }>('/beeuni/terminals')).terminals) {
      await daemon.call('DELETE', `/beeuni/terminals/${id}`, credential);
    }
  });

  it('A237 answers 503 for the client of a harness that is not ready, and gives the place back', async () => {
    for (let n = 0; n < 20; n += 1) {
      const url = `${(await daemon.url()).replace('http', 'ws')}/beeuni/terminal?client=true`;
      assert.equal(await openSocket(url, { authorization: `Bearer ${credential}` }).refusal, 503);
    }
    assert.deepEqual(await get('/beeuni/terminals'), { terminals: [] });
  });

  it('a program that floods its terminal is held back, and the daemon stays small and answers', async () => {
    const flood = await attach('?command=yes');
    await flood.notice('attached');
    flood.pause();
    const rss = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${daemon.pid}/status`, 'utf8'))?.[1]) / 1_024;
    const before = rss();
    for (let n = 0; n < 20; n += 1) await get('/beeuni/terminals');
    assert.ok(rss() - before < 60, `the daemon grew by ${rss() - before} MB`);
    flood.resume();
    await flood.shows('y\r\ny');
    flood.close();
  });

  it('ends its terminals when the daemon ends', async () => {
    const shell = await attach('?id=last');
    const pid = (await shell.notice('attached')).terminal.pid ?? 0;
    daemon.signal('SIGTERM');
    assert.equal((await daemon.exited).code, 0);
    await until('the shell is gone', () => !existsSync(`/proc/${pid}`));
  });
});
