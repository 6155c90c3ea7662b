// The command line against a real control plane and a real API server. A sandbox is played through the store: what it would
// have sent is in the log, and what people see of it is what is tested.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { PROJECTS } from '#kube/resource-types.ts';
import {
  type CallPlace,
  runCommand,
  runProgramCall,
  startCommand,
  startInTerminal,
} from '#test/support/command-line.ts';
import { type CommandLineWorld, startCommandLineWorld } from '#test/support/command-line-world.ts';
import { aPrompt } from '#test/support/stored-sessions.ts';
import { until } from '#test/support/until.ts';
import { ensureKubectlHelm } from '#tools/kubectl-helm.ts';

describe('the command line', { timeout: 900_000 }, () => {
  let world: CommandLineWorld;
  let api: CommandLineWorld['api'];
  let control: CommandLineWorld['control'];
  let namespace: string;
  let parts: CommandLineWorld['parts'];
  let ada: CallPlace;
  let bob: CallPlace;
  let folder: string;
  before(async () => {
    world = await startCommandLineWorld();
    ({ api, control, namespace, parts, ada, bob, folder } = world);
  });
  after(async () => {
    await world?.stop();
  });
  const sandbox = (name: string) => world.sandbox(name);

  test('A238 lists projects as a table and as JSON', async () => {
    const table = await runCommand(['projects', 'ls'], ada);
    assert.equal(table.code, 0, table.err);
    assert.match(table.out, /^NAME +READY +REASON +COMMIT +AGE +REPOSITORY\nshop +/);
    const json = await runCommand(['projects', 'ls', '--json'], ada);
    const [project] = JSON.parse(json.out) as { name: string }[];
    assert.equal(project?.name, 'shop');
    const everywhere = await runCommand(['sessions', 'ls', '-A'], ada);
    assert.deepEqual([everywhere.code, /may not list sessions/.test(everywhere.err)], [3, true], everywhere.err);
  });

  test('A238 shows a project, what it would run and why, and asks for a sync', async () => {
    const get = await runCommand(['projects', 'get', 'shop'], ada);
    assert.match(get.out, /^repository: https:\/\/git\.example\.com\/team\/shop\.git$/m, get.err);
    const harness = await runCommand(['projects', 'harness', '-p', 'shop'], ada);
    assert.match(harness.out, /^harness: +opencode\nreason: +default$/m, harness.err);
    assert.match(harness.out, /^config_releases: +off, not available in this installation$/m);
    const before = (await api.admin.client.get(PROJECTS, { namespace, name: 'shop' }))?.['spec'] as Record<
      string,
      unknown
    >;
    assert.equal((await runCommand(['projects', 'sync', `${namespace}/shop`], ada)).code, 0);
    const synced = (await api.admin.client.get(PROJECTS, { namespace, name: 'shop' }))?.['spec'] as Record<
      string,
      unknown
    >;
    assert.notEqual(synced['syncToken'], before['syncToken']);
    const agents = await runCommand(['agents', 'ls', '-p', 'shop'], ada);
    assert.deepEqual([agents.code, /no valid manifest yet/.test(agents.err)], [5, true], agents.err);
    writeFileSync(join(folder, 'broken.yaml'), 'beeuni_version: 2\ndefault_agent: [\n');
    const judged = await runCommand(['projects', 'validate', 'broken.yaml', '-p', 'shop'], { ...ada, cwd: folder });
    assert.deepEqual([judged.code, /has not been synced yet/.test(judged.err)], [4, true], judged.err);
    assert.equal((await runCommand(['projects', 'get'], ada)).code, 2);
  });

  test('A239 creates, shows, stops, starts, restarts and deletes a session', async () => {
    const made = await runCommand(['sessions', 'new', 'life', '-p', 'shop'], ada);
    assert.deepEqual([made.code, made.out], [0, 'life\n'], made.err);
    const info = await runCommand(['sessions', 'info', 'life'], ada);
    assert.match(info.out, /^project: +shop$/m);
    const modeOf = async () =>
      (
        JSON.parse((await runCommand(['sessions', 'info', 'life', '--json'], ada)).out) as {
          spec: Record<string, string>;
        }
      ).spec;
    assert.equal((await runCommand(['sessions', 'stop', 'life'], ada)).code, 0);
    assert.equal((await modeOf())['operatingMode'], 'Suspended');
    assert.equal((await runCommand(['sessions', 'start', 'life'], ada)).code, 0);
    assert.equal((await modeOf())['operatingMode'], 'Running');
    assert.equal((await runCommand(['sessions', 'restart', 'life'], ada)).code, 0);
    assert.notEqual((await modeOf())['restartToken'], undefined);
    const asked = await runCommand(['sessions', 'rm', 'life'], ada);
    assert.deepEqual([asked.code, asked.err.includes('--yes')], [2, true]);
    assert.equal((await runCommand(['sessions', 'rm', 'life', '--yes'], ada)).code, 0);
    await until('it is gone', async () => (await runCommand(['sessions', 'info', 'life'], ada)).code === 4);
  });

  test('A239 sends one prompt, shows its turn as it comes and ends with the outcome', async () => {
    await runCommand(['sessions', 'new', 'talk', '-p', 'shop'], ada);
    const box = await sandbox('talk');
    const call = startCommand(['sessions', 'chat', 'talk', 'Say', 'hello.'], ada);
    const turn = await box.take();
    await box.say(turn, 'hello to you');
    await call.shows('hello to you');
    await box.end(turn);
    const finished = await call.done;
    assert.deepEqual([finished.code, finished.out], [0, 'hello to you\n'], finished.err);

    const failing = startCommand(['sessions', 'chat', 'talk', 'Fail.'], ada);
    const second = await box.take();
    await box.end(second, 'Failed', 'the model is gone');
    const failed = await failing.done;
    assert.equal(failed.code, 1);
    assert.match(failed.out, /turn failed: the model is gone/);
  });

  test('A155 A239 a prompt whose turn broke off is followed until it has ended for good', async () => {
    await runCommand(['sessions', 'new', 'again', '-p', 'shop'], ada);
    const box = await sandbox('again');
    const call = startCommand(['sessions', 'chat', 'again', 'Say', 'hello.'], ada);
    await box.end(await box.take(), 'Interrupted', 'the sandbox is gone');
    await until('it says so', () => call.err().includes('is tried again'));
    const second = await box.take();
    await box.say(second, 'hello after all');
    await box.end(second);
    const finished = await call.done;
    assert.equal(finished.code, 0, finished.err);
    assert.match(finished.out, /turn interrupted: the sandbox is gone\n[^]*hello after all\n$/);

    const twice = startCommand(['sessions', 'chat', 'again', 'Fail', 'twice.'], ada);
    for (let attempt = 1; attempt <= 2; attempt += 1) await box.end(await box.take(), 'Interrupted', 'gone');
    assert.equal((await twice.done).code, 1);
  });

  test('A239 the first Ctrl-C ends the turn, the second one leaves', async () => {
    await runCommand(['sessions', 'new', 'break', '-p', 'shop'], ada);
    const box = await sandbox('break');
    const call = startCommand(['sessions', 'chat', 'break', 'Work long.'], ada);
    const turn = await box.take();
    await box.say(turn, 'working');
    await call.shows('working');
    call.interrupt();
    await until('the abort is asked for', async () => {
      const errands = await parts.health.errands(box.claim.sessionUid, box.claim.podUid);
      return errands?.abort_turn_id === turn;
    });
    await box.end(turn, 'Aborted');
    assert.equal((await call.done).code, 1);

    const left = startCommand(['sessions', 'chat', 'break', 'Work on.'], ada);
    const next = await box.take();
    await box.say(next, 'again');
    await left.shows('again');
    left.interrupt();
    left.interrupt();
    assert.equal((await left.done).code, 130);
  });

  test('A239 a person types prompts, sees the answers and leaves', async () => {
    await runCommand(['sessions', 'new', 'typed', '-p', 'shop'], ada);
    const box = await sandbox('typed');
    const call = startCommand(['sessions', 'chat', 'typed'], { ...ada, terminal: true });
    await call.shows('> ');
    call.type('first question\r');
    const turn = await box.take();
    await box.send(turn, 'turn.started', {
      promptId: await box.promptOf(turn),
      messageId: 'x',
      agent: null,
      model: null,
      harness: 'opencode',
    });
    await box.say(turn, 'first answer');
    await call.shows('first answer');
    await box.end(turn);
    await call.shows(/first answer\n[^]*> /);

    call.type('!echo shell\r');
    const shell = await box.take();
    const [prompt] = await parts.rows<{ id: string; message_id: string }>(
      'select id, message_id from prompts where turn_id = $1',
      shell,
    );
    const begun = {
      promptId: prompt?.id,
      messageId: prompt?.message_id,
      agent: null,
      model: null,
      harness: 'opencode',
    };
    await box.send(shell, 'turn.started', begun);
    const state = { input: { command: 'echo shell' }, output: 'what it printed' };
    for (const status of ['running', 'completed']) {
      const part = {
        id: 'p-shell',
        messageId: 'm-shell',
        type: 'tool',
        tool: 'bash',
        callId: 'c',
        state: { ...state, status },
      };
      await box.send(shell, 'message.part.updated', { part });
    }
    await call.shows(/> bash echo shell\n[^]*what it printed/);
    await box.end(shell);
    call.type('/quit\r');
    assert.equal((await call.done).code, 0);
  });

  test("A154 a steer that joined ends with that turn; one into somebody else's says that it waits, and does", async () => {
    await runCommand(['sessions', 'new', 'steered', '-p', 'shop'], ada);
    const box = await sandbox('steered');
    const promptOf = (text: string) =>
      until(`${text} is stored`, async () => {
        const found = 'select id, message_id from prompts where session_uid = $1 and parts::text like $2';
        return (await parts.rows<{ id: string; message_id: string }>(found, box.claim.sessionUid, `%${text}%`))[0];
      });
    const typed = startCommand(['sessions', 'chat', 'steered', '--steer'], { ...ada, terminal: true });
    await typed.shows('> ');
    typed.type('begin\r');
    const own = await box.take();
    const begun = { agent: null, model: null, harness: 'opencode' };
    await box.send(own, 'turn.started', { ...begun, promptId: await box.promptOf(own), messageId: 'x' });
    const call = startCommand(['sessions', 'chat', 'steered', '--steer', 'and the docs'], ada);
    typed.type('and a test\r');
    for (const text of ['and the docs', 'and a test']) {
      const { id, message_id: messageId } = await promptOf(text);
      await box.send(own, 'prompt.steered', { promptId: id, messageId });
    }
    await box.say(own, 'all done');
    await box.end(own);
    assert.equal((await call.done).code, 0);
    await typed.shows(/all done\n[^]*> /);

    const key = { uid: box.claim.sessionUid, namespace: world.namespace, name: 'steered', projectUid: 'project-1' };
    await parts.inbox.admit(key, aPrompt(key.uid, 'of-bert', { sentBy: 'user:bert' }));
    const others = await box.take();
    await box.send(others, 'turn.started', { ...begun, promptId: await box.promptOf(others), messageId: 'of-bert' });
    await box.say(others, 'bert');
    await typed.shows('bert');
    typed.type('me too\r');
    await typed.shows("the running turn is somebody else's");
    await box.end(others);
    await box.end(await box.take());
    typed.type('/quit\r');
    assert.equal((await typed.done).code, 0);
  });

  test('A239 in a real terminal Ctrl-C ends the turn, and a second one leaves', async () => {
    await runCommand(['sessions', 'new', 'real', '-p', 'shop'], ada);
    const box = await sandbox('real');
    const call = await startInTerminal(['sessions', 'chat', 'real'], ada);
    await call.shows('> ');
    call.type('work long\r');
    const turn = await box.take();
    const started = {
      promptId: await box.promptOf(turn),
      messageId: 'x',
      agent: null,
      model: null,
      harness: 'opencode',
    };
    await box.send(turn, 'turn.started', started);
    await box.say(turn, 'working on it');
    await call.shows('working on it');
    call.type('\u0003');
    await call.shows('ending the turn');
    await until('the abort is asked for', async () => {
      const errands = await parts.health.errands(box.claim.sessionUid, box.claim.podUid);
      return errands?.abort_turn_id === turn;
    });
    await box.end(turn, 'Aborted');
    await call.shows('-- turn aborted');
    call.type('\u0003');
    assert.equal(await call.exitCode, 130);
  });

  test('FF12 an escape sequence of an agent reaches no terminal, in text, in tools, or in JSON', async () => {
    await runCommand(['sessions', 'new', 'hostile', '-p', 'shop'], ada);
    const box = await sandbox('hostile');
    const evil = '\u001b]0;owned\u0007 \u001b[2J \u009b31m \u202eabc';
    const call = startCommand(['sessions', 'chat', 'hostile', 'Go.'], ada);
    const turn = await box.take();
    await box.say(turn, `evil ${evil}`);
    const tool = { id: 't1', messageId: 'm', type: 'tool', tool: `bash${evil}`, callId: 'c1' };
    await box.send(turn, 'message.part.updated', {
      part: { ...tool, state: { status: 'running', input: { command: evil } } },
    });
    await box.send(turn, 'workspace.pushed', { branch: `b${evil}`, commit: evil });
    await box.end(turn, 'Failed', evil);
    const chat = await call.done;
    const log = await runCommand(['sessions', 'log', 'hostile'], ada);
    const json = await runCommand(['sessions', 'log', 'hostile', '--json'], ada);
    for (const { out, err } of [chat, log, json]) {
      assert.match(out, /owned/);
      // oxlint-disable-next-line no-control-regex -- these are what must not be there
      assert.doesNotMatch(out + err, /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e]/);
    }
    for (const line of json.out.trim().split('\n')) assert.doesNotThrow(() => JSON.parse(line));
  });

  test('A239 shows what waits for a person, and answers it from another terminal or in the conversation', async () => {
    await runCommand(['sessions', 'new', 'asks', '-p', 'shop'], ada);
    const box = await sandbox('asks');
    const call = startCommand(['sessions', 'chat', 'asks', 'Go.'], ada);
    const turn = await box.take();
    const ask = (id: string) =>
      box.send(turn, 'permission.asked', { id, permission: 'bash', patterns: ['rm x'], metadata: { command: 'rm x' } });
    await ask('per_1');
    await call.shows('?? may the agent: bash rm x   (per_1)');
    const list = await runCommand(['requests'], ada);
    assert.match(list.out, /^per_1 +permission +test-\w+\/asks +\d+[smhd] +bash rm x$/m, list.err);
    assert.equal((await runCommand(['requests', '--json'], bob)).out, '[]\n');
    const approved = await runCommand(['sessions', 'approve', 'asks', '--always'], ada);
    assert.deepEqual([approved.code, approved.err], [0, 'always: bash rm x\n']);
    const again = await runCommand(['sessions', 'approve', 'asks'], ada);
    assert.deepEqual([again.code, /has no open permission/.test(again.err)], [4, true], again.err);
    await box.send(turn, 'permission.replied', { id: 'per_1', reply: 'always' });

    const questions = [{ question: 'Which?', header: 'Pick', options: [{ label: 'A' }, { label: 'B' }] }];
    await box.send(turn, 'question.asked', { id: 'que_1', questions });
    await call.shows('Which? [A | B]');
    assert.equal((await runCommand(['sessions', 'answer', 'asks', 'A', 'B'], ada)).code, 2);
    assert.equal((await runCommand(['sessions', 'answer', 'asks', 'B'], ada)).code, 0);
    const answers = await parts.rows<{ answer: unknown }>("select answer from human_requests where id = 'que_1'");
    assert.deepEqual(answers[0]?.answer, { kind: 'question', answers: [['B']] });
    await box.send(turn, 'question.replied', { id: 'que_1', answers: [['B']] });
    await box.end(turn);
    assert.equal((await call.done).code, 0);

    const typed = startCommand(['sessions', 'chat', 'asks'], { ...ada, terminal: true });
    await typed.shows('> ');
    await ask('per_2');
    await typed.shows('type o (once), a (always) or r (reject)');
    typed.type('r\r');
    await until('it is refused', async () => {
      const [row] = await parts.rows<{ answer: { reply?: string } | null }>(
        "select answer from human_requests where id = 'per_2'",
      );
      return row?.answer?.reply === 'reject';
    });
    typed.type('/quit\r');
    assert.equal((await typed.done).code, 0);
  });

  test('A239 compacts, lists runs, searches, withdraws a prompt, and says what the harness lacks', async () => {
    const box = await sandbox('talk');
    const call = startCommand(['sessions', 'compact', 'talk'], ada);
    const turn = await box.take();
    const [row] = await parts.rows<{ parts: unknown }>('select parts from prompts where turn_id = $1', turn);
    assert.deepEqual(row?.parts, [{ type: 'compact' }]);
    await box.end(turn);
    assert.equal((await call.done).code, 0);

    const runs = await runCommand(['sessions', 'runs', 'talk', '--json'], ada);
    assert.ok(
      (JSON.parse(runs.out) as { outcome: string }[]).some(({ outcome }) => outcome === 'Failed'),
      runs.err,
    );
    const found = await runCommand(['sessions', 'search', 'talk', 'hello'], ada);
    assert.match(found.out, /hello to you/, found.err);

    const sent = await runCommand(['sessions', 'chat', 'talk', 'Later.', '--detach', '--json'], ada);
    const { id } = JSON.parse(sent.out) as { id: string };
    assert.match((await runCommand(['sessions', 'queue', 'talk'], ada)).out, new RegExp(`^${id} +queued`, 'm'));
    assert.equal((await runCommand(['prompts', 'rm', 'talk', id], ada)).code, 0);
    assert.match((await runCommand(['prompts', 'ls', 'talk'], ada)).out, new RegExp(`^${id} +withdrawn`, 'm'));

    const rewind = await runCommand(['sessions', 'rewind', 'talk', 'm-1'], ada);
    assert.ok([5, 6].includes(rewind.code), rewind.err);
    assert.equal((await runCommand(['sessions', 'rewind', 'talk'], ada)).code, 2);
    const mcp = await runCommand(['sessions', 'mcp', 'talk'], ada);
    assert.equal(mcp.code, 6, mcp.err);
    assert.match((await runCommand(['sessions', 'children', 'talk', 'root'], ada)).out, /^hello to you$/m);
    const harness = await runCommand(['sessions', 'harness', 'talk'], ada);
    assert.match(harness.out, /^next start: opencode, default$/m, harness.err);
  });

  test('prints the log from a place on, and follows it', async () => {
    const all = await runCommand(['sessions', 'log', 'talk', '--json'], ada);
    const seqs = all.out
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { seq: number }).seq);
    assert.deepEqual(
      seqs,
      seqs.map((_seq, at) => at + 1),
    );
    const rest = await runCommand(['sessions', 'log', 'talk', '--json', '--since', String(seqs.length - 1)], ada);
    assert.equal(rest.out.trim().split('\n').length, 1);
    const beyond = await runCommand(['sessions', 'log', 'talk', '--since', String(seqs.length + 100)], ada);
    assert.deepEqual([beyond.code, beyond.out], [2, ''], beyond.err);
    assert.match(beyond.err, new RegExp(`no event ${seqs.length + 100} yet\\n +the newest one is ${seqs.length}`));
    const follow = startCommand(['sessions', 'log', 'typed', '--follow'], ada);
    await follow.shows('first answer');
    const box = await sandbox('typed');
    await box.send(null, 'workspace.pushed', { branch: 'beeuni/typed', commit: '0123456789abcdef' });
    await follow.shows('pushed beeuni/typed at 0123456789ab');
    follow.interrupt();
    assert.equal((await follow.done).code, 130);
  });

  test('every failure has its exit code, a sentence and what to do, and no stack', async () => {
    const cases: readonly (readonly [string[], CallPlace, number, RegExp])[] = [
      [['sessions', 'info', 'ghost'], ada, 4, /there is no session ghost/],
      [['sessions', 'new', 'x1', '-p', 'ghost'], ada, 4, /there is no project ghost/],
      [['sessions', 'new', 'talk', '-p', 'shop'], ada, 5, /already_exists/],
      [['sessions', 'new', 'x2', '-p', 'shop', '--model', 'acme/none'], ada, 1, /unknown_model/],
      [['sessions', 'chat', 'talk', 'hi'], bob, 3, /rights are Kubernetes RBAC/],
      [['projects', 'ls'], { ...ada, env: { ...ada.env, BEEUNI_TOKEN: 'wrong' } }, 3, /that of BEEUNI_TOKEN/],
      [
        ['projects', 'ls'],
        { ...ada, env: { ...ada.env, BEEUNI_SERVER: 'http://127.0.0.1:1' } },
        6,
        /could not be reached/,
      ],
      [['projects', 'ls'], { ...ada, env: { ...ada.env, BEEUNI_SERVER: 'http://10.0.0.1' } }, 2, /in the clear/],
      [['projects', 'ls'], { homeDir: folder }, 3, /you are not logged in/],
      [['sessions', 'abort', 'talk'], ada, 5, /no_active_turn/],
      [['sessions', 'info', 'Bad_Name'], ada, 2, /is no name/],
    ];
    for (const [words, place, code, message] of cases) {
      const finished = await runCommand(words, place);
      assert.equal(finished.code, code, `${words.join(' ')}: ${finished.err}`);
      assert.match(finished.err, message);
      assert.doesNotMatch(finished.err, /\n\s+at /);
      assert.equal(finished.out, '');
    }
  });

  test('checks model names with an exit code', async () => {
    const finished = await runCommand(['models', 'validate', 'acme/none'], ada);
    assert.equal(finished.code, 1);
    assert.match(finished.out, /acme\/none +no +unknown_model/);
    assert.equal((await runCommand(['models', 'ls', '--json'], ada)).out, '[]\n');
    assert.equal((await runCommand(['providers', 'ls', '--json'], ada)).out, '[]\n');
  });

  test('A240 logs in with a kube context, keeps no token, and finds the project by flag, variable, folder and default', async () => {
    const { kubectl } = await ensureKubectlHelm();
    const home = join(folder, 'home');
    const place: CallPlace = {
      homeDir: home,
      cwd: folder,
      env: { KUBECONFIG: api.kubeconfigPath, BEEUNI_KUBECTL: kubectl },
    };
    const certificate = await runProgramCall(['login', '--server', await control.url('public')], place);
    assert.deepEqual(
      [certificate.code, /client certificate.*service-account/s.test(certificate.err)],
      [3, true],
      certificate.err,
    );
    const nobody = ['login', '--server', await control.url('public'), '--service-account', `${namespace}/nobody`];
    const unknown = await runProgramCall(nobody, place);
    assert.deepEqual([unknown.code, /create failed: .*"nobody" not found/.test(unknown.err)], [4, true], unknown.err);
    const login = await runProgramCall(
      ['login', '--server', await control.url('public'), '--service-account', `${namespace}/ada`, '-n', namespace],
      place,
    );
    assert.equal(login.code, 0, login.err);
    const path = join(home, '.config', 'beeuni', 'config.json');
    assert.equal(statSync(path).mode & 0o777, 0o600);
    assert.doesNotMatch(readFileSync(path, 'utf8'), /eyJ/);
    const list = await runProgramCall(['projects', 'ls'], place);
    assert.match(list.out, /^shop /m, list.err);
    const plugins = join(folder, 'plugins');
    mkdirSync(plugins);
    symlinkSync(new URL('../../cli/beeuni', import.meta.url).pathname, join(plugins, 'kubectl-beeuni'));
    const environment = { ...place.env, HOME: home, PATH: `${plugins}:${process.env['PATH']}` };
    const asPlugin = spawnSync(kubectl, ['beeuni', 'projects', 'ls'], { env: environment, encoding: 'utf8' });
    assert.match(asPlugin.stdout, /^shop /m, asPlugin.stderr);
    const projectOf = async (extra: CallPlace, ...words: string[]) =>
      (
        JSON.parse((await runCommand(['whoami', '--json', ...words], { ...place, ...extra })).out) as {
          project: string | null;
        }
      ).project;
    assert.equal(await projectOf({}), null);
    assert.equal((await runCommand(['projects', 'use', 'shop', '--here'], place)).code, 0);
    assert.equal(await projectOf({ cwd: join(folder, 'below') }), `${namespace}/shop`);
    assert.equal(await projectOf({ cwd: '/' }), null);
    assert.equal((await runCommand(['projects', 'use', 'shop'], place)).code, 0);
    assert.equal(await projectOf({ cwd: '/' }), `${namespace}/shop`);
    assert.equal(await projectOf({ env: { ...place.env, BEEUNI_PROJECT_ID: 'other' } }), `${namespace}/other`);
    assert.equal(await projectOf({}, '--project', 'given/third'), 'given/third');
    assert.equal((await runCommand(['logout'], place)).code, 0);
    assert.equal((await runCommand(['projects', 'ls'], place)).code, 3);
  });
});
