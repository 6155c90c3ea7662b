// Pi in the real daemon: from the prompt to the pushed branch, credentials, drain, kill and resume, a thread that hangs.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { DaemonProcess } from '#test/support/daemon-process.ts';
import { filesBelow } from '#test/support/files-below.ts';
import { whyNoPi } from '#test/support/pi.ts';
import { findInMemory } from '#test/support/process-memory.ts';
import { commandsNamed } from '#test/support/processes.ts';
import type { LoggedEvent } from '#test/support/scripted-control-plane.ts';
import { until } from '#test/support/until.ts';
import { BRANCH, CANARY, makeRig, type Rig } from './rig.ts';

const skip = whyNoPi() ?? false;

describe('a session with Pi', { skip, timeout: 600_000 }, () => {
  let rig: Rig;
  let daemon: DaemonProcess;

  const run = async (text: string, turn: Parameters<Rig['controlPlane']['prompt']>[1] = {}): Promise<string> => {
    const turnId = rig.controlPlane.prompt(text, turn);
    await daemon.call('POST', '/beeuni/nudge', rig.controlPlane.daemonCredential, { reason: 'prompt' });
    return turnId;
  };
  const endOf = async (turnId: string): Promise<LoggedEvent['data']> => {
    const end = await rig.controlPlane.event('turn.ended', turnId);
    await rig.controlPlane.healthy('idle', (health) => health.activity.state === 'Idle');
    const ends = rig.controlPlane.eventsOf(turnId).filter((event) => event.type === 'turn.ended');
    assert.equal(ends.length, 1);
    return end.data;
  };
  const toolRuns = (turnId: string): Promise<LoggedEvent> =>
    until('a tool of the turn runs', () =>
      rig.controlPlane
        .eventsOf(turnId)
        .find((event) => event.type === 'message.part.updated' && JSON.stringify(event.data).includes('"running"')),
    );
  /** Of the daemon itself: what the control plane knows may be of the one before it. */
  const ready = () =>
    until('the daemon is ready', async () => (await daemon.health()).runtimeReady, { deadlineMs: 90_000 });

  before(async () => {
    rig = await makeRig({
      files: {
        'README.md': '# Shop\n',
        'AGENTS.md': 'Marker of the rules: bumblebee.\n',
        '.pi/extensions/evil.ts':
          "import { writeFileSync } from 'node:fs'; writeFileSync('ran', 'x'); export default () => {};\n",
        'skills/baking/SKILL.md': '---\nname: baking\ndescription: How to bake honey cakes.\n---\nBake.\n',
        'packages/plan/package.json': '{"name":"plan","pi":{"extensions":["./plan.ts"]}}\n',
        'packages/plan/plan.ts': `export default (pi: any) => pi.registerTool({ name: 'todo_note', label: 't', description: 't',
  parameters: { type: 'object', properties: { note: { type: 'string' } } },
  execute: async (_id: string, input: any) => ({ content: [{ type: 'text', text: 'noted ' + input.note }] }) });
`,
        'harnesses/pi/prompts/greet.md': '---\ndescription: Says hello\n---\n@@say hello $1\n',
        'harnesses/pi/extensions/block.ts': `import { readFileSync } from 'node:fs';
export default (pi: any) => pi.registerTool({ name: 'block', label: 'b', description: 'b',
  parameters: { type: 'object', properties: { path: { type: 'string' } } },
  execute: async (_id: string, input: any) => ({ content: [{ type: 'text', text: String(readFileSync(input.path)) }] }) });
`,
      },
      claim: {
        env: { SHOP_KEY: CANARY.grantedSecret },
        piPackages: [{ source: './packages/plan' }, { source: 'npm:left-pad@1.0.0' }],
      },
    });
    daemon = rig.start({ BEEUNI_HARNESS: 'pi' });
    await ready();
  });
  after(async () => rig?.stop());

  it('A10 A19 A25 A30 reports the harness, its details and its capabilities', async () => {
    const health = await daemon.health();
    assert.deepEqual([health.status, health.harness.id, health.harness.version], ['ok', 'pi', '1.6.0']);
    assert.equal(health.branch, BRANCH);
    assert.match(String(health.harness.session.id), /^ses_/);
    const { agentsMd, model, extensions } = health.harness.details as Record<string, Record<string, unknown>>;
    assert.deepEqual([agentsMd?.['source'], agentsMd?.['bytes'], model], ['workspace', 32, 'scripted/large']);
    assert.equal((extensions?.['loaded'] as string[] | undefined)?.length, 2);
    assert.deepEqual(
      health.capabilities.filter((id) => id.startsWith('session.')),
      ['session.subagents', 'session.compact', 'session.commands'],
    );
  });

  it('D17 runs a prompt to a pushed commit, with one start and one end, in order', async () => {
    const turnId = await run(
      [
        '@@tool write {"path":"notes.txt","content":"buzz"}',
        `@@tool bash {"command":"git add notes.txt && git commit --quiet -m 'Add notes' && printenv SHOP_KEY | wc -c"}`,
        '@@say The notes are in.',
      ].join('\n'),
    );
    const end = await endOf(turnId);
    assert.deepEqual(
      [end['outcome'], end['summary'], end['commit']],
      ['Succeeded', 'The notes are in.', rig.git.branch(BRANCH)],
    );
    await rig.controlPlane.event('workspace.pushed', turnId);
    assert.equal(rig.git.git('log', '-1', '--format=%an <%ae> %s', BRANCH), 'Ada Agent <ada@example.com> Add notes');
    const types = rig.controlPlane.eventsOf(turnId).map((event) => event.type);
    assert.deepEqual(
      types.filter((type) => !type.startsWith('message.') && !type.startsWith('tool.')),
      [
        'turn.started',
        'session.status',
        'workspace.committed',
        'session.status',
        'session.idle',
        'turn.ended',
        'workspace.pushed',
      ],
    );
    assert.ok(rig.controlPlane.events.every((event, at) => event.n === at + 1));
    assert.ok(!readdirSync(rig.folders.workspace).includes('ran'), 'no code of the workspace ran');
  });

  it('A212 D8 calls models through the relay only, as the session, turn and agent', async () => {
    const call = rig.controlPlane.modelCalls.at(-1);
    assert.equal(call?.['authorization'], `Bearer ${rig.controlPlane.credentials().at(-1)}`);
    assert.deepEqual([call?.['x-beeuni-turn-id'], call?.['x-beeuni-agent']], ['t1', 'dev']);
    const body = JSON.stringify(rig.provider.requests.at(-1)?.body);
    assert.match(body, /bumblebee/);
    assert.match(body, /How to bake honey cakes/);
  });

  it('A79 known-bugs K7 goes on when the provider recovers, and shows the retry as it waits', async () => {
    const turnId = await run('@@error 1 503 broken');
    const end = await endOf(turnId);
    assert.deepEqual([end['outcome'], end['summary'], end['message']], ['Succeeded', 'recovered', null]);
    const told = rig.controlPlane.eventsOf(turnId).filter((event) => event.type === 'session.status');
    const states = told.map(({ data }) => data['status']);
    assert.deepEqual(states.slice(states.indexOf('retry')), ['retry', 'busy', 'idle']);
    assert.equal(told.find(({ data }) => data['status'] === 'retry')?.data['attempt'], 1);
  });

  it('A72 A77 uses the tool of a package of the manifest, and reports one that would have to be installed', async () => {
    await endOf(await run('@@tool todo_note {"note":"buzz"}\n@@say ok'));
    assert.match(JSON.stringify(rig.provider.requests.at(-1)?.body), /noted buzz/);
    const { extensions } = (await daemon.health()).harness.details as {
      extensions: { failed: { source: string; reason: string }[] };
    };
    assert.deepEqual(
      extensions.failed.map(({ source }) => source),
      ['npm:left-pad@1.0.0'],
    );
  });

  it('A47 A48 A64 runs a command, refuses an unknown one, a compaction that has nothing to do, and a shell turn', async () => {
    const greet = await run('', { parts: [{ type: 'command', name: 'greet', arguments: 'Ada' }] });
    assert.equal((await endOf(greet))['summary'], 'hello Ada');
    const unknown = await endOf(await run('', { parts: [{ type: 'command', name: 'nope', arguments: '' }] }));
    assert.equal(unknown['outcome'], 'Failed');
    const compact = await endOf(await run('', { parts: [{ type: 'compact' }] }));
    assert.equal(compact['outcome'], 'Succeeded');
    const shell = await endOf(await run('', { parts: [{ type: 'shell', command: 'true' }] }));
    assert.deepEqual([shell['outcome'], shell['code']], ['Failed', 'feature_not_supported']);
  });

  it('A59 A179 reads AGENTS.md again at a push of the environment', async () => {
    writeFileSync(join(rig.folders.workspace, 'AGENTS.md'), 'Marker of the rules: dragonfly.\n');
    await endOf(await run('@@say old'));
    assert.match(JSON.stringify(rig.provider.requests.at(-1)?.body), /bumblebee/);
    const body = { revision: 2, env: { SHOP_KEY: 'rotated-value' } };
    const shaNow = async () => ((await daemon.health()).harness.details as { agentsMd: { sha: string } }).agentsMd.sha;
    const before = await shaNow();
    await daemon.call('POST', '/beeuni/env', rig.controlPlane.daemonCredential, body);
    await until('health names the new file', async () => (await shaNow()) !== before);
    await endOf(await run('@@tool bash {"command":"printenv SHOP_KEY"}\n@@say new'));
    const request = JSON.stringify(rig.provider.requests.at(-1)?.body);
    assert.match(request, /dragonfly/);
    assert.match(request, /rotated-value/);
    execFileSync('git', ['checkout', '--quiet', 'AGENTS.md'], { cwd: rig.folders.workspace });
  });

  const bash = (command: string): string => `@@tool bash ${JSON.stringify({ command, description: 'd' })}\n@@say done`;
  const told = (type: string): LoggedEvent[] => rig.controlPlane.events.filter((event) => event.type === type);
  const inWorkspace = (...words: readonly string[]): string =>
    execFileSync('git', ['-C', rig.folders.workspace, ...words], { encoding: 'utf8' }).trim();

  it('A22 K18 tells of commits beside the session branch, keeps them, and goes on on the branch', async () => {
    const made = 'git checkout -q --detach && echo d > det.txt && git add det.txt && git commit -qm det';
    const first = await run(bash(made));
    assert.equal((await endOf(first))['outcome'], 'Succeeded');
    const [aside] = told('workspace.commits_aside');
    assert.deepEqual([aside?.turnId, aside?.data['branch'], aside?.data['commits']], [first, BRANCH, 1]);
    const keptAs = String(aside?.data['keptAs']);
    assert.match(keptAs, /^kept\/[0-9a-f]{12}$/);
    assert.equal((await endOf(await run('@@say next')))['outcome'], 'Succeeded');
    assert.equal(inWorkspace('symbolic-ref', '--short', 'HEAD'), BRANCH);
    assert.equal(inWorkspace('show', `${keptAs}:det.txt`), 'd');

    const other = 'git switch -qc other && echo o > o.txt && git add o.txt && git commit -qm o';
    assert.equal((await endOf(await run(bash(other))))['outcome'], 'Succeeded');
    assert.equal((await endOf(await run('@@say next')))['outcome'], 'Succeeded');
    assert.deepEqual(
      told('workspace.commits_aside').map(({ data }) => data['keptAs']),
      [keptAs, 'other'],
    );
  });

  it('A22 makes a repository again that a turn removed, and overwrites no file', async () => {
    assert.equal((await endOf(await run(bash('echo mine > README.md && rm -rf .git'))))['outcome'], 'Succeeded');
    assert.equal((await endOf(await run('@@say next')))['outcome'], 'Succeeded');
    assert.equal(inWorkspace('symbolic-ref', '--short', 'HEAD'), BRANCH);
    assert.equal(readFileSync(join(rig.folders.workspace, 'README.md'), 'utf8'), 'mine\n');
    assert.match(inWorkspace('status', '--porcelain'), /^M README\.md/m);
    assert.equal((await endOf(await run(bash('rm -rf ./* ./.[!.]*'))))['outcome'], 'Succeeded');
    assert.equal((await endOf(await run('@@say next')))['outcome'], 'Succeeded');
    assert.equal(readFileSync(join(rig.folders.workspace, 'README.md'), 'utf8'), '# Shop\n');
    assert.deepEqual(
      told('workspace.restored').map(({ data }) => data['filesKept']),
      [true, false],
    );
  });

  it('A38 aborts a running tool when port 8000 asks, and nothing of it is left', async () => {
    const turnId = await run('@@tool bash {"command":"exec -a beeuni-pi-sleeper sleep 300"}');
    await until('the command runs', () => commandsNamed('beeuni-pi-sleeper').length === 1);
    await toolRuns(turnId);
    await daemon.call('POST', '/beeuni/abort', rig.controlPlane.daemonCredential, { turnId });
    const end = await endOf(turnId);
    assert.deepEqual([end['outcome'], end['code']], ['Aborted', 'aborted']);
    assert.equal(commandsNamed('beeuni-pi-sleeper').length, 0);
  });

  it('FF1 G30 keeps every credential but the loopback token out of tools, files and logs, and provider keys out of memory', async () => {
    const turnId = await run(
      '@@tool bash {"command":"printenv; cat /proc/$PPID/environ | tr \'\\\\0\' \'\\\\n\'"}\n@@say ok',
    );
    await endOf(turnId);
    const { controlPlane, folders } = rig;
    const secrets = [CANARY.providerKey, CANARY.podToken, controlPlane.daemonCredential, ...controlPlane.credentials()];
    const told = JSON.stringify(controlPlane.eventsOf(turnId));
    assert.match(told, /BEEUNI_SESSION=fix-login/);
    for (const secret of secrets) assert.ok(!told.includes(secret));
    // What a core of it would hold: harness and daemon are one process, which knows its own credential and no provider key.
    const own = controlPlane.credentials().at(-1) ?? '';
    assert.deepEqual(findInMemory(daemon.pid, [CANARY.providerKey, own]).found, [own]);
    for (const folder of [folders.workspace, folders.data, folders.config, folders.home, folders.temporary]) {
      for (const file of filesBelow(folder)) {
        const content = readFileSync(file, 'latin1');
        for (const secret of secrets) assert.ok(!content.includes(secret), file);
      }
    }
    for (const secret of [...secrets, CANARY.grantedSecret]) assert.ok(!daemon.output().includes(secret), 'the log');
  });

  it('A151 J12 goes on with the same conversation after a kill -9 in a tool', async () => {
    const before = (await daemon.health()).harness.session.id;
    await endOf(await run('@@say remember the clover'));
    const turnId = await run('@@tool bash {"command":"exec -a beeuni-pi-killed sleep 300"}');
    await until('the command runs', () => commandsNamed('beeuni-pi-killed').length === 1);
    daemon.signal('SIGKILL');
    await daemon.exited;
    daemon = rig.start({ BEEUNI_HARNESS: 'pi' });
    await ready();
    assert.equal((await daemon.health()).harness.session.id, before);
    const ends = rig.controlPlane.eventsOf(turnId).filter((event) => event.type === 'turn.ended');
    assert.equal(ends.length, 1);
    assert.equal((await endOf(await run('@@say back')))['summary'], 'back');
    assert.match(JSON.stringify(rig.provider.requests.at(-1)?.body), /remember the clover/);
  });

  it('K17 drains on SIGTERM: the turn is ended as interrupted, bye is said, exit 0', async () => {
    const turnId = await run('@@tool bash {"command":"exec -a beeuni-pi-drained sleep 300"}');
    await until('the command runs', () => commandsNamed('beeuni-pi-drained').length === 1);
    daemon.signal('SIGTERM');
    assert.deepEqual(await daemon.exited, { code: 0, signal: null });
    const [end] = rig.controlPlane.eventsOf(turnId).filter((event) => event.type === 'turn.ended');
    assert.deepEqual([end?.data['outcome'], end?.data['code']], ['Interrupted', 'sandbox_lost']);
    assert.equal(commandsNamed('beeuni-pi-drained').length, 0);
    daemon = rig.start({ BEEUNI_HARNESS: 'pi' });
    await ready();
  });

  it('FB10 ends itself after the one terminal event when the thread blocks in a system call', async () => {
    const fifo = join(rig.folders.root, 'fifo');
    execFileSync('mkfifo', [fifo]);
    const turnId = await run(`@@tool block {"path":"${fifo}"}`);
    await toolRuns(turnId);
    assert.equal((await daemon.health()).daemon, 'ok');
    assert.deepEqual(await daemon.exited, { code: null, signal: 'SIGKILL' });
    const ends = rig.controlPlane.eventsOf(turnId).filter((event) => event.type === 'turn.ended');
    assert.deepEqual(
      ends.map(({ data }) => [data['outcome'], data['code']]),
      [['Failed', 'harness_died']],
    );
    assert.ok(rig.controlPlane.eventsOf(turnId).some((event) => event.type === 'effect.uncertain'));
    closeSync(openSync(fifo, 'r+'));
  });
});
