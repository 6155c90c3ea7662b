// The git proxy through the real git client: fetches from the mirror, pushes by rule to the upstream.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { BeeuniError } from '#base/errors.ts';
import { createLogger } from '#base/log.ts';
import { makeRunAsCall, makeRunningCalls, type Revocation, type RunningCall } from '#controlplane/app/running-calls.ts';
import { type Mirrors } from '#controlplane/git/mirror.ts';
import { FLUSH, pktLine } from '#controlplane/git/pkt-line.ts';
import { makeGitProxy } from '#controlplane/git/proxy.ts';
import type { PushRule } from '#controlplane/git/push-rule.ts';
import { git as gitIn, startTestRemote, type TestRemote } from '#test/support/git-server.ts';
import { type MirrorRig, makeMirrorRig } from '#test/support/mirrors.ts';
import { until } from '#test/support/until.ts';

const CANARY = 'canary-push-51c2';
const BRANCH = 'beeuni/one-12345';
const execute = promisify(execFile);

let remote: TestRemote;
let rig: MirrorRig;
let folder: string;
let proxyUrl: string;
let server: Server;
let mirrors: Mirrors;
let rule: PushRule | undefined;
let behaviour: number | undefined;
let isAway = false;
let work: string;
let repository = 0;
const logs: string[] = [];
/** Requests that run, and what is said of their credential. */
let begun = 0;
let revocation: Revocation | undefined;
const calls = makeRunningCalls(
  async (holders) =>
    revocation === undefined ? [] : holders.map((holder) => ({ ...holder, why: revocation as Revocation })),
  async () => undefined,
);
const running = {
  ...calls,
  begin: (call: RunningCall) => {
    begun += 1;
    calls.begin(call);
  },
};
const name = (): string => `repo-${repository}.git`;

before(async () => {
  rig = await makeMirrorRig();
  ({ folder } = rig);
  remote = await startTestRemote({
    user: { username: 'bot', password: CANARY },
    onRequest: (request) => (isAway ? 503 : request.url?.includes('receive-pack') ? behaviour : undefined),
  });
  mirrors = rig.mirrorsWith();
  const proxy = makeGitProxy({
    git: rig.git,
    mirrors,
    whileAllowed: makeRunAsCall(running),
    findRepository: async () => ({ projectUid: `p-${repository}`, url: remote.urlOf(name()), defaultBranch: null }),
    readCredentials: async () => ({ kind: 'basic', username: 'bot', password: CANARY }),
    findPushRule: () => rule,
    folder: rig.mirrors,
    freshMs: 0,
    maxPushBytes: 5_000_000,
    timeoutMs: 20_000,
    log: createLogger({ level: 'debug', write: (line) => logs.push(line) }),
  });
  server = createServer((request, response) => {
    const controller = new AbortController();
    response.once('close', () => {
      if (!response.writableFinished) controller.abort();
    });
    const identity = { sessionUid: 's', generation: 1, podUid: 'p', namespace: 'n', projectUid: `p-${repository}` };
    const call = { identity, requestId: 'r', signal: controller.signal, request, response };
    const path = request.url ?? '';
    const handler = path.includes('/info/refs')
      ? proxy.infoRefs
      : path.endsWith('upload-pack')
        ? proxy.uploadPack
        : proxy.receivePack;
    handler(call).catch((error: unknown) => {
      if (response.headersSent) response.destroy();
      else
        response
          .writeHead(error instanceof BeeuniError ? error.status : 500)
          .end(error instanceof Error ? error.message : '');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  proxyUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/repo.git`;
});
after(async () => {
  server.closeAllConnections();
  server.close();
  await remote.close();
  await rig.remove();
});

const git = (...args: string[]): Promise<string> => gitIn(work, ...args);
/** The words of a git command that has to fail. */
const refusal = async (...args: string[]): Promise<string> => {
  try {
    await git(...args);
  } catch (error) {
    return (error as { stderr?: string }).stderr ?? String(error);
  }
  throw new Error(`git ${args.join(' ')} went through`);
};
const commit = async (file: string, text = file): Promise<string> => {
  await writeFile(join(work, file), text);
  await git('add', '--all');
  await git('commit', '--quiet', '--message', `Add ${file}`);
  return git('rev-parse', 'HEAD');
};

beforeEach(async () => {
  repository += 1;
  behaviour = undefined;
  revocation = undefined;
  isAway = false;
  rule = { branch: BRANCH, forcePush: 'Forbidden' };
  await remote.commit(name(), { 'README.md': 'hello\n' });
  work = await mkdtemp(join(folder, 'work-'));
  await execute('git', ['clone', '--quiet', proxyUrl, work], {
    env: { PATH: process.env['PATH'], GIT_CONFIG_GLOBAL: '/dev/null', HOME: folder },
  });
  await git('checkout', '--quiet', '-b', BRANCH);
});

test('a push of the session branch is upstream before the client hears that it went through, and in the mirror', async () => {
  const first = await commit('one.txt');
  await git('push', '--quiet', 'origin', BRANCH);
  assert.equal(await remote.head(name(), BRANCH), first);
  assert.equal(await mirrors.branchCommit(`p-${repository}`, BRANCH), first);
  const second = await commit('two.txt', 'x'.repeat(2_000_000));
  await git('push', '--quiet', 'origin', 'HEAD');
  assert.equal(await remote.head(name(), BRANCH), second);
  const clone = await mkdtemp(join(folder, 'clone-'));
  await gitIn(clone, 'clone', '--quiet', '--branch', BRANCH, proxyUrl, 'again');
  assert.equal(await gitIn(join(clone, 'again'), 'rev-parse', 'HEAD'), second);
});

test('a branch without new objects is pushed too', async () => {
  await git('push', '--quiet', 'origin', BRANCH);
  assert.equal(await remote.head(name(), BRANCH), await remote.head(name(), 'main'));
});

test('A203 pushes to other branches, to tags and deletions are refused by name, and change nothing', async () => {
  const before = await remote.head(name(), 'main');
  await commit('evil.txt');
  assert.match(
    await refusal('push', 'origin', 'HEAD:main'),
    /a session pushes its own branch only: beeuni\/one-12345, not main/,
  );
  await git('tag', 'v1');
  assert.match(await refusal('push', 'origin', 'v1'), /own branch only/);
  await git('push', '--quiet', 'origin', BRANCH);
  assert.match(await refusal('push', 'origin', `:${BRANCH}`), /does not delete its branch/);
  assert.equal(await remote.head(name(), 'main'), before);
  assert.equal(await mirrors.branchCommit(`p-${repository}`, 'main'), before);
});

test('of a push of several branches only the own one goes through', async () => {
  const head = await commit('own.txt');
  const said = await refusal('push', 'origin', `HEAD:refs/heads/${BRANCH}`, 'HEAD:refs/heads/other');
  assert.match(said, /other.*own branch only/);
  assert.equal(await remote.head(name(), BRANCH), head);
  assert.equal(await remote.head(name(), 'other'), undefined);
});

test('a forced push needs the word of the Project', async () => {
  const first = await commit('a.txt');
  await git('push', '--quiet', 'origin', BRANCH);
  await git('reset', '--quiet', '--hard', 'HEAD~1');
  const other = await commit('b.txt');
  assert.match(await refusal('push', '--force', 'origin', BRANCH), /forbids forced pushes/);
  assert.equal(await remote.head(name(), BRANCH), first);
  rule = { branch: BRANCH, forcePush: 'Allowed' };
  await git('push', '--quiet', '--force', 'origin', BRANCH);
  assert.equal(await remote.head(name(), BRANCH), other);
});

test('a push that the upstream does not take is told to the client, and the mirror does not keep it', async () => {
  await commit('a.txt');
  for (const [status, words] of [
    [503, /did not answer or broke/],
    [403, /refuses the credentials/],
  ] as const) {
    behaviour = status;
    assert.match(await refusal('push', 'origin', BRANCH), words);
    assert.equal(await mirrors.branchCommit(`p-${repository}`, BRANCH), undefined);
  }
  behaviour = undefined;
  const hook = join(remote.root, name(), 'hooks', 'pre-receive');
  await mkdir(join(remote.root, name(), 'hooks'), { recursive: true });
  await writeFile(hook, '#!/bin/sh\nexit 1\n', { mode: 0o755 });
  assert.match(await refusal('push', 'origin', BRANCH), /the upstream refuses the branch: .*pre-receive hook declined/);
  await rm(hook);
  const left = (await readdir(join(folder, 'mirrors'))).filter((entry) => /^(quarantine|credentials)-/.test(entry));
  assert.deepEqual(left, []);
  await git('push', '--quiet', 'origin', BRANCH);
  assert.equal(await remote.head(name(), BRANCH), await git('rev-parse', 'HEAD'));
});

test('commits that came to the upstream branch meanwhile are not lost', async () => {
  await commit('a.txt');
  await git('push', '--quiet', 'origin', BRANCH);
  const theirs = await remote.commit(name(), { 'theirs.txt': 'x' }, BRANCH);
  await commit('b.txt');
  assert.match(await refusal('push', 'origin', BRANCH), /fetch/);
  assert.equal(await remote.head(name(), BRANCH), theirs);
});

test('a push above the limit is refused', async () => {
  const noise = Buffer.alloc(8_000_000);
  for (let at = 0; at < noise.length; at += 4) noise.writeUInt32LE(Math.trunc(Math.sin(at) * 1e9) >>> 0, at);
  await writeFile(join(work, 'noise'), noise);
  await git('add', '--all');
  await git('commit', '--quiet', '--message', 'Add noise');
  await refusal('push', 'origin', BRANCH);
  assert.equal(await remote.head(name(), BRANCH), undefined);
});

for (const [why, status] of [
  ['superseded', 409],
  ['unauthenticated', 401],
] as const) {
  test(`D7 FC12 a push that is under way ends when its session is ${why}, and reaches nothing`, async () => {
    const commands = `${'0'.repeat(40)} ${'1'.repeat(40)} refs/heads/${BRANCH}\0 report-status\n`;
    const before = begun;
    const answer = new Promise<number | undefined>((resolve, reject) => {
      const pushing = request(`${proxyUrl}/git-receive-pack`, {
        method: 'POST',
        headers: { 'content-type': 'application/x-git-receive-pack-request' },
      });
      pushing.once('response', (response) => resolve(response.resume().statusCode)).once('error', reject);
      // The rest of the pack never comes.
      pushing.write(
        Buffer.concat([pktLine(commands), FLUSH, Buffer.from('PACK\x00\x00\x00\x02\x00\x00\x00\x01', 'latin1')]),
      );
    });
    await until('the push runs', () => begun > before);
    await running.look();
    revocation = why;
    await running.look();
    assert.equal(await answer, status);
    assert.equal(await remote.head(name(), BRANCH), undefined);
  });
}

test('a session that is gone pushes nothing, and damaged requests are refused', async () => {
  await commit('a.txt');
  rule = undefined;
  await refusal('push', 'origin', BRANCH);
  rule = { branch: BRANCH, forcePush: 'Forbidden' };
  const post = async (body: Buffer | string, headers: Record<string, string> = {}) =>
    (
      await fetch(`${proxyUrl}/git-receive-pack`, {
        method: 'POST',
        body,
        headers: { 'content-type': 'application/x-git-receive-pack-request', ...headers },
      })
    ).status;
  assert.equal(await post('zzzz'), 400);
  assert.equal(await post('00'), 400);
  assert.equal(await post('x', { 'content-encoding': 'gzip' }), 400);
  const lines = Buffer.from(`0010${'x'.repeat(12)}`.repeat(100_000));
  assert.equal(await post(gzipSync(lines), { 'content-encoding': 'gzip' }), 400);
  assert.equal(await post('0000', { 'content-type': 'text/plain' }), 415);
  assert.equal(await post('0000'), 200);
  assert.equal((await fetch(`${proxyUrl}/info/refs?service=git-shell`)).status, 400);
});

test('shallow, partial and old-protocol clones work, also while the upstream is away', async () => {
  isAway = true;
  const into = await mkdtemp(join(folder, 'clones-'));
  await gitIn(into, 'clone', '--quiet', '--depth=1', proxyUrl, 'shallow');
  await gitIn(into, 'clone', '--quiet', '--filter=blob:none', proxyUrl, 'partial');
  await gitIn(into, '-c', 'protocol.version=0', 'clone', '--quiet', proxyUrl, 'old');
  for (const clone of ['shallow', 'partial', 'old'])
    assert.ok((await readdir(join(into, clone))).includes('README.md'), clone);
});

test('the password of the upstream is in no log line and in no answer', () => {
  assert.ok(logs.length > 0);
  assert.equal(logs.join('\n').includes(CANARY), false);
});
