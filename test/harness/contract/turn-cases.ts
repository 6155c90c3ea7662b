// What every session does, whichever harness runs it: the loop, its events, its end, its way to the model.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { it } from 'node:test';
import { EVENT_DATA } from '#schema/events/envelope.ts';
import { healthDocument } from '#schema/wire/health.ts';
import { until } from '#test/support/until.ts';
import { BRANCH } from '../rig.ts';
import { fields, type World } from './world.ts';

/** Command lines of all processes below one. */
const commandsBelow = (ancestor: number): readonly string[] => {
  const parents = new Map<number, number>();
  const lines = new Map<number, string>();
  for (const name of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
    try {
      parents.set(Number(name), Number(/^\d+ \(.*\) \S (\d+)/s.exec(readFileSync(`/proc/${name}/stat`, 'utf8'))?.[1]));
      lines.set(Number(name), readFileSync(`/proc/${name}/cmdline`, 'latin1').replaceAll('\0', ' '));
    } catch {
      // It ended meanwhile.
    }
  }
  const isBelow = (pid: number): boolean => {
    const parent = parents.get(pid);
    return parent !== undefined && (parent === ancestor || isBelow(parent));
  };
  return [...lines].filter(([pid]) => isBelow(pid)).map(([, line]) => line);
};

/** Registers the cases. */
export const turnCases = (world: () => World): void => {
  it('A1 runs the loop of model and tools in the sandbox, and makes the transcript of it', async () => {
    const { run, rig, dataOf, inContainer } = world();
    const before = rig.provider.requests.length;
    const command = { command: 'cat /proc/1/comm', description: 'd' };
    const { turnId, outcome, summary } = await run(`@@tool bash ${JSON.stringify(command)}\n@@say all is well`);
    assert.deepEqual([outcome, summary], ['Succeeded', 'all is well']);
    assert.equal(rig.provider.requests.length - before, 2, 'one call for the tool, one for the answer');
    const roles = dataOf(turnId, 'message.updated').map((data) => fields(data['message'])['role']);
    assert.deepEqual([...new Set(roles)], ['user', 'assistant']);
    const told = JSON.stringify(dataOf(turnId, 'message.part.updated'));
    if (inContainer) assert.match(told, /"output":"tini\\n/);
  });

  it('A2 A10 runs exactly one harness, and says which', async () => {
    const { health, harness, daemon } = world();
    assert.equal((await health()).harness.id, harness);
    const programs = commandsBelow(daemon().pid).filter((line) => /opencode\S* serve/.test(line));
    assert.equal(programs.length, harness === 'opencode' ? 1 : 0, programs.join('\n'));
  });

  it('A4 A19 A23 A141 tells everything by one health document and one catalogue of events', async () => {
    const { rig, health } = world();
    assert.deepEqual(healthDocument.strict().safeParse(await health()).error?.issues, undefined);
    assert.ok(rig.controlPlane.events.length > 10);
    for (const { type, data } of rig.controlPlane.events) {
      assert.equal(
        EVENT_DATA[type as keyof typeof EVENT_DATA].safeParse(data).error?.message,
        undefined,
        `${type} ${JSON.stringify(data)}`,
      );
    }
    assert.ok(
      rig.controlPlane.events.every(({ n }, at) => n === at + 1),
      'numbers are dense',
    );
  });

  it('A38 streams an answer as it comes', async () => {
    const { begin, dataOf, endOf } = world();
    const turnId = await begin('@@stream 40 100');
    const deltas = () => dataOf(turnId, 'message.part.delta').length;
    await until('some of the answer is there', () => deltas() >= 2);
    assert.equal(dataOf(turnId, 'turn.ended').length, 0, 'the turn still runs');
    assert.equal((await endOf(turnId))['outcome'], 'Succeeded');
    assert.ok(deltas() > 10);
  });

  it('A38 J18 stops a command and a model call on request, each with one end', async () => {
    const { begin, endOf, toolRuns, post, rig, dataOf } = world();
    const command = await begin('@@tool bash {"command":"sleep 300","description":"d"}');
    await toolRuns(command);
    await post('/beeuni/abort', { turnId: command });
    const ended = await endOf(command);
    assert.deepEqual([ended['outcome'], ended['code']], ['Aborted', 'aborted']);
    assert.deepEqual(
      dataOf(command, 'tool.terminal').map(({ outcome }) => outcome),
      ['aborted'],
    );
    const next = rig.provider.nextRequest();
    const hanging = await begin('@@hang');
    const request = await next;
    await post('/beeuni/abort', { turnId: hanging });
    assert.equal((await endOf(hanging))['outcome'], 'Aborted');
    assert.equal(await request.closed, true);
  });

  it('A212 D8 A219 calls models through the relay only, as session, turn and agent, by their own names', async () => {
    const { run, rig, asked } = world();
    const { turnId } = await run('@@say hi');
    const call = rig.controlPlane.modelCalls.at(-1);
    assert.equal(call?.['authorization'], `Bearer ${rig.controlPlane.credentials().at(-1)}`);
    assert.deepEqual([call?.['x-beeuni-turn-id'], call?.['x-beeuni-agent']], [turnId, 'dev']);
    assert.equal(asked().model, 'scripted/large');
    assert.equal(rig.controlPlane.modelCalls.length, rig.provider.requests.length, 'no call came another way');
  });

  it('A142 ends a refused model call with its code, and answers the next prompt', async () => {
    const { run } = world();
    const end = await run('@@error 9 402 budget used up');
    assert.deepEqual([end['outcome'], end['code']], ['Failed', 'credits']);
    assert.equal((await run('@@say fine'))['summary'], 'fine');
  });

  it('FC1 FC6 FC7 takes no cut stream for an answer, runs no half of a call, and answers in any script afterwards', async () => {
    const { run, rig, bash, harness } = world();
    const before = rig.provider.requests.length;
    const cut = await run('@@truncate');
    const calls = rig.provider.requests.length - before;
    assert.ok(cut['outcome'] === 'Failed' || calls > 1, `${harness} took ${JSON.stringify(cut)} after ${calls} call`);
    await run('@@tool bash {"command": "touch should-not-be\n@@say went on');
    assert.match(await bash('ls'), /AGENTS\.md/);
    assert.doesNotMatch(await bash('ls'), /should-not-be/);
    assert.equal((await run('@@say 🐝 é 漢字 “x”'))['summary'], '🐝 é 漢字 “x”');
  });

  it('D17 pushes what a turn commits to the branch of the session', async () => {
    const { run, rig } = world();
    const command =
      "echo buzz > buzz.txt && git add buzz.txt && git commit --quiet -m 'Add buzz' && git rev-parse HEAD";
    const { turnId } = await run(`@@tool bash ${JSON.stringify({ command, description: 'd' })}\n@@say ok`);
    await rig.controlPlane.event('workspace.pushed', turnId);
    assert.equal(rig.git.git('log', '-1', '--format=%s', BRANCH), 'Add buzz');
  });
};

/** The case that costs the daemon: it comes last. */
export const resumeCases = (world: () => World): void => {
  it('J12 J14 A151 A155 a daemon that is killed in a tool leaves one end; the next generation goes on with the conversation', async () => {
    const { run, begin, toolRuns, rig, killAndResume, asked, health } = world();
    await run('@@say remember the clover');
    const session = (await health()).harness.session.id;
    const turnId = await begin('@@tool bash {"command":"sleep 300","description":"d"}');
    await toolRuns(turnId);
    const before = rig.controlPlane.claims();
    await killAndResume();
    assert.equal(rig.controlPlane.claims(), before + 1);
    const ends = rig.controlPlane.eventsOf(turnId).filter(({ type }) => type === 'turn.ended');
    assert.deepEqual(
      ends.map(({ data }) => [data['outcome'], data['code']]),
      [['Interrupted', 'sandbox_lost']],
    );
    assert.equal((await run('@@say back'))['summary'], 'back');
    assert.equal((await health()).harness.session.id, session);
    assert.match(asked().text, /remember the clover/);
  });
};
