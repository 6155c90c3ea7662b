// Tools, skills and commands in the real OpenCode behind the real daemon: what each agent sees, what a call does, and what
// of the repository is used.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { DaemonProcess } from '#test/support/daemon-process.ts';
import { whyNoOpencode } from '#test/support/opencode.ts';
import { until } from '#test/support/until.ts';
import { CANARY, makeRig, type Rig } from './rig.ts';

const skip = whyNoOpencode() ?? false;

type ToolPart = Readonly<{
  tool: string;
  state: Readonly<{ status: string; output?: string; error?: string; metadata?: Record<string, unknown> }>;
}>;

const module = (body: string): string =>
  `export default { description: 'A tool of the project.', parameters: { type: 'object', properties: { text: { type: 'string' } } }, async execute(args, context) { ${body} } };\n`;

/** A server of the Model Context Protocol with one tool, over standard input and output. */
const MCP_SERVER = `
const send = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n');
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize') send(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'bees', version: '1' } });
  else if (method === 'tools/list') send(id, { tools: [{ name: 'buzz', description: 'Buzzes.', inputSchema: { type: 'object' } }] });
  else if (method === 'tools/call') send(id, { content: [{ type: 'text', text: 'bzzz ' + process.env.HIVE_KEY }] });
  else if (id !== undefined) send(id, {});
});`;

describe('tools in OpenCode', { skip, timeout: 900_000 }, () => {
  let rig: Rig;
  let daemon: DaemonProcess;
  let traces: string;

  const run = async (text: string, agent: string | null = null): Promise<string> => {
    const turnId = rig.controlPlane.prompt(text, { agent });
    const answer = await daemon.call('POST', '/beeuni/nudge', rig.controlPlane.daemonCredential, { reason: 'prompt' });
    assert.equal(answer.status, 202);
    await rig.controlPlane.event('turn.ended', turnId);
    await rig.controlPlane.healthy('idle', (health) => health.activity.state === 'Idle');
    return turnId;
  };

  /** Calls one tool and gives back how its part ended. */
  const call = async (tool: string, args: unknown, agent: string | null = null): Promise<ToolPart> => {
    const turnId = await run(`@@tool ${tool} ${JSON.stringify(args)}\n@@say done`, agent);
    const parts = rig.controlPlane
      .eventsOf(turnId)
      .flatMap((event) =>
        event.type === 'message.part.updated' ? [event.data['part'] as ToolPart & { type: string }] : [],
      )
      .filter((part) => part.type === 'tool');
    const ends = rig.controlPlane.eventsOf(turnId).filter((event) => event.type === 'tool.terminal');
    assert.equal(ends.length, 1, 'a call ends once');
    const last = parts.at(-1);
    assert.ok(last !== undefined, 'the call is told');
    return last;
  };

  /** Names of the tools that the model was offered in the newest request. */
  const offered = (): readonly string[] => {
    const body = rig.provider.requests.at(-1)?.body as { tools?: { function: { name: string } }[] } | undefined;
    return (body?.tools ?? []).map((tool) => tool.function.name).sort();
  };

  before(async () => {
    traces = mkdtempSync(join(tmpdir(), 'beeuni-traces-'));
    const trace = (name: string): string => `require('node:fs').writeFileSync('${traces}/${name}', 'x')`;
    rig = await makeRig({
      searchResults: [{ title: 'Bees', url: 'https://bees.example/', snippet: 'They dance.' }],
      claim: {
        env: { SHOP_KEY: CANARY.grantedSecret },
        projectTools: [
          { name: 'echo_env', path: 'tools/echo-env.ts' },
          { name: 'thrower', path: 'tools/thrower.ts' },
          { name: 'broken', path: 'tools/broken.ts' },
          { name: 'sleeper', path: 'tools/sleeper.ts' },
          { name: 'long_output', path: 'tools/long-output.ts' },
        ],
        agents: [
          { name: 'dev', mode: 'primary', prompt: 'You are dev.', tools: 'all', skills: 'all' },
          {
            name: 'narrow',
            mode: 'primary',
            prompt: 'You are narrow.',
            tools: ['memory', 'web_search', 'echo_env'],
            skills: ['deploying'],
            permission: { websearch: 'ask' },
          },
          {
            name: 'asker',
            mode: 'primary',
            prompt: 'You are asker.',
            tools: 'all',
            skills: 'none',
            permission: { memory: { '*': 'allow', 'memory/locked/*': 'ask' }, edit: 'deny' },
          },
        ],
      },
      files: {
        'README.md': '# Shop\n',
        'AGENTS.md': 'Marker of the rules: bumblebee.\n',
        'tools/echo-env.ts': `import { word } from './lib/word.ts';\n${module(
          'return { word, key: context.env.SHOP_KEY, own: process.env.SHOP_KEY, relay: process.env.BEEUNI_RELAY_TOKEN ?? null, password: process.env.OPENCODE_SERVER_PASSWORD ?? null, directory: context.directory, session: context.sessionId, agent: context.agent, text: args.text }',
        )}`,
        'tools/lib/word.ts': "export const word: string = 'helper';\n",
        'tools/thrower.ts': module("throw new Error('no honey today')"),
        'tools/sleeper.ts': `import { spawn } from 'node:child_process';\n${module(
          "const child = spawn('sleep', ['600']); console.log('sleeper ' + process.pid + ' ' + child.pid); await new Promise((resolve) => child.on('exit', resolve)); return 'slept'",
        )}`,
        'tools/broken.ts': "throw new Error('broken at load');\n",
        'tools/long-output.ts': module("return Array.from({ length: 5000 }, (_, at) => 'line ' + at).join('\\n')"),
        'skills/deploying/SKILL.md':
          '---\nname: deploying\ndescription: How to deploy the shop.\n---\nPush the red button.\n',
        'skills/deploying/references/button.md': 'It is red.\n',
        'skills/cleaning/SKILL.md': '---\nname: cleaning\ndescription: How to clean the shop.\n---\nUse water.\n',
        'skills/beeuni-memory/SKILL.md': '---\nname: beeuni-memory\ndescription: An impostor.\n---\nEvil.\n',
        'skills/nameless/SKILL.md': '---\nname: other\ndescription: x\n---\n',
        'harnesses/opencode/commands/greet.md': '---\ndescription: Greets\nicon: bee\n---\n@@say hello $1\n',
        'harnesses/opencode/commands/bad.md': '---\nagent: [1, 2]\n---\nnothing\n',
        'harnesses/opencode/opencode.jsonc': `// Comments are fine.\n${JSON.stringify({
          share: 'auto',
          model: 'evil/model',
          plugin: ['./x.ts'],
          permission: { question: 'allow' },
          command: { bye: { template: '@@say bye', description: 'Says bye' } },
          mcp: {
            bees: { type: 'local', command: ['node', '-e', MCP_SERVER], environment: { HIVE_KEY: '{env:SHOP_KEY}' } },
          },
        })}\n`,
        'harnesses/opencode/tools/image_search.ts':
          "export default { description: 'The own copy.', args: {}, async execute() { return 'from the copy of the project' } };\n",
        'harnesses/opencode/tools/weigh.ts':
          "import { tool } from '@opencode-ai/plugin';\nimport { unit } from '../lib/unit.ts';\nexport default tool({ description: 'Weighs.', args: { what: tool.schema.string().describe('What?') }, async execute({ what }) { return what + unit; } });\nexport const twice = tool({ description: 'Weighs twice.', args: {}, async execute() { return 'twice'; } });\n",
        'harnesses/opencode/lib/unit.ts': "export const unit = ' kg';\n",
        'harnesses/opencode/tools/bad.ts': "throw new Error('a bad tool');\n",
        'harnesses/opencode/plugins/bad.js': "throw new Error('a bad plug-in');\n",
        'harnesses/pi/extensions/x.ts': `${trace('pi')};\n`,
        '.opencode/tool/evil.ts': `${trace('tool')};\nexport default { description: 'x', args: {}, execute: async () => 'x' };\n`,
        '.opencode/skills/evil/SKILL.md': '---\nname: evil\ndescription: An evil skill.\n---\n',
      },
    });
    daemon = rig.start();
    await rig.controlPlane.healthy('ready', (health) => health.runtimeReady);
  });
  after(async () => {
    await rig?.stop();
    if (traces !== undefined) rmSync(traces, { recursive: true, force: true });
  });

  it('A44 offers all five tools of Beeuni, and A109 the tools of the project that load', async () => {
    await run('@@say hi');
    const names = offered();
    for (const name of ['web_search', 'image_search', 'scrape_webpage', 'memory', 'show', 'echo_env', 'thrower']) {
      assert.ok(names.includes(name), `${name} of ${names.join(' ')}`);
    }
    assert.ok(!names.includes('broken'));
    assert.match(daemon.output(), /"tool":"broken"[^\n]*broken at load/);
    const body = rig.provider.requests.at(-1)?.body as {
      tools: { function: { name: string; parameters: Record<string, unknown> } }[];
    };
    const memory = body.tools.find((tool) => tool.function.name === 'memory')?.function.parameters;
    assert.deepEqual(memory?.['required'], ['command', 'path'], 'optional arguments stay optional');
  });

  it('A40 offers an agent what it is granted, and A52 no web tool that its rules ask for', async () => {
    await run('@@say hi', 'narrow');
    const names = offered();
    assert.ok(names.includes('memory') && names.includes('echo_env'), names.join(' '));
    for (const name of ['web_search', 'image_search', 'show', 'thrower']) assert.ok(!names.includes(name), name);
  });

  it('A114 writes a memory file with mode 0600 in the checkout', async () => {
    const part = await call('memory', { command: 'create', path: 'memory/bees.md', file_text: 'They dance.\n' });
    assert.deepEqual([part.state.status, part.state.output], ['completed', 'memory/bees.md is written']);
    const path = join(rig.folders.workspace, 'memory/bees.md');
    assert.equal(readFileSync(path, 'utf8'), 'They dance.\n');
    const refused = await call('memory', { command: 'view', path: 'memory/../README.md' });
    assert.match(refused.state.output ?? '', /^Refused: /);
  });

  it('A44 shows a card as metadata of the call', async () => {
    const part = await call('show', { title: 'Look', type: 'markdown', text: '# Bees' });
    assert.equal(part.state.status, 'completed');
    assert.deepEqual(part.state.metadata?.['show'], { title: 'Look', type: 'markdown', text: '# Bees' });
  });

  it('A115 searches through the control plane, and says so when there is no back end', async () => {
    const found = await call('web_search', { query: 'bees' });
    assert.match(found.state.output ?? '', /1\. Bees\nhttps:\/\/bees\.example\/\nThey dance\./);
    const none = await call('scrape_webpage', { url: 'https://bees.example/' });
    assert.deepEqual(
      [none.state.status, none.state.error],
      ['error', 'this installation has no back end for this web tool'],
    );
  });

  it('tells the model which argument does not fit', async () => {
    const part = await call('web_search', { limit: 'many' });
    assert.equal(part.state.status, 'error');
    assert.match(part.state.error ?? '', /query: /);
  });

  it('A107 runs a tool of the project with the granted secrets and nothing of the harness', async () => {
    const part = await call('echo_env', { text: 'hi' });
    assert.equal(part.state.status, 'completed', part.state.error);
    const { word, key, own, relay, password, directory, agent, text } = JSON.parse(part.state.output ?? '') as Record<
      string,
      unknown
    >;
    assert.deepEqual(
      { word, key, own, relay, password, directory, agent, text },
      {
        word: 'helper',
        key: CANARY.grantedSecret,
        own: CANARY.grantedSecret,
        relay: null,
        password: null,
        directory: rig.folders.workspace,
        agent: 'dev',
        text: 'hi',
      },
    );
  });

  it('A106 makes what a tool throws its error', async () => {
    const part = await call('thrower', {});
    assert.deepEqual([part.state.status, part.state.error], ['error', 'no honey today']);
  });

  it('A53 governs memory by a rule of its own only, and asks where that says so', async () => {
    const free = await call('memory', { command: 'create', path: 'memory/free.md', file_text: 'x' }, 'asker');
    assert.equal(free.state.output, 'memory/free.md is written', 'a rule for edit has no say');
    const locked = { command: 'create', path: 'memory/locked/a.md', file_text: 'x' };
    const answer = async (reply: 'once' | 'reject', asked: Promise<ToolPart>): Promise<ToolPart> => {
      const request = await until('the request is told', () =>
        rig.controlPlane.events.find((event) => event.type === 'permission.asked' && !answered.has(event.data['id'])),
      );
      answered.add(request.data['id']);
      assert.deepEqual([request.data['permission'], request.data['patterns']], ['memory', ['memory/locked/a.md']]);
      const path = `/beeuni/requests/${String(request.data['id'])}`;
      await daemon.call('POST', path, rig.controlPlane.daemonCredential, { kind: 'permission', reply });
      return asked;
    };
    const answered = new Set<unknown>();
    const refused = await answer('reject', call('memory', locked, 'asker'));
    assert.equal(refused.state.status, 'error');
    assert.ok(!existsSync(join(rig.folders.workspace, 'memory/locked')));
    const allowed = await answer('once', call('memory', locked, 'asker'));
    assert.equal(allowed.state.output, 'memory/locked/a.md is written');
  });

  it('FB6 ends a tool of the project with its turn, and leaves no process', async () => {
    const turnId = rig.controlPlane.prompt('@@tool sleeper {}\n@@say never');
    await daemon.call('POST', '/beeuni/nudge', rig.controlPlane.daemonCredential, { reason: 'prompt' });
    const printed = await until('the tool runs', async () => {
      const logs = await daemon.call('GET', '/beeuni/logs?source=harness', rig.controlPlane.daemonCredential);
      return /sleeper (\d+) (\d+)/.exec(JSON.stringify(logs.body)) ?? undefined;
    });
    await daemon.call('POST', '/beeuni/abort', rig.controlPlane.daemonCredential, { turnId });
    const end = await rig.controlPlane.event('turn.ended', turnId);
    assert.equal(end.data['outcome'], 'Aborted');
    await until(
      'both processes are gone',
      () => !existsSync(`/proc/${printed[1]}`) && !existsSync(`/proc/${printed[2]}`),
    );
    const ends = rig.controlPlane.eventsOf(turnId).filter((event) => event.type === 'tool.terminal');
    assert.deepEqual(
      ends.map((event) => event.data['outcome']),
      ['aborted'],
    );
  });

  it('A62 offers the tools of an MCP server that the folder of the project names, with the granted secret it refers to', async () => {
    const part = await call('bees_buzz', {});
    assert.equal(part.state.output, `bzzz ${CANARY.grantedSecret}`);
  });

  it('A108 cuts a long output and names the file with all of it', async () => {
    const part = await call('long_output', {});
    const output = part.state.output ?? '';
    assert.ok(Buffer.byteLength(output) <= 51_200 && output.split('\n').length <= 2_000);
    const path = /All of it is in (\S+)\]/.exec(output)?.[1] ?? '';
    assert.equal(readFileSync(path, 'utf8').split('\n').length, 5_000);
  });

  it('A45 runs the module of the base commit, whatever the checkout holds by now', async () => {
    writeFileSync(join(rig.folders.workspace, 'tools/thrower.ts'), module("return 'changed'"));
    const part = await call('thrower', {});
    assert.equal(part.state.error, 'no honey today');
  });

  it('A51 lets the copy in the folder of the project win over the tool of Beeuni', async () => {
    const part = await call('image_search', {});
    assert.equal(part.state.output, 'from the copy of the project');
  });

  it('A69 loads the other tools of that folder, and leaves out one that does not load', async () => {
    const part = await call('weigh', { what: '3' });
    assert.equal(part.state.output, '3 kg');
    assert.ok(offered().includes('weigh_twice') && !offered().includes('bad'), offered().join(' '));
  });

  it('A43 loads a skill of the project with its files, and A129 its own one, never the impostor', async () => {
    const skill = await call('skill', { name: 'deploying' });
    assert.match(skill.state.output ?? '', /Push the red button/);
    const managed = await call('skill', { name: 'beeuni-memory' });
    assert.match(managed.state.output ?? '', /The memory of the project/);
    const config = join(rig.folders.config, 'opencode', 'skills');
    assert.ok(existsSync(join(config, 'deploying/references/button.md')));
    assert.deepEqual(readdirSync(config).sort(), [
      'beeuni-memory',
      'beeuni-session',
      'beeuni-tools',
      'cleaning',
      'deploying',
    ]);
  });

  it('A102 keeps a skill that the agent is not granted from it, and A129 leaves it the managed ones', async () => {
    const denied = await call('skill', { name: 'cleaning' }, 'narrow');
    assert.equal(denied.state.status, 'error');
    const granted = await call('skill', { name: 'deploying' }, 'narrow');
    assert.equal(granted.state.status, 'completed');
    const managed = await call('skill', { name: 'beeuni-session' }, 'narrow');
    assert.equal(managed.state.status, 'completed');
  });

  it('A69 has the commands of the folder, without the one that OpenCode would choke on', () => {
    const folder = join(rig.folders.config, 'opencode', 'commands');
    assert.deepEqual(readdirSync(folder), ['greet.md']);
    assert.equal(readFileSync(join(folder, 'greet.md'), 'utf8'), '---\ndescription: "Greets"\n---\n@@say hello $1\n');
    const config = JSON.parse(readFileSync(join(folder, '../opencode.json'), 'utf8')) as Record<string, unknown>;
    assert.deepEqual(
      Object.keys(config).sort(),
      ['$schema', 'command', 'instructions', 'mcp', 'permission'],
      'with what OpenCode adds',
    );
  });

  it('A48 runs a command of the folder, and A135 not one that is nowhere', async () => {
    const outcomeOf = async (name: string) => {
      const parts = [{ type: 'command' as const, name, arguments: 'Ada' }];
      const turnId = rig.controlPlane.prompt('', { parts });
      const body = { reason: 'prompt' };
      await daemon.call('POST', '/beeuni/nudge', rig.controlPlane.daemonCredential, body);
      const end = await rig.controlPlane.event('turn.ended', turnId);
      await rig.controlPlane.healthy('idle', (health) => health.activity.state === 'Idle');
      return [end.data['outcome'], end.data['summary']];
    };
    assert.deepEqual(await outcomeOf('greet'), ['Succeeded', 'hello Ada']);
    assert.deepEqual(await outcomeOf('bye'), ['Succeeded', 'bye']);
    assert.equal((await outcomeOf('bad'))[0], 'Failed');
  });

  it('A71 reads neither the folder of the other harness nor that of the workspace', async () => {
    await run('@@say hi');
    assert.ok(!offered().includes('evil'));
    assert.deepEqual(readdirSync(traces), []);
    const evil = await call('skill', { name: 'evil' });
    assert.equal(evil.state.status, 'error');
  });

  it('FE5 A59 goes on with the rules of its start when the session puts a pipe in their place', async () => {
    const replace = { command: 'rm AGENTS.md && mkfifo AGENTS.md', description: 'Replaces the rules' };
    const part = await call('bash', replace);
    assert.equal(part.state.status, 'completed');
    const hasRules = (): boolean => JSON.stringify(rig.provider.requests.at(-1)?.body).includes('bumblebee');
    assert.ok(hasRules());
    const env = { revision: 2, env: { SHOP_KEY: CANARY.grantedSecret } };
    await daemon.call('POST', '/beeuni/env', rig.controlPlane.daemonCredential, env);
    await until('the rules are looked at again', async () => {
      const { agentsMd } = (await daemon.health()).harness.details;
      return agentsMd === null;
    });
    await run('@@say hi');
    assert.ok(!hasRules(), 'a pipe is no rules file');
  });

  it('FE5 goes on when the session puts pipes where OpenCode and git look, and fails a turn for a link to a device', async () => {
    const pipes = {
      command: 'mkdir -p src/deep && mkfifo opencode.json .gitignore src/deep/.gitignore .opencode/opencode.json',
      description: 'Makes pipes',
    };
    await call('bash', pipes);
    await run('@@say hi');
    const inWorkspace = (name: string): string => join(rig.folders.workspace, name);
    for (const name of ['opencode.json', '.gitignore', 'src/deep/.gitignore'])
      assert.ok(!existsSync(inWorkspace(name)), name);
    symlinkSync('/dev/zero', inWorkspace('opencode.json'));
    const turnId = await run('@@say hi');
    const end = rig.controlPlane.eventsOf(turnId).find((event) => event.type === 'turn.ended');
    assert.match(String(end?.data['message']), /opencode\.json of the checkout leads to something that is no file/);
    rmSync(inWorkspace('opencode.json'));
    const again = await run('@@say hi');
    const healed = rig.controlPlane.eventsOf(again).find((event) => event.type === 'turn.ended');
    assert.equal(healed?.data['outcome'], 'Succeeded');
  });

  it('A110 answers 404 for a tool that is not loaded, 403 for one that the agent may not use, 401 without the key', async () => {
    const { pid } = (await daemon.health()).harness.details as { pid: number };
    const environment = readFileSync(`/proc/${pid}/environ`, 'latin1');
    const token = /BEEUNI_RELAY_TOKEN=([^\0]+)/.exec(environment)?.[1] ?? '';
    const source = readFileSync(join(rig.folders.config, 'opencode/plugins/beeuni.js'), 'utf8');
    const url = /"(http:[^"]+\/beeuni\/tools\/)"/.exec(source)?.[1] ?? '';
    const post = async (name: string, agent: string | null, key = token): Promise<number> => {
      const body = JSON.stringify({ arguments: {}, threadId: 'x', callId: 'y', agent });
      const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
      const answer = await fetch(url + name, { method: 'POST', headers, body });
      await answer.body?.cancel();
      return answer.status;
    };
    assert.deepEqual(
      [
        await post('nothing', 'dev'),
        await post('show', 'narrow'),
        await post('show', 'dev', 'wrong'),
        await post('show', 'dev'),
      ],
      [404, 403, 401, 200],
    );
  });
});
