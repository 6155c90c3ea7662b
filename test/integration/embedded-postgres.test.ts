// The embedded Postgres: data outlive every kind of end, a stale lock stops nobody, the package is never written to.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chown, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import pg from 'pg';
import { systemClock } from '#base/clock.ts';
import { createEmbeddedPostgres } from '#controlplane/store/embedded.ts';
import { choosePostgresUser, findPostgresUser } from '#controlplane/store/embedded-binaries.ts';
import { until } from '#test/support/until.ts';

const PROCESS = join(import.meta.dirname, '..', 'support', 'embedded-process.ts');

const inFolder = async (work: (directory: string) => Promise<void>): Promise<void> => {
  const directory = await mkdtemp(join(tmpdir(), 'beeuni-embedded-'));
  try {
    await work(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
};

const embedded = (directory: string) =>
  createEmbeddedPostgres({ directory, settings: ['fsync=off'], log: () => undefined, clock: systemClock });

const ask = async (databaseUrl: string, sql: string): Promise<Record<string, unknown>[]> => {
  const client = new pg.Client({ connectionString: databaseUrl });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query(sql)).rows as Record<string, unknown>[];
  } finally {
    await client.end();
  }
};

/** Starts the process of support/ as a user, or as this one; gives back the URL that it prints. */
const startProcess = async (directory: string, user: { uid?: number; gid?: number } = {}) => {
  const child = spawn(process.execPath, [PROCESS, directory], {
    env: { PATH: process.env['PATH'] ?? '', HOME: directory },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...user,
  });
  let output = '';
  let errors = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    errors += chunk.toString();
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const url = await until('the process prints its URL', () => (output.includes('\n') ? output.trim() : undefined), {
    deadlineMs: 60_000,
    describe: () => errors.slice(-2_000),
  });
  return { child, url, exited };
};

test(
  'a server that outlived its killed parent is taken over, with its data and its password',
  { timeout: 180_000 },
  () =>
    inFolder(async (directory) => {
      const first = await startProcess(directory);
      await ask(first.url, 'create table kept as select 42 as answer');
      first.child.kill('SIGKILL');
      await first.exited;
      assert.deepEqual(await ask(first.url, 'select answer from kept'), [{ answer: 42 }]);
      const second = embedded(directory);
      const url = await second.start();
      assert.equal(url, first.url);
      assert.deepEqual(await ask(url, 'select answer from kept'), [{ answer: 42 }]);
      await second.stop();
      await assert.rejects(ask(url, 'select 1'));
    }),
);

test('a lock file that names a living stranger does not keep the server from starting', { timeout: 180_000 }, () =>
  inFolder(async (directory) => {
    const first = embedded(directory);
    await ask(await first.start(), 'create table kept as select 1 as one');
    process.kill(first.pid() ?? 0, 'SIGKILL');
    await first.stop();
    const lock = join(directory, 'data', 'postmaster.pid');
    const lines = (await readFile(lock, 'utf8').catch(() => `0\n${join(directory, 'data')}\n`)).split('\n');
    await writeFile(lock, [String(process.pid), ...lines.slice(1)].join('\n'));
    const second = embedded(directory);
    assert.deepEqual(await ask(await second.start(), 'select one from kept'), [{ one: 1 }]);
    await second.stop();
  }),
);

test('it runs as an ordinary user who may only read the package', { timeout: 180_000 }, async (t) => {
  const { switchUser } = await findPostgresUser();
  if (switchUser === undefined) return t.skip('needs root, to become somebody else');
  await inFolder(async (directory) => {
    await chown(directory, switchUser.uid, switchUser.gid);
    const running = await startProcess(directory, switchUser);
    const [row] = await ask(running.url, 'show server_version');
    assert.match(String(row?.['server_version']), /^18\./);
    assert.equal((await stat(join(directory, 'data'))).uid, switchUser.uid);
    assert.equal((await stat(join(directory, 'password'))).mode & 0o077, 0);
    running.child.kill('SIGTERM');
    await running.exited;
  });
});

test('Postgres is run by the own user, by root only as somebody else, and never without an entry', () => {
  const passwd =
    'root:x:0:0::/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n';
  assert.deepEqual(choosePostgresUser(passwd, 1000), { name: 'node', switchUser: undefined });
  assert.deepEqual(choosePostgresUser(passwd, 0), { name: 'nobody', switchUser: { uid: 65534, gid: 65534 } });
  assert.throws(() => choosePostgresUser(passwd, 1001), /uid 1001 has no entry/);
  assert.throws(() => choosePostgresUser('root:x:0:0::/root:/bin/sh\n', 0), /neither postgres nor nobody/);
});
