// Mirrors of repositories against a real git server: what is found, what is refused, what a hostile repository gets to run.
import assert from 'node:assert/strict';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type GitCredentials, parseCredentials } from '#controlplane/git/credentials.ts';
import type { RepositoryTarget } from '#controlplane/git/mirror.ts';
import { MirrorDamagedError, makeReadFiles } from '#controlplane/git/objects.ts';
import type { Git } from '#controlplane/git/run.ts';
import { startTestRemote, type TestRemote } from '#test/support/git-server.ts';
import { type MirrorRig, makeMirrorRig } from '#test/support/mirrors.ts';

const CANARY = 'canary-password-7f3a';
const NONE: GitCredentials = { kind: 'none' };

let remote: TestRemote;
let closed: TestRemote;
let rig: MirrorRig;
let folder: string;
let git: Git;
let mirrorsWith: MirrorRig['mirrorsWith'];
let behaviour: false | number | undefined;
let seen = 0;

const target = (projectUid: string, url: string, defaultBranch: string | null = null): RepositoryTarget => ({
  projectUid,
  url,
  defaultBranch,
});

before(async () => {
  rig = await makeMirrorRig();
  ({ folder, git, mirrorsWith } = rig);
  remote = await startTestRemote({
    onRequest: () => {
      seen += 1;
      return behaviour;
    },
  });
  closed = await startTestRemote({ user: { username: 'bot', password: CANARY } });
});
after(async () => {
  await remote.close();
  await closed.close();
  await rig.remove();
});

test('a mirror holds the default branch of the remote, follows it, and drops branches that are gone', async () => {
  const mirrors = mirrorsWith();
  const first = await remote.commit('follow.git', { 'beeuni.yaml': 'one' });
  await remote.commit('follow.git', { a: 'b' }, 'other');
  const to = target('follow', remote.urlOf('follow.git'));
  assert.deepEqual(await mirrors.sync(to, NONE), { ok: true, defaultBranch: 'main', commit: first });
  assert.notEqual(await mirrors.branchCommit('follow', 'other'), undefined);
  const second = await remote.commit('follow.git', { 'beeuni.yaml': 'two' });
  await (await import('#test/support/git-server.ts')).git(join(remote.root, 'follow.git'), 'branch', '-D', 'other');
  assert.deepEqual(await mirrors.sync(to, NONE), { ok: true, defaultBranch: 'main', commit: second });
  assert.equal(await mirrors.branchCommit('follow', 'other'), undefined);
});

test('fetches that are asked for at once share one run', async () => {
  const mirrors = mirrorsWith();
  await remote.commit('share.git', { a: 'b' });
  const to = target('share', remote.urlOf('share.git'));
  await mirrors.sync(to, NONE);
  seen = 0;
  await mirrors.sync(to, NONE);
  const one = seen;
  seen = 0;
  const results = await Promise.all(Array.from({ length: 20 }, () => mirrors.sync(to, NONE)));
  assert.equal(
    results.every((result) => result.ok),
    true,
  );
  assert.ok(seen <= 2 * one, `20 fetches made ${seen} requests, one makes ${one}`);
});

test('each way in which a remote can fail has its own reason, and no credential is in any message', async () => {
  const mirrors = mirrorsWith();
  const reasonOf = async (to: RepositoryTarget, credentials: GitCredentials = NONE): Promise<string> => {
    const result = await mirrors.sync(to, credentials);
    if (result.ok) return 'Synced';
    assert.equal(result.problem.message.includes(CANARY), false);
    return result.problem.reason;
  };
  await remote.commit('known.git', { a: 'b' });
  await closed.commit('secret.git', { a: 'b' });
  const basic = (password: string): GitCredentials => ({ kind: 'basic', username: 'bot', password });
  assert.equal(await reasonOf(target('f1', 'http://127.0.0.1:1/x.git')), 'Unreachable');
  assert.equal(await reasonOf(target('f2', remote.urlOf('nothing.git'))), 'NotFound');
  assert.equal(await reasonOf(target('f3', remote.urlOf('known.git'), 'gone')), 'BranchNotFound');
  assert.equal(await reasonOf(target('f4', closed.urlOf('secret.git'))), 'AuthFailed');
  assert.equal(await reasonOf(target('f5', closed.urlOf('secret.git')), basic(`${CANARY}-wrong`)), 'AuthFailed');
  assert.equal(await reasonOf(target('f6', closed.urlOf('secret.git')), basic(CANARY)), 'Synced');
  assert.equal(await reasonOf(target('f7', 'http://10.0.0.1/x.git')), 'HostNotAllowed');
  assert.equal(await reasonOf(target('f8', 'ext::sh -c touch% /tmp/pwned')), 'HostNotAllowed');
  assert.equal(await reasonOf(target('f9', '--upload-pack=touch /tmp/pwned')), 'HostNotAllowed');
  const ssh: GitCredentials = { kind: 'ssh', privateKey: 'no key\n', knownHosts: '' };
  assert.equal(await reasonOf(target('f13', 'ssh://git@127.0.0.1:1/x.git'), ssh), 'Unreachable');
  assert.equal(await reasonOf(target('f14', 'git@127.0.0.1:x.git')), 'AuthFailed');
  behaviour = 503;
  assert.equal(await reasonOf(target('f10', remote.urlOf('known.git'))), 'Unreachable');
  behaviour = 302;
  assert.equal(await reasonOf(target('f11', remote.urlOf('known.git'))), 'NotFound');
  behaviour = undefined;
  const only = mirrorsWith({ hostRule: { allowedHosts: ['git.example.com'], insecureHosts: [] } });
  const refused = await only.sync(target('f12', 'https://other.example.com/x.git'), NONE);
  assert.equal(refused.ok ? '' : refused.problem.reason, 'HostNotAllowed');
});

test('a remote that never answers is given up, and one that is too large is dropped', async () => {
  behaviour = false;
  const slow = await mirrorsWith({ fetchTimeoutMs: 400 }).sync(target('slow', remote.urlOf('known.git')), NONE);
  behaviour = undefined;
  assert.equal(slow.ok ? '' : slow.problem.reason, 'TimedOut');
  await remote.commit('large.git', {
    big: Buffer.from(Array.from({ length: 3_000_000 }, (_, at) => (at * 7919) % 251)),
  });
  const noise = Buffer.alloc(3_000_000);
  for (let at = 0; at < noise.length; at += 4) noise.writeUInt32LE(Math.trunc(Math.sin(at) * 1e9) >>> 0, at);
  await remote.commit('large.git', { noise });
  const mirrors = mirrorsWith({ maxRepositoryBytes: 1_000_000 });
  const large = await mirrors.sync(target('large', remote.urlOf('large.git')), NONE);
  assert.equal(large.ok ? '' : large.problem.reason, 'TooLarge');
  assert.equal(await mirrors.find('large'), undefined);
});

test('a lost or damaged mirror is made again by the next fetch', async () => {
  const mirrors = mirrorsWith();
  const commit = await remote.commit('heal.git', { 'beeuni.yaml': 'x' });
  const to = target('heal', remote.urlOf('heal.git'));
  await mirrors.sync(to, NONE);
  const path = (await mirrors.find('heal')) ?? '';
  await rm(path, { recursive: true });
  assert.deepEqual(await mirrors.sync(to, NONE), { ok: true, defaultBranch: 'main', commit });
  await rm(join(path, 'objects'), { recursive: true });
  assert.deepEqual(await mirrors.sync(to, NONE), { ok: true, defaultBranch: 'main', commit });
  await writeFile(join(path, 'HEAD'), 'garbage');
  assert.deepEqual(await mirrors.sync(to, NONE), { ok: true, defaultBranch: 'main', commit });
  for (const name of await readdir(join(path, 'objects', 'pack')))
    await writeFile(join(path, 'objects', 'pack', name), '', { mode: 0o600 }).catch(() => undefined);
  await rm(join(path, 'objects'), { recursive: true });
  mirrors.distrust('heal');
  assert.deepEqual(await mirrors.sync(to, NONE), { ok: true, defaultBranch: 'main', commit });
});

test('credentials lie in files of their own while git runs, and nowhere afterwards', async () => {
  const mirrors = mirrorsWith();
  await closed.commit('lend.git', { a: 'b' });
  const credentials: GitCredentials = { kind: 'basic', username: 'bot', password: CANARY };
  const running = mirrors.sync(target('lend', closed.urlOf('lend.git')), credentials);
  const exposed: string[] = [];
  let isDone = false;
  void running.finally(() => {
    isDone = true;
  });
  while (!isDone) {
    for (const pid of (await readdir('/proc')).filter(
      (entry) => /^\d+$/.test(entry) && entry !== String(process.pid),
    )) {
      const text =
        (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')) +
        (await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => ''));
      if (text.includes(CANARY)) exposed.push(pid);
    }
  }
  assert.equal((await running).ok, true);
  assert.deepEqual(exposed, []);
  assert.deepEqual(
    (await readdir(join(folder, 'mirrors'))).filter((name) => name.startsWith('credentials-')),
    [],
  );
});

test('a Secret gives credentials by its keys, and says which are missing', () => {
  const parse = (data: Record<string, string>, url: string) =>
    parseCredentials(Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value)])), url);
  const https = 'https://git.example.com/x.git';
  assert.deepEqual(parse({ username: 'u', password: 'p\n' }, https), {
    ok: true,
    credentials: { kind: 'basic', username: 'u', password: 'p' },
  });
  assert.deepEqual(parse({ token: 't' }, https), {
    ok: true,
    credentials: { kind: 'basic', username: 'x-access-token', password: 't' },
  });
  assert.equal(parse({ 'ssh-privatekey': 'k' }, 'git@git.example.com:x.git').ok, true);
  const reason = (verdict: ReturnType<typeof parse>) => (verdict.ok ? 'ok' : verdict.reason);
  assert.equal(reason(parse({}, https)), 'KeyMissing');
  assert.equal(reason(parse({ 'ssh-privatekey': 'k' }, https)), 'TypeUnsupported');
  assert.equal(reason(parse({ token: 't' }, 'ssh://git@git.example.com/x.git')), 'KeyMissing');
  assert.equal(reason(parse({ token: 'two\nlines' }, https)), 'TypeUnsupported');
});

test('FF8 FE5 a hostile repository runs nothing and its links, huge and binary files are not read', async () => {
  const mark = join(folder, 'pwned');
  const files = {
    '.gitattributes': '* filter=evil diff=evil\n',
    '.gitmodules': `[submodule "x"]\n\tpath = x\n\turl = ext::sh -c "touch ${mark}"\n`,
    '.git-config': `[core]\n\tfsmonitor = touch ${mark}\n\thooksPath = hooks\n`,
    'hooks/post-checkout': `#!/bin/sh\ntouch ${mark}\n`,
    'beeuni.yaml': { link: '/etc/passwd' },
    'agents/huge.md': 'x'.repeat(2_000_000),
    'agents/binary.md': Buffer.from([0xff, 0xfe, 0x00]),
    'agents/fine.md': 'é',
    'dir/a': 'x',
  };
  const commit = await remote.commit('hostile.git', files);
  const mirrors = mirrorsWith();
  assert.equal((await mirrors.sync(target('hostile', remote.urlOf('hostile.git')), NONE)).ok, true);
  const path = (await mirrors.find('hostile')) ?? '';
  const read = await makeReadFiles(git)(
    path,
    commit,
    ['beeuni.yaml', 'agents/huge.md', 'agents/binary.md', 'agents/fine.md', 'dir', 'none', '../HEAD', '*'],
    1_048_576,
  );
  assert.deepEqual(Object.fromEntries(read), {
    'beeuni.yaml': { kind: 'symlink' },
    'agents/huge.md': { kind: 'too-large', size: 2_000_000 },
    'agents/binary.md': { kind: 'not-utf8' },
    'agents/fine.md': { kind: 'text', text: 'é' },
    dir: { kind: 'not-a-file' },
    none: { kind: 'missing' },
    '../HEAD': { kind: 'missing' },
    '*': { kind: 'missing' },
  });
  assert.equal((await readdir(folder)).includes('pwned'), false);
  await assert.rejects(makeReadFiles(git)(path, 'f'.repeat(40), ['a'], 10), MirrorDamagedError);
});
