// What both harnesses make of the same project: agents, rules, tools, skills, commands, packages, secrets.
import assert from 'node:assert/strict';
import { readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { until } from '#test/support/until.ts';
import { CANARY } from '../rig.ts';
import { fields, type World } from './world.ts';

const BEEUNI_TOOLS = ['web_search', 'image_search', 'scrape_webpage', 'memory', 'show'];

/** Arguments of the file tools; each harness has its own. */
const FILE_TOOLS = {
  opencode: {
    path: 'filePath',
    edit: (path: string, from: string, to: string) => ({ filePath: path, oldString: from, newString: to }),
  },
  pi: {
    path: 'path',
    edit: (path: string, from: string, to: string) => ({ path, edits: [{ oldText: from, newText: to }] }),
  },
} as const;

const task = (prompt: string, type: string): string =>
  `@@tool task ${JSON.stringify({ description: 'look', prompt, subagent_type: type })}\n@@say parent`;

/** Registers the cases. */
export const projectCases = (world: () => World): void => {
  it('A3 works by the same project files: manifest, agent file, skills, root AGENTS.md and memory', async () => {
    const { run, call, asked } = world();
    await run('@@say hi');
    for (const text of ['You are the developer.', 'bumblebee', 'How to bake honey cakes.']) {
      assert.ok(asked().text.includes(text), text);
    }
    assert.ok(asked().tools.includes('weigh'), 'the tool of the manifest');
    const { state } = await call('memory', { command: 'view', path: 'memory/notes.md' });
    assert.match(state.output ?? '', /The queen is in cell 7/);
  });

  it('A39 A104 applies prompt, model, variant, sampling, permission and steps of an agent; options only on opencode', async () => {
    const { run, rig, asked, harness } = world();
    const before = rig.provider.requests.length;
    const bash = (command: string): string => `bash ${JSON.stringify({ command, description: 'd' })}`;
    await run(`@@tool ${bash('true')}\n@@tool ${bash('echo x > third.txt')}\n@@say never`, 'writer');
    const [first] = rig.provider.requests.slice(before);
    const body = fields(first?.body);
    assert.match(JSON.stringify(body), /You are the writer\./);
    assert.deepEqual(
      [body['model'], body['temperature'], body['top_p'], body['reasoning_effort']],
      ['scripted/small', 0.25, 0.5, 'high'],
    );
    assert.equal(body['beeuni_option'], harness === 'opencode' ? 'honey' : undefined);
    assert.equal(rig.provider.requests.length - before, 2, 'two steps at most');
    await run('@@say hi', 'writer');
    assert.ok(!asked().tools.includes('write'), 'edit is denied');
    await run('@@say hi', 'helper');
    assert.match(asked().text, /You are the developer\./, 'a subagent runs no turn');
    assert.equal(asked().model, 'scripted/large');
  });

  it('A40 A44 offers each agent the tools of Beeuni and of the project that it is granted: all, a list, all but some', async () => {
    const { run, asked } = world();
    const offered = async (agent: string | null): Promise<readonly string[]> => {
      await run('@@say hi', agent);
      return asked()
        .tools.filter((name) => name === 'weigh' || BEEUNI_TOOLS.includes(name))
        .sort();
    };
    assert.deepEqual(await offered('writer'), ['weigh']);
    const allButShow = ['image_search', 'memory', 'scrape_webpage', 'web_search', 'weigh'];
    assert.deepEqual(await offered('lister'), allButShow);
  });

  it('A45 runs a tool of the project with the granted secrets', async () => {
    const { state } = await world().call('weigh', { text: 'hi' });
    assert.deepEqual(JSON.parse(state.output ?? '{}'), { text: 'hi', agent: 'dev', key: CANARY.grantedSecret });
  });

  it('A42 A54 starts a subagent of its own or of the project as a thread, with the rules and without task', async () => {
    const { run, rig } = world();
    const child = async (type: string) => {
      const before = rig.provider.requests.length;
      const { turnId, summary } = await run(task(`@@say I am ${type}`, type));
      assert.equal(summary, 'parent');
      const threads = new Set(rig.controlPlane.eventsOf(turnId).map(({ threadId }) => threadId));
      assert.equal(threads.size, 2, 'root and child');
      const body = rig.provider.requests.slice(before).find((each) => {
        const { messages } = fields(each.body) as { messages: { role: string; content: unknown }[] };
        const last = JSON.stringify(messages.findLast(({ role }) => role === 'user')?.content);
        return last.includes(`I am ${type}`) && !last.includes('@@tool task');
      })?.body;
      return fields(body);
    };
    const tools = (body: Readonly<Record<string, unknown>>): readonly string[] =>
      ((body['tools'] ?? []) as { function: { name: string } }[]).map((tool) => tool.function.name);
    const general = await child('general');
    assert.ok(!tools(general).includes('task') && tools(general).includes('write'));
    assert.match(JSON.stringify(general), /bumblebee/);
    const explore = await child('explore');
    assert.ok(!tools(explore).includes('write') && !tools(explore).includes('edit'), 'explore only reads');
    const helper = await child('helper');
    assert.match(JSON.stringify(helper), /You are the helper\./);
    assert.ok(!tools(helper).includes('write') && !tools(helper).includes('task'));
  });

  it('A43 A102 A129 J9 uses skills of the project and managed ones, only what the agent is granted', async () => {
    const { run, call, asked, harness, rig } = world();
    await run('@@say hi', 'writer');
    assert.match(asked().text, /How to bake honey cakes/);
    assert.match(asked().text, /beeuni-memory/);
    assert.doesNotMatch(asked().text, /How to clean the hive/);
    if (harness === 'opencode') {
      assert.match((await call('skill', { name: 'baking' }, 'writer')).state.output ?? '', /Use the oven/);
      assert.equal((await call('skill', { name: 'cleaning' }, 'writer')).state.status, 'error');
      return;
    }
    await run('@@say hi');
    const place = (name: string): string =>
      new RegExp(`(/\\S+/skills/${name}/SKILL\\.md)`).exec(asked().system)?.[1] ?? `no place of ${name}`;
    const [baking, cleaning] = [place('baking'), place('cleaning')];
    assert.match((await call('read', { path: baking }, 'writer')).state.output ?? '', /Use the oven/);
    const refused = await call('read', { path: cleaning }, 'writer');
    assert.doesNotMatch(JSON.stringify(refused), /Use water/);
    assert.ok(!rig.provider.requests.some(({ body }) => JSON.stringify(body).includes('Use water')));
  });

  it('A47 A137 compacts on demand, and by itself where a request overflows, with one resend', async () => {
    const { run, dataOf } = world();
    await run('@@say one more thing to sum up');
    const { turnId, outcome } = await run([{ type: 'compact' }]);
    assert.deepEqual([outcome, dataOf(turnId, 'session.compacted')], ['Succeeded', [{ auto: false }]]);
    await run('@@say something old');
    const overflow = await run('@@overflow 1');
    assert.equal(overflow['outcome'], 'Succeeded');
    assert.equal(dataOf(overflow.turnId, 'session.compacted').length, 1);
  });

  it('A48 A134 runs the commands of its own folder, and knows none of the other harness', async () => {
    const { run, get, harness } = world();
    const [own, other, said] =
      harness === 'opencode' ? ['welcome', 'greet', 'welcome Ada'] : ['greet', 'welcome', 'hello Ada'];
    const { commands } = (await get('/beeuni/runtime/commands')).body as { commands: { name: string }[] };
    const names = commands.map(({ name }) => name);
    assert.ok(names.includes(own) && !names.includes(other), names.join(' '));
    assert.equal((await run([{ type: 'command', name: own, arguments: 'Ada' }]))['summary'], said);
    assert.equal((await run([{ type: 'command', name: other, arguments: '' }]))['outcome'], 'Failed');
  });

  it('A49 has bash, read, write, edit, glob and grep, and secrets in the shell', async () => {
    const { call, bash, harness, workspace, rig } = world();
    const words = FILE_TOOLS[harness];
    const at = (name: string): string => join(workspace, name);
    await call('write', { [words.path]: at('nest.txt'), content: 'one two' });
    await call('edit', words.edit(at('nest.txt'), 'two', 'three'));
    assert.equal(readFileSync(join(rig.folders.workspace, 'nest.txt'), 'utf8').trim(), 'one three');
    assert.match((await call('read', { [words.path]: at('nest.txt') })).state.output ?? '', /one three/);
    assert.match((await call('glob', { pattern: '**/*.ts' })).state.output ?? '', /src\/hive\.ts/);
    assert.match((await call('grep', { pattern: 'one three' })).state.output ?? '', /nest\.txt/);
    assert.match(await bash('printenv SHOP_KEY | tr a-z A-Z'), new RegExp(CANARY.grantedSecret.toUpperCase()));
  });

  it('A55 takes the rules of the root, and on pi those of no folder, whatever is read there', async () => {
    const { call, harness, workspace, asked } = world();
    const words = FILE_TOOLS[harness];
    await call('read', { [words.path]: join(workspace, 'src/hive.ts') });
    assert.match(asked().text, /bumblebee/);
    if (harness === 'opencode') return;
    assert.doesNotMatch(asked().text, /wasp/);
    assert.match(asked().system, /<project_instructions path="[^"]*AGENTS\.md">\nMarker of the rules: bumblebee\.\n/);
  });

  it('A26 names the rules file by source, path, bytes and hash', async () => {
    const { details, workspace } = world();
    const { agentsMd } = await details();
    const { source, path, bytes, sha } = fields(agentsMd);
    assert.deepEqual([source, path, bytes], ['workspace', join(workspace, 'AGENTS.md'), 32]);
    assert.match(String(sha), /^[0-9a-f]{12}$/);
  });

  it('A59 A179 A61 FE5 reads the rules again at a push of the environment only, and nothing that leads out of the repository', async () => {
    const { post, run, asked, details, rig, daemon } = world();
    const file = join(rig.folders.workspace, 'AGENTS.md');
    const before = readFileSync(file, 'utf8');
    let revision = 1;
    const push = async (expected: (sha: unknown) => boolean): Promise<void> => {
      revision += 1;
      await post('/beeuni/env', { revision, env: { SHOP_KEY: CANARY.grantedSecret } });
      await until('the rules are looked at again', async () => expected(fields((await details())['agentsMd'])['sha']));
    };
    const old = fields((await details())['agentsMd'])['sha'];
    writeFileSync(file, 'Marker of the rules: dragonfly.\n');
    await run('@@say still the old ones');
    assert.match(asked().text, /bumblebee/);
    await push((sha) => sha !== old);
    await run('@@say the new ones');
    assert.match(asked().text, /dragonfly/);
    rmSync(file);
    symlinkSync('/etc/passwd', file);
    await push((sha) => sha === undefined);
    await run('@@say none');
    assert.doesNotMatch(asked().text, /dragonfly|root:x:0/);
    assert.match(daemon().output(), /"level":"?(warn|40)[^\n]*AGENTS\.md/);
    rmSync(file);
    writeFileSync(file, before);
    await push((sha) => sha === old);
  });

  it('A69 A70 A71 A72 uses its own folder and packages, and nothing of the folder of the other harness', async () => {
    const { run, asked, harness, call, details, rig } = world();
    await run('@@say hi');
    assert.equal(asked().tools.includes('plan_note'), harness === 'pi');
    const seen = rig.provider.requests.map(({ body }) => JSON.stringify(body)).join('\n');
    if (harness === 'pi') {
      assert.match((await call('plan_note', { note: 'buzz' })).state.output ?? '', /noted buzz/);
      assert.deepEqual(fields((await details())['extensions'])['failed'], []);
      assert.ok(!seen.includes('welcome $1'));
    } else {
      assert.equal((await run([{ type: 'command', name: 'bye', arguments: '' }]))['summary'], 'bye');
      assert.ok(!seen.includes('hello $1'));
    }
  });
};
