// Files and terminals of a sandbox as people reach them: the command line, the public server of the control plane, and a real
// daemon behind it. Who may do what is decided by a guard of the test; the walk over all routes tests the real one.
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { ForbiddenError, UnauthenticatedError } from '#base/errors.ts';
import { type Listening, listen } from '#base/http/listen.ts';
import { type Guard, mount } from '#base/http/mount.ts';
import { createHttpServer, type HttpServer } from '#base/http/server.ts';
import { mountUpgrade } from '#base/http/upgrade.ts';
import { createLogger } from '#base/log.ts';
import type { Caller } from '#controlplane/app/caller.ts';
import type { Write } from '#controlplane/app/writes.ts';
import { joinSockets, openTerminal } from '#controlplane/daemons/join-terminal.ts';
import { makeReach } from '#controlplane/daemons/reach.ts';
import { makeWorkspaceHandlers } from '#controlplane/http/workspace.ts';
import type { Session } from '#schema/resources/session.ts';
import { getDiffRoute, getFilesRoute, getLogsRoute, putFilesRoute } from '#schema/rest/files.ts';
import { deleteTerminalRoute, getTerminalsRoute, openTerminalRoute } from '#schema/rest/terminals.ts';
import { type CallPlace, runCommand, startCommand, startInTerminal } from '#test/support/command-line.ts';
import { openSocket } from '#test/support/terminal-socket.ts';
import { until } from '#test/support/until.ts';
import { makeRig, type Rig } from './rig.ts';

const POD_UID = 'pod-1';
const TOKEN = 'ada-token';

/** A Session of which only what is read here is real. */
const aSession = (name: string, ip: string | undefined): Session =>
  ({
    metadata: { namespace: 'team', name, uid: `uid-${name}` },
    spec: { projectRef: { name: 'shop' }, operatingMode: name === 'asleep' ? 'Suspended' : 'Running' },
    status: { pod: { name, uid: POD_UID, ip } },
  }) as unknown as Session;

describe('a workspace behind the control plane', { timeout: 900_000 }, () => {
  let rig: Rig;
  let server: HttpServer;
  let listening: Listening;
  let ada: CallPlace;
  const writes: Write[] = [];
  const known = new Set([TOKEN, 'bob-token', 'eve-token']);
  const allowed = new Set([TOKEN, 'eve-token']);

  before(async () => {
    rig = await makeRig();
    const folder = join(rig.folders.root, 'bin');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'opencode'), '#!/bin/sh\necho cannot start today >&2\nexit 9\n');
    chmodSync(join(folder, 'opencode'), 0o755);
    const daemon = rig.start({ PATH: `${folder}:${process.env['PATH'] ?? ''}` });
    await rig.controlPlane.healthy('checked out', (document) => document.repo_ready);

    const sessions = [aSession('fix-login', '127.0.0.1'), aSession('asleep', undefined), aSession('new', undefined)];
    const daemons = makeReach({
      findSessionByUid: (uid) => sessions.find(({ metadata }) => metadata.uid === uid),
      findDaemon: async () => ({ pod_uid: POD_UID, daemon_credential: Buffer.from(rig.controlPlane.daemonCredential) }),
      unseal: (sealed) => sealed.toString('utf8'),
      daemonPort: Number(new URL(await daemon.url()).port),
    });
    const log = createLogger({ level: 'error', write: () => {} });
    server = createHttpServer({ listener: 'public', log });
    const guard: Guard<Caller> = {
      authenticate: async ({ header }) => {
        const token = /^Bearer (.+)$/.exec(header('authorization') ?? '')?.[1];
        if (token === undefined || !known.has(token)) throw new UnauthenticatedError('no valid token');
        return { kind: 'user', username: token, uid: token, groups: [], extra: {} };
      },
      authorize: async ({ route }, caller) => {
        if (caller.kind !== 'user' || !allowed.has(caller.username))
          throw new ForbiddenError('forbidden', `bob may not call ${route.operationId}`);
      },
    };
    const handlers = makeWorkspaceHandlers({
      fetchSession: async (namespace, name) =>
        sessions.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name),
      callDaemon: daemons.call,
      openTerminal: async (uid, query, handshake, signal) => {
        const opened = await openTerminal(await daemons.reach(uid), query, handshake, signal);
        return (_request, socket, head) => joinSockets(socket, head, opened);
      },
      recordWrite: async (write, _key, run) => {
        writes.push(write);
        return run();
      },
      maxTerminals: 3,
    });
    mount(server, getFilesRoute, handlers.getSessionFiles, guard);
    mount(server, putFilesRoute, handlers.putSessionFiles, guard);
    mount(server, getDiffRoute, handlers.getSessionDiff, guard);
    mount(server, getLogsRoute, handlers.getSessionLogs, guard);
    mount(server, getTerminalsRoute, handlers.getSessionTerminals, guard);
    mount(server, deleteTerminalRoute, handlers.deleteSessionTerminal, guard);
    mountUpgrade(server, openTerminalRoute, handlers.openSessionTerminal, guard);
    listening = await listen(server, { port: 0, host: '127.0.0.1' });
    ada = { env: { BEEUNI_SERVER: listening.url, BEEUNI_TOKEN: TOKEN, BEEUNI_NAMESPACE: 'team' } };
  });
  after(async () => {
    await listening?.stop(1_000);
    await rig?.stop();
  });

  const terminalUrl = (session = 'fix-login', query = ''): string =>
    `${listening.url.replace('http', 'ws')}/v1/namespaces/team/sessions/${session}/terminal${query}`;
  const authorization = `Bearer ${TOKEN}`;

  it('A239 lists, prints and writes files, shows the diff and the logs', async () => {
    const list = await runCommand(['sessions', 'files', 'fix-login'], ada);
    assert.match(list.out, /^README\.md +file +7$/m, list.err);
    assert.equal((await runCommand(['sessions', 'files', 'fix-login', 'README.md'], ada)).out, '# Shop\n');
    const place = { ...ada, stdin: '# By pipe\n' };
    const written = await runCommand(['sessions', 'files', 'fix-login', 'README.md', '--write', '-'], place);
    assert.deepEqual([written.code, written.err], [0, 'replaced README.md, 10 bytes\n']);
    assert.equal(readFileSync(join(rig.folders.workspace, 'README.md'), 'utf8'), '# By pipe\n');
    const diff = await runCommand(['sessions', 'diff', 'fix-login'], ada);
    assert.match(diff.out, /^-# Shop\n\+# By pipe$/m, diff.err);
    assert.match(
      (await runCommand(['sessions', 'diff', 'fix-login', '--stat'], ada)).out,
      / 1 \+ {5}1 - {2}README\.md/,
    );
    const logs = await runCommand(['sessions', 'logs', 'fix-login', '--source', 'harness'], ada);
    assert.match(logs.out, /cannot start today/, logs.err);
    const refused = await runCommand(['sessions', 'files', 'fix-login', '../secret'], ada);
    assert.deepEqual([refused.code, /path_not_allowed/.test(refused.err)], [3, true], refused.err);
  });

  it('FF12 a file and a diff with escape sequences are harmless on a terminal, and exact through a pipe', async () => {
    const evil = 'x\u001b]0;owned\u0007\n';
    writeFileSync(join(rig.folders.workspace, 'evil.txt'), evil);
    writeFileSync(join(rig.folders.workspace, 'README.md'), evil);
    const shown = await runCommand(['sessions', 'files', 'fix-login', 'evil.txt'], { ...ada, terminal: true });
    assert.equal(shown.out, 'x␛]0;owned␇\n');
    assert.equal((await runCommand(['sessions', 'files', 'fix-login', 'evil.txt'], ada)).out, evil);
    const diff = await runCommand(['sessions', 'diff', 'fix-login'], { ...ada, terminal: true });
    assert.ok(diff.out.includes('+x␛]0;owned␇') && !diff.out.includes('\u001b'));
  });

  it('A201 runs a command line and ends with its exit code', async () => {
    const finished = await runCommand(['sessions', 'shell', 'fix-login', '-c', 'pwd; exit 5'], ada);
    assert.deepEqual([finished.code, finished.out.trim()], [5, rig.folders.workspace], finished.err);
    const piped = await runCommand(['sessions', 'shell', 'fix-login', '-c', 'cat'], { ...ada, stdin: 'through\r' });
    assert.equal(piped.code, 0, JSON.stringify(piped));
    assert.match(piped.out, /through/);
    const unfinished = await runCommand(['sessions', 'shell', 'fix-login', '-c', 'cat'], {
      ...ada,
      stdin: 'no line end',
    });
    assert.equal(unfinished.code, 0, JSON.stringify(unfinished));
    assert.equal(writes.length, 3, JSON.stringify(writes));
    assert.deepEqual(
      [writes[0]?.operation, writes[0]?.subject, writes[0]?.name],
      ['openSessionTerminal', `user:${TOKEN}`, 'fix-login'],
    );
  });

  it('A201 every byte of a program that has ended reaches a slow reader, and then its exit code', async () => {
    const line = `stty -opost; head -c 5000000 /dev/zero | tr '\\0' x; exit 9`;
    const socket = openSocket(terminalUrl('fix-login', `?command=${encodeURIComponent(line)}`), { authorization });
    await socket.notice('attached');
    for (let bytes = 0; bytes < 5_000_000; ) {
      const now = await until('more has come', () => socket.text().length > bytes && socket.text().length);
      socket.pause();
      await new Promise((resolve) => setTimeout(resolve, 100));
      socket.resume();
      bytes = now;
    }
    assert.deepEqual(await socket.notice('exit'), { type: 'exit', exitCode: 9 });
    assert.equal(socket.text().length, 5_000_000);
  });

  it('A201 a person types, leaves with Ctrl-], and attaches again to the same shell', async () => {
    const shell = startCommand(['sessions', 'shell', 'fix-login', '--id', 'mine'], { ...ada, terminal: true });
    await until('it is attached', () => shell.err().includes('terminal mine'));
    shell.type('stty size; FOO=kept\r');
    await shell.shows('30 100');
    shell.type('\u001d');
    const left = await shell.done;
    assert.deepEqual([left.code, /attach again/.test(left.err)], [0, true]);
    const again = startCommand(['sessions', 'shell', 'fix-login', '--id', 'mine'], { ...ada, terminal: true });
    await again.shows('30 100');
    again.type('echo is-$FOO; exit 0\r');
    await again.shows('is-kept');
    assert.equal((await again.done).code, 0);
    const list = await runCommand(['sessions', 'shell', 'fix-login', '--list'], ada);
    assert.match(list.out, /^mine +exited +0 +0 +/m);
  });

  it('A201 in a real terminal keys, sizes and Ctrl-C go to the sandbox, and the terminal is given back as it was', async () => {
    const shell = await startInTerminal(['sessions', 'shell', 'fix-login', '--id', 'real'], ada);
    await shell.shows('terminal real; Ctrl-] leaves it running');
    shell.type('stty size\r');
    await shell.shows(/[\r\n]30 100/);
    shell.type('until [ "$(stty size)" = "50 132" ]; do sleep 0.1; done; echo now-$((1+1))\r');
    shell.resize(132, 50);
    await shell.shows('now-2');
    shell.type(`bash -c 'trap : INT; echo cat-$((40+2)); cat; echo code-$?'\r`);
    await shell.shows('cat-42');
    shell.type('echoed\r');
    await shell.shows(/echoed[\r\n]+echoed/);
    shell.type('\u0003');
    await shell.shows('code-130');
    shell.type('\u001d');
    assert.equal(await shell.exitCode, 0);
    assert.match(shell.text(), /attach again/);
    await runCommand(['sessions', 'shell', 'fix-login', '-c', 'true'], ada);
  });

  it('20-control-plane §1 no upgrade without a credential, without the right, or for a page of another origin', async () => {
    const cases: readonly (readonly [Record<string, string>, number])[] = [
      [{}, 401],
      [{ authorization: 'Bearer wrong' }, 401],
      [{ authorization: 'Bearer bob-token' }, 403],
      [{ authorization, origin: 'https://evil.example' }, 403],
      [{ authorization, origin: 'null' }, 403],
    ];
    for (const [headers, status] of cases) {
      assert.equal(await openSocket(terminalUrl(), headers).refusal, status, JSON.stringify(headers));
    }
    const same = openSocket(terminalUrl('fix-login', '?command=true'), { authorization, origin: listening.url });
    await same.notice('exit');
    const plain = await fetch(terminalUrl().replace('ws', 'http'), { headers: { authorization } });
    assert.equal(plain.status, 400);
    const path = '/v1/namespaces/team/sessions/fix-login/terminals';
    const headers = { authorization, connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c', 'http2-settings': '' };
    const answered = await new Promise<number | undefined>((resolve, reject) => {
      const outgoing = request(`${listening.url}${path}`, { headers }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      outgoing.once('error', reject).end();
    });
    assert.equal(answered, 200, 'an offer of another protocol is left aside');
  });

  it('a session without a sandbox says so before the upgrade, and to the command line', async () => {
    assert.equal(await openSocket(terminalUrl('ghost'), { authorization }).refusal, 404);
    assert.equal(await openSocket(terminalUrl('new'), { authorization }).refusal, 503);
    const asleep = await runCommand(['sessions', 'shell', 'asleep'], ada);
    assert.deepEqual([asleep.code, /is suspended on request; .*start it/.test(asleep.err)], [6, true], asleep.err);
    const none = await runCommand(['sessions', 'files', 'new'], ada);
    assert.match(none.err, /has no running sandbox now/);
  });

  it('bounds open terminals, passes on what the daemon refuses, and gives places back', async () => {
    const open = [1, 2, 3].map(() => openSocket(terminalUrl('fix-login', '?command=cat'), { authorization }));
    for (const socket of open) await socket.notice('attached');
    assert.equal(await openSocket(terminalUrl(), { authorization }).refusal, 429);
    for (const socket of open) socket.close();
    await Promise.all(open.map(({ closed }) => closed));
    assert.equal(await openSocket(terminalUrl('fix-login', '?id=Bad'), { authorization }).refusal, 400);
    await until('a place is free', async () => {
      const socket = openSocket(terminalUrl('fix-login', '?command=true'), { authorization });
      return Promise.race([socket.refusal.then(() => false), socket.notice('exit').then(() => true)]);
    });
  });

  it('20-control-plane §1 a right or a token that is taken away ends open terminals within seconds, and only theirs', async () => {
    const eve = { authorization: 'Bearer eve-token' };
    const mine = openSocket(terminalUrl('fix-login', '?command=cat'), { authorization });
    await mine.notice('attached');
    for (const [take, giveBack] of [
      [() => allowed.delete('eve-token'), () => allowed.add('eve-token')],
      [() => known.delete('eve-token'), () => known.add('eve-token')],
    ] as const) {
      const socket = openSocket(terminalUrl('fix-login', '?command=cat'), eve);
      await socket.notice('attached');
      take();
      await socket.closed;
      giveBack();
    }
    mine.send('still here\r');
    await mine.shows('still here\r\nstill here');
    mine.close();
  });

  it('a server that stops ends its terminals at once', async () => {
    const socket = openSocket(terminalUrl('fix-login', '?command=cat'), { authorization });
    await socket.notice('attached');
    const began = performance.now();
    await listening.stop(120_000);
    await socket.closed;
    assert.ok(performance.now() - began < 100_000, 'the stop waited for the terminal');
  });
});
