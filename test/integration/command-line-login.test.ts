// The way to a control plane through kubectl, which is played by a program here: contexts, tokens, forwarded ports.
import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { type CallPlace, runCommand, runProgramCall, startCommand } from '#test/support/command-line.ts';
import { until } from '#test/support/until.ts';

/** A kubectl that reads what it shall say from a file, and forwards by naming the port of the played server. */
const PLAYED = `#!/bin/sh
. "$SCENE"
echo "$*" >> "$CALLS"
case "$*" in
  *port-forward*)
    if [ -n "$FORWARD_ERROR" ]; then echo "$FORWARD_ERROR" >&2; exit 1; fi
    echo $$ >> "$PIDS"
    echo "Forwarding from 127.0.0.1:$PORT -> 8080"
    exec sleep 600 ;;
  *current-context*) echo "$CONTEXT" ;;
  *'create token'*) echo "token-of-$5" ;;
  *contexts*) echo team ;;
  *'get services'*) echo "$SERVICES" ;;
  *'config view'*) echo "$KUBECONFIG_JSON" ;;
  *) exit 3 ;;
esac
`;

/** What is played; see PLAYED. */
type Scene = Readonly<{
  context?: string;
  services?: string;
  forwardError?: string;
  user?: Readonly<Record<string, unknown>>;
}>;

describe('the connection of the command line', { timeout: 120_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'beeuni-connection-'));
  const path = (name: string): string => join(folder, name);
  let server: Server;
  let tokens: string[] = [];
  let refuse: (token: string) => boolean = () => false;

  before(async () => {
    writeFileSync(path('kubectl'), PLAYED);
    chmodSync(path('kubectl'), 0o755);
    server = createServer((request, response) => {
      const token = (request.headers.authorization ?? '').replace('Bearer ', '');
      tokens.push(token);
      const isRefused = refuse(token);
      const error = { error: { code: 'unauthenticated', message: 'no valid token', requestId: 'r' } };
      response.writeHead(isRefused ? 401 : 200, { 'content-type': 'application/json' });
      if (request.url?.includes('/events') === true) {
        const position = { sessionUid: 's', firstSeq: 1, headSeq: 0 };
        response.write(`event: hello\ndata: ${JSON.stringify(position)}\n\n`);
        return;
      }
      response.end(JSON.stringify(isRefused ? error : { items: [], cursor: null }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  after(() => {
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true, force: true });
  });
  beforeEach(() => {
    tokens = [];
    refuse = () => false;
    for (const name of ['calls', 'pids']) writeFileSync(path(name), '');
    rmSync(path('.config'), { recursive: true, force: true });
    play({});
  });

  const play = (scene: Scene): void => {
    const { port } = server.address() as AddressInfo;
    const values = {
      PORT: String(port),
      CALLS: path('calls'),
      PIDS: path('pids'),
      CONTEXT: scene.context ?? 'dev',
      SERVICES: scene.services ?? '',
      FORWARD_ERROR: scene.forwardError ?? '',
      KUBECONFIG_JSON: JSON.stringify({ users: [{ user: scene.user ?? {} }] }),
    };
    const lines = Object.entries(values).map(([name, value]) => `${name}='${value}'`);
    writeFileSync(path('scene'), `${lines.join('\n')}\n`);
  };
  const place: CallPlace = {
    homeDir: folder,
    cwd: folder,
    env: { BEEUNI_KUBECTL: path('kubectl'), SCENE: path('scene') },
  };
  const calls = (): string => readFileSync(path('calls'), 'utf8');
  const forwards = (): number[] => readFileSync(path('pids'), 'utf8').trim().split('\n').filter(Boolean).map(Number);
  const isGone = (pid: number): boolean => !existsSync(`/proc/${pid}`);

  test('finds the control plane by its labels, forwards a port for each call, and leaves none open', async () => {
    play({ services: 'apps/hive-control-plane' });
    const login = await runProgramCall(['login', '--service-account', 'team/ada'], place);
    assert.equal(login.code, 0, login.err);
    assert.match(login.err, /^logged in to apps\/hive-control-plane of dev, namespace team /);
    assert.match(calls(), /port-forward --namespace apps service\/hive-control-plane :8080/);
    const list = await runProgramCall(['projects', 'ls', '--json'], place);
    assert.deepEqual([list.code, list.out], [0, '[]\n'], list.err);
    assert.deepEqual(new Set(tokens), new Set(['token-of-ada']));
    assert.equal(forwards().length, 2);
    await until('every forward has ended', () => forwards().every(isGone));
  });

  test('a forwarded port that breaks is opened again, and Ctrl-C closes it', async () => {
    await runCommand(['login', '--service-account', 'team/ada'], place);
    const log = startCommand(['sessions', 'log', 'fix', '--follow'], place);
    const first = await until('the log is read', () => (tokens.length > 1 ? forwards().at(-1) : undefined));
    process.kill(first, 'SIGKILL');
    server.closeAllConnections();
    const second = await until('another port is forwarded', () => {
      const last = forwards().at(-1);
      return last !== first ? last : undefined;
    });
    log.interrupt();
    assert.equal((await log.done).code, 130);
    await until('it is closed', () => isGone(second));
  });

  test('takes the token of the kube context: as it is, from a file, or from its plug-in', async () => {
    writeFileSync(path('plugin'), '#!/bin/sh\necho "{\\"status\\":{\\"token\\":\\"of-plugin-$WHO\\"}}"\n', {
      mode: 0o755,
    });
    writeFileSync(path('token'), 'of-file\n');
    for (const [user, token] of [
      [{ token: 'of-context' }, 'of-context'],
      [{ tokenFile: path('token') }, 'of-file'],
      [{ exec: { command: path('plugin'), env: [{ name: 'WHO', value: 'ada' }] } }, 'of-plugin-ada'],
    ] as const) {
      play({ user });
      tokens = [];
      const login = await runCommand(['login'], place);
      assert.equal(login.code, 0, login.err);
      assert.deepEqual(new Set(tokens), new Set([token]));
      assert.doesNotMatch(readFileSync(path('.config/beeuni/config.json'), 'utf8'), /of-/);
    }
  });

  test('A199 a token that is refused is renewed once', async () => {
    play({ user: { tokenFile: path('token') } });
    writeFileSync(path('token'), 'good\n');
    await runCommand(['login'], place);
    writeFileSync(path('token'), 'stale\n');
    refuse = (token) => {
      writeFileSync(path('token'), 'fresh\n');
      return token === 'stale';
    };
    tokens = [];
    const list = await runCommand(['projects', 'ls', '--json'], place);
    assert.deepEqual([list.code, tokens], [0, ['stale', 'fresh']], list.err);
  });

  test('says what is missing: kubectl, a context, a right, a token, or which of several', async () => {
    const cases: readonly (readonly [Scene, string[], number, RegExp])[] = [
      [{ context: '' }, ['login'], 1, /no current kube context.*kubectl config use-context/s],
      [
        { forwardError: 'error: forbidden' },
        ['login', '--service-account', 'team/ada'],
        6,
        /: forbidden.*--server URL/s,
      ],
      [{ user: { 'client-certificate-data': 'x' } }, ['login'], 3, /client certificate.*--service-account/s],
      [{ user: { exec: { command: '/nowhere' } } }, ['login'], 3, /plug-in \/nowhere .*cannot be started/s],
      [{ services: 'a/x\nb/y' }, ['login', '--service-account', 'team/ada'], 1, /2 control planes.*--service/s],
      [{}, ['login', '--service-account', 'ada'], 2, /NAMESPACE\/NAME/],
      [{}, ['login', '--server', 'ftp://x'], 2, /no address of a server/],
    ];
    for (const [scene, words, code, message] of cases) {
      play(scene);
      const finished = await runCommand(words, place);
      assert.equal(finished.code, code, `${words.join(' ')}: ${finished.err}`);
      assert.match(finished.err, message);
    }
    const none = await runCommand(['login'], { ...place, env: { ...place.env, BEEUNI_KUBECTL: '/nowhere/kubectl' } });
    assert.match(none.err, /kubectl is not found[^]*BEEUNI_SERVER and BEEUNI_TOKEN/);
    assert.equal(existsSync(path('.config')), false);
  });
});
