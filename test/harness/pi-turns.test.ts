// Turns of the real Pi behind its adapter: what the model is told, what comes out, how turns end.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { capabilitiesOf } from '#daemon/harness/contract/capabilities.ts';
import type { HarnessEvent } from '#daemon/harness/contract/events.ts';
import { EVENT_DATA } from '#schema/events/envelope.ts';
import { makePiRig, type PiRig, whyNoPi } from '#test/support/pi.ts';
import { commandLineOf, commandsNamed } from '#test/support/processes.ts';
import { until } from '#test/support/until.ts';

const skip = whyNoPi() ?? false;

/** Events since a mark, as short lines. */
const linesOf = (events: readonly HarnessEvent[]): readonly string[] =>
  events.map((event) => {
    if (event.type === 'message.updated') return `${event.type} ${event.data.message.role}`;
    if (event.type !== 'message.part.updated') return event.type;
    const { part } = event.data;
    return `${event.type} ${part.type}${part.state === undefined ? '' : ` ${part.state.status}`}`;
  });

type Body = Readonly<{
  model?: string;
  messages: readonly Readonly<{ role: string; content: unknown }>[];
  tools?: readonly Readonly<{ function: Readonly<{ name: string }> }>[];
  temperature?: number;
  top_p?: number;
  tool_choice?: string;
  reasoning_effort?: string;
}>;

describe('turns with Pi', { skip, timeout: 300_000 }, () => {
  let rig: PiRig;
  let granted: Record<string, string> = { GRANTED: 'yes' };

  const bodies = (): readonly Body[] => rig.provider.requests.map(({ body }) => body as unknown as Body);
  const lastBody = (): Body => bodies().at(-1) as Body;
  const system = (): string => String(lastBody().messages[0]?.content);
  const toolNames = (): readonly string[] => (lastBody().tools ?? []).map((tool) => tool.function.name);
  const toolText = (): string => JSON.stringify(lastBody().messages.filter(({ role }) => role === 'tool'));
  const running = (): Promise<unknown> =>
    until('a tool runs', () => rig.events.some((event) => JSON.stringify(event.data).includes('"status":"running"')));

  before(async () => {
    rig = await makePiRig({
      files: {
        'AGENTS.md': 'Marker of the rules: bumblebee.\n',
        'CLAUDE.md': 'Marker of another file: hornet.\n',
        'src/AGENTS.md': 'Marker of a subdirectory: wasp.\n',
        'src/b.ts': `const b = '${'x'.repeat(900)}';\n`,
        'src/a.ts': 'const a = 1;\n',
        'src/.hidden.ts': 'const hidden = 1;\n',
      },
      session: {
        agent: 'dev',
        agents: [
          { name: 'dev', mode: 'primary', prompt: 'You are dev.', tools: 'all', skills: 'all' },
          {
            name: 'writer',
            mode: 'all',
            prompt: 'You are the writer.',
            model: 'scripted/small',
            variant: 'high',
            temperature: 0.25,
            topP: 0.5,
            steps: 2,
            tools: 'all',
            skills: 'all',
          },
          {
            name: 'blind',
            mode: 'primary',
            prompt: 'You are blind.',
            tools: 'all',
            skills: 'all',
            vision: { mode: 'off', keepImages: 0 },
          },
          { name: 'helper', mode: 'subagent', prompt: 'You are the helper.', tools: 'all', skills: 'all' },
        ],
      },
      granted: () => granted,
    });
    await rig.ready();
  });
  after(async () => rig?.stop());

  it('A25 A26 reports version, model, extensions and rules file', () => {
    const { version, sessionId, details } = rig.harness().health();
    const rules = details['agentsMd'] as { source: string; bytes: number; sha: string };
    assert.equal(version, '1.6.0');
    assert.match(String(sessionId), /^ses_[0-9a-f]{24}$/);
    assert.equal(details['model'], 'scripted/large');
    assert.deepEqual(details['extensions'], { loaded: [], failed: [] });
    assert.deepEqual([rules.source, rules.bytes, rules.sha.length], ['workspace', 32, 12]);
  });

  it('A34 serves exactly subagents, compaction and commands', () => {
    assert.deepEqual(capabilitiesOf(rig.harness().optional), [
      'session.subagents',
      'session.compact',
      'session.commands',
    ]);
  });

  it('A141 tells a turn with reasoning, a tool and an answer in the order of the other harness', async () => {
    const from = rig.events.length;
    const end = await rig.submit('@@reason hm\n@@tool bash {"command":"echo hello"}\n@@say all is well');
    assert.deepEqual(end, { kind: 'completed' });
    const lines = linesOf(rig.events.slice(from)).filter((line) => !line.endsWith(' running'));
    assert.deepEqual(lines, [
      'message.updated user',
      'message.part.updated text',
      'message.updated assistant',
      'message.part.updated step-start',
      'message.part.updated reasoning',
      'message.part.delta',
      'message.part.updated tool pending',
      'message.part.updated reasoning',
      'message.part.updated tool completed',
      'tool.terminal',
      'message.part.updated step-finish',
      'message.updated assistant',
      'message.updated assistant',
      'message.part.updated step-start',
      'message.part.updated text',
      'message.part.delta',
      'message.part.delta',
      'message.part.delta',
      'message.part.updated text',
      'message.part.updated step-finish',
      'message.updated assistant',
    ]);
    for (const { type, data } of rig.events)
      assert.equal(EVENT_DATA[type].safeParse(data).error?.message, undefined, type);
  });

  it('A54 A55 appends the root AGENTS.md once, after the prompt of the agent, and no other file', async () => {
    await rig.submit('@@say hi');
    const path = join(rig.workspace, 'AGENTS.md');
    const section = `<project_instructions path="${path}">\nMarker of the rules: bumblebee.\n</project_instructions>`;
    assert.ok(system().startsWith(`You are dev.\n\n${section}`), system());
    assert.equal(system().split('bumblebee').length, 2);
    assert.doesNotMatch(system(), /hornet|wasp/);
  });

  it('A49 offers bash, read, write, edit, glob, grep, question and task, and no plan', async () => {
    await rig.submit('@@say hi');
    assert.deepEqual([...toolNames()].sort(), [
      'bash',
      'edit',
      'find',
      'glob',
      'grep',
      'ls',
      'question',
      'read',
      'task',
      'write',
    ]);
  });

  it('A113 sorts what glob and grep find, looks into hidden files and not into .git, and cuts lines', async () => {
    await rig.submit('@@tool glob {"pattern":"**/*.ts"}\n@@say ok');
    assert.match(toolText(), /src\/\.hidden\.ts\\nsrc\/a\.ts\\nsrc\/b\.ts/);
    await rig.submit('@@tool grep {"pattern":"const .* ="}\n@@say ok');
    const text = JSON.stringify(lastBody().messages.at(-1));
    assert.match(
      text,
      /src\/\.hidden\.ts:1:const hidden = 1;\\nsrc\/a\.ts:1:const a = 1;\\nsrc\/b\.ts:1:const b = 'x+… \[cut\]/,
    );
    assert.ok(!text.includes('x'.repeat(520)));
    await rig.submit('@@tool grep {"pattern":"repositoryformatversion"}\n@@say ok');
    assert.match(JSON.stringify(lastBody().messages.at(-1)), /No match/);
  });

  it('FF8 reads a file that is none without a wait, and edits and reads those that are', async () => {
    execFileSync('mkfifo', [join(rig.workspace, 'pipe')]);
    for (const tool of ['read {"path":"pipe"}', 'write {"path":"pipe","content":"x"}', 'read {"path":"/dev/zero"}']) {
      await rig.submit(`@@tool ${tool}\n@@say ok`);
      assert.match(JSON.stringify(lastBody().messages.at(-1)), /no regular file/, tool);
    }
    rmSync(join(rig.workspace, 'pipe'));
    await rig.submit('@@tool write {"path":"w/new.txt","content":"one two"}\n@@say ok');
    await rig.submit('@@tool edit {"path":"w/new.txt","edits":[{"oldText":"two","newText":"three"}]}\n@@say ok');
    await rig.submit('@@tool read {"path":"w/new.txt"}\n@@say ok');
    assert.match(JSON.stringify(lastBody().messages.at(-1)), /one three/);
  });

  it('A49 A180 gives commands the granted secrets of this moment, and none of the thread', async () => {
    await rig.submit('@@tool bash {"command":"printenv | sort"}\n@@say ok');
    const first = JSON.stringify(lastBody().messages.at(-1));
    assert.match(first, /GRANTED=yes/);
    assert.doesNotMatch(first, /PI_|loopback-token/);
    granted = { GRANTED: 'rotated' };
    await rig.submit('@@tool bash {"command":"printenv GRANTED"}\n@@say ok');
    assert.match(JSON.stringify(lastBody().messages.at(-1)), /rotated/);
  });

  it('tells a command that fails as completed with its exit code', async () => {
    await rig.submit('@@tool bash {"command":"echo out; exit 3"}\n@@say ok');
    const ended = rig.events.findLast(
      (event) => event.type === 'message.part.updated' && event.data.part.state?.status === 'completed',
    );
    assert.ok(ended?.type === 'message.part.updated');
    assert.equal(ended.data.part.state?.metadata?.['exit'], 3);
    assert.match(ended.data.part.state?.output ?? '', /out/);
  });

  it('A104 A39 runs a prompt that names another primary agent on it: prompt, model, variant, sampling', async () => {
    assert.deepEqual(await rig.submit('@@say hi', { agent: 'writer' }), { kind: 'completed' });
    const body = lastBody();
    assert.ok(system().startsWith('You are the writer.'));
    assert.deepEqual(
      [body.model, body.temperature, body.top_p, body.reasoning_effort],
      ['scripted/small', 0.25, 0.5, 'high'],
    );
    assert.equal(rig.provider.requests.at(-1)?.headers['x-beeuni-agent'], 'writer');
    await rig.submit('@@say hi');
    assert.ok(system().startsWith('You are dev.'));
    assert.deepEqual([lastBody().model, lastBody().temperature], ['scripted/large', undefined]);
  });

  it('B7 J7 shows an image to an agent that may see it, and none to one that may not', async () => {
    const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';
    writeFileSync(join(rig.workspace, 'dot.png'), Buffer.from(png, 'base64'));
    await rig.submit('@@tool read {"path":"dot.png"}\n@@say seen');
    assert.match(JSON.stringify(lastBody().messages), /image_url/);
    await rig.submit('@@tool read {"path":"dot.png"}\n@@say not seen', { agent: 'blind' });
    assert.doesNotMatch(JSON.stringify(lastBody().messages), /image_url/);
    assert.match(JSON.stringify(lastBody().messages), /sees no images/);
    rmSync(join(rig.workspace, 'dot.png'));
  });

  it('A39 ends a turn at the most steps of its agent', async () => {
    const before = bodies().length;
    const script = '@@tool bash {"command":"true"}\n@@tool bash {"command":"touch third"}\n@@say never';
    assert.deepEqual(await rig.submit(script, { agent: 'writer' }), { kind: 'completed' });
    assert.equal(bodies().length - before, 2);
    assert.equal(lastBody().tool_choice, 'none');
    assert.ok(!existsSync(join(rig.workspace, 'third')));
  });

  it('A104 runs a prompt that names a subagent or an unknown agent on the agent of the session, and logs it', async () => {
    for (const agent of ['helper', 'nobody']) {
      assert.deepEqual(await rig.submit('@@say hi', { agent }), { kind: 'completed' });
      assert.ok(system().startsWith('You are dev.'));
      assert.ok(rig.logged.some((line) => line.includes(`names the agent ${agent}`)));
    }
  });

  it('FC3 A142 ends a failed model call with its code, after one call', async () => {
    const cases: readonly (readonly [string, string])[] = [
      ['@@error 9 402 budget used up', 'credits'],
      ['@@error 9 401 no', 'auth'],
      ['@@error 9 429 rate limit', 'rate_limit'],
      ['@@error 9 404 no such model', 'unknown_model'],
      ['@@error 9 503 server error, try again', 'unknown'],
    ];
    for (const [script, code] of cases) {
      const before = bodies().length;
      const end = await rig.submit(`${script} ${code}`);
      assert.deepEqual([end.kind, end.kind === 'failed' && end.code], ['failed', code], script);
      assert.equal(bodies().length - before, 1, script);
    }
    const missing = await rig.submit('@@say hi', { model: 'acme/none' });
    assert.equal(missing.kind === 'failed' && missing.code, 'unknown_model');
  });

  it('FC1 FC4 known-bugs K14 ends a stream without its end with one typed error, and answers the next prompt', async () => {
    for (const script of ['@@truncate', '@@drop 9', '@@inside broken']) {
      const end = await rig.submit(script);
      assert.equal(end.kind, 'failed', script);
    }
    assert.deepEqual(await rig.submit('@@say fine'), { kind: 'completed' });
  });

  it('FC7 known-bugs K13 never executes half a JSON object', async () => {
    await rig.submit('@@tool bash {"command": "touch should-not-be\n@@say went on');
    assert.ok(!existsSync(join(rig.workspace, 'should-not-be')));
    assert.deepEqual(await rig.submit('@@say fine'), { kind: 'completed' });
  });

  it('FC5 A38 aborts a model call that hangs', async () => {
    const controller = new AbortController();
    const asked = rig.provider.nextRequest();
    const turn = rig.submit('@@hang', { signal: controller.signal });
    const request = await asked;
    const begin = performance.now();
    controller.abort();
    assert.deepEqual(await turn, { kind: 'aborted' });
    assert.ok(performance.now() - begin < 60_000);
    assert.equal(await request.closed, true);
    assert.deepEqual(await rig.submit('@@say fine'), { kind: 'completed' });
  });

  it('FB6 A38 leaves no process behind when a running command is aborted', async () => {
    const controller = new AbortController();
    const from = rig.events.length;
    const turn = rig.submit('@@tool bash {"command":"(setsid sleep 297 &) ; sleep 298 & sleep 299"}', {
      signal: controller.signal,
    });
    await until('the commands run', () => sleeping().length === 3);
    await running();
    controller.abort();
    assert.deepEqual(await turn, { kind: 'aborted' });
    await until('no process of the command is left', () => sleeping().length === 0);
    const terminals = rig.events.slice(from).filter((event) => event.type === 'tool.terminal');
    assert.deepEqual(
      terminals.map((event) => event.type === 'tool.terminal' && event.data.outcome),
      ['aborted'],
    );
  });

  it('A151 keeps its conversation under the same id outside of the workspace, and goes on after a restart', async () => {
    await rig.submit('@@say remember the bumblebee 42');
    const before = rig.harness().health().sessionId;
    await rig.restart();
    assert.equal(rig.harness().health().sessionId, before);
    await rig.submit('@@say what was it');
    assert.match(JSON.stringify(lastBody().messages), /remember the bumblebee 42/);
    assert.ok(readdirSync(rig.data).some((name) => name.endsWith(`_${before}.jsonl`)));
    assert.ok(!readdirSync(rig.workspace).includes('.pi'));
  });

  it('A59 A61 reads AGENTS.md anew at a start, and adds nothing for an empty one', async () => {
    writeFileSync(join(rig.workspace, 'AGENTS.md'), 'Now: dragonfly.\n');
    await rig.submit('@@say still the old one');
    assert.match(system(), /bumblebee/);
    await rig.restart();
    await rig.submit('@@say hi');
    assert.match(system(), /dragonfly/);
    writeFileSync(join(rig.workspace, 'AGENTS.md'), '');
    await rig.restart();
    await rig.submit('@@say hi');
    assert.doesNotMatch(system(), /project_instructions/);
    assert.equal(rig.harness().health().details['agentsMd'], null);
  });
});

describe('a session with Pi that has no model', { skip, timeout: 60_000 }, () => {
  it('A142 is ready, and fails its turns with unknown_model', async () => {
    const rig = await makePiRig({ session: { model: null, models: [], agent: null, agents: [] } });
    try {
      await rig.ready();
      assert.equal(rig.harness().health().details['model'], null);
      const end = await rig.submit('@@say hi');
      assert.deepEqual([end.kind, end.kind === 'failed' && end.code], ['failed', 'unknown_model']);
      assert.equal(rig.provider.requests.length, 0);
    } finally {
      await rig.stop();
    }
  });
});

/** Command lines of the sleeps that these tests start. */
const sleeping = (): readonly string[] =>
  commandsNamed('sleep').flatMap((pid) => {
    const line = commandLineOf(pid).replaceAll('\0', ' ');
    return /^sleep 29[789]/.test(line) ? [line] : [];
  });
