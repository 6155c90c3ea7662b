// What people are asked, what rules deny, and what a harness lacks.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { CAPABILITIES, type Capability } from '#schema/wire/runtime.ts';
import { type HarnessId, type World } from './world.ts';

const QUESTION = {
  questions: [
    {
      question: 'Which?',
      header: 'Pick',
      options: [
        { label: 'A', description: 'a' },
        { label: 'B', description: 'b' },
      ],
    },
  ],
};
const bash = (command: string): string => `@@tool bash ${JSON.stringify({ command, description: 'd' })}\n@@say done`;

/** Registers the cases. */
export const peopleCases = (world: () => World): void => {
  const asks = async (turnId: string, type: 'permission.asked' | 'question.asked') =>
    (await world().rig.controlPlane.event(type, turnId)).data;
  const answer = (id: unknown, body: unknown) => world().post(`/beeuni/requests/${id}`, body);
  const isThere = (name: string): boolean => existsSync(join(world().rig.folders.workspace, name));

  it('A41 A119 asks for what a rule wants asked, runs it once it is allowed, and denies without asking', async () => {
    const { begin, endOf, run, dataOf, asked } = world();
    const turnId = await begin(bash('touch first'));
    const request = await asks(turnId, 'permission.asked');
    assert.deepEqual([request['permission'], request['patterns']], ['bash', ['touch first']]);
    assert.ok(!isThere('first'));
    await answer(request['id'], { kind: 'permission', reply: 'once' });
    assert.equal((await endOf(turnId))['outcome'], 'Succeeded');
    assert.ok(isThere('first'));
    const rejected = await begin(bash('touch second'));
    const second = await asks(rejected, 'permission.asked');
    await answer(second['id'], { kind: 'permission', reply: 'reject', message: 'use the other file' });
    await endOf(rejected);
    assert.match(asked().text, /use the other file/);
    const denied = await run(bash('touch never1'));
    assert.deepEqual(dataOf(denied.turnId, 'permission.asked'), []);
    assert.deepEqual(['second', 'never1'].map(isThere), [false, false]);
  });

  it('A41 A120 asks a question and gives the model the answer', async () => {
    const { begin, endOf, asked, dataOf } = world();
    const turnId = await begin(`@@tool question ${JSON.stringify(QUESTION)}\n@@say thanks`);
    const { id } = await asks(turnId, 'question.asked');
    assert.equal((await answer(id, { kind: 'permission', reply: 'once' })).status, 404);
    await answer(id, { kind: 'question', answers: [['B']] });
    assert.equal((await endOf(turnId))['summary'], 'thanks');
    assert.deepEqual(dataOf(turnId, 'question.replied'), [{ id, answers: [['B']] }]);
    assert.match(
      JSON.stringify(
        asked()
          .messages.filter(({ role }) => role === 'tool')
          .at(-1),
      ),
      /B/,
    );
  });

  it('A121 releases what is asked when its turn is aborted', async () => {
    const { begin, endOf, post, dataOf } = world();
    const turnId = await begin(`@@tool question ${JSON.stringify(QUESTION)}\n@@say never`);
    const { id } = await asks(turnId, 'question.asked');
    await post('/beeuni/abort', { turnId });
    assert.equal((await endOf(turnId))['outcome'], 'Aborted');
    assert.deepEqual(dataOf(turnId, 'question.rejected'), [{ id }]);
  });

  it('A52 an ask rule for the web denies on opencode and raises a request on pi', async () => {
    const { harness, run, begin, endOf, asked } = world();
    if (harness === 'opencode') {
      await run('@@say hi');
      assert.ok(!asked().tools.includes('web_search') && !asked().tools.includes('image_search'));
      return;
    }
    const turnId = await begin('@@tool web_search {"query":"bees"}\n@@say found');
    const { id, permission } = await asks(turnId, 'permission.asked');
    assert.equal(permission, 'websearch');
    await answer(id, { kind: 'permission', reply: 'once' });
    await endOf(turnId);
    assert.match(asked().text, /They dance\./);
  });

  it('A53 a change of memory follows edit on pi, and only a rule of its own on opencode', async () => {
    const { call, harness } = world();
    const change = { command: 'create', path: 'memory/by-lister.md', file_text: 'x' };
    const free = await call('memory', change, 'lister');
    assert.equal(free.state.output, 'memory/by-lister.md is written', harness);
    const seen = await call('memory', { command: 'view', path: 'memory/notes.md' }, 'guard');
    assert.match(seen.state.output ?? '', /queen/);
    await call('memory', { command: 'create', path: 'memory/by-guard.md', file_text: 'x' }, 'guard');
    assert.equal(isThere('memory/by-guard.md'), harness === 'opencode');
  });

  it('J7 denies a subagent what the agent of the session may not do, whatever its own rules say', async () => {
    const { run } = world();
    const input = { description: 'd', prompt: bash('touch never2'), subagent_type: 'general' };
    await run(`@@tool task ${JSON.stringify(input)}\n@@say ok`);
    assert.ok(!isThere('never2'));
  });
};

/** How a verb is asked: a route of port 8000, or a turn that is no prompt. */
type Verb =
  | Readonly<{ method: 'GET' | 'POST'; path: string; body?: unknown }>
  | Readonly<{ turn: { type: 'compact' } | { type: 'shell'; command: string } }>;

/** Each capability in words, and a verb behind it. */
export const VERBS: Readonly<Record<Capability, Readonly<{ what: string; verb: Verb }>>> = {
  'session.subagents': { what: 'conversations of subagents', verb: { method: 'GET', path: 'children' } },
  'session.compact': { what: 'compaction on demand', verb: { turn: { type: 'compact' } } },
  'session.commands': { what: 'slash commands', verb: { method: 'GET', path: 'commands' } },
  'session.rewind': { what: 'rewind to a message, and back', verb: { method: 'POST', path: 'unrevert', body: {} } },
  'session.mcp': { what: 'MCP servers of the harness', verb: { method: 'GET', path: 'mcp' } },
  'session.todo': { what: 'the plan', verb: { method: 'GET', path: 'todo' } },
  'session.attach': { what: "the harness's own terminal client", verb: { method: 'GET', path: 'attach' } },
  'session.config': { what: 'the configuration document', verb: { method: 'GET', path: 'config' } },
  'session.fork': { what: 'a fork at a message', verb: { method: 'POST', path: 'fork', body: {} } },
  'session.shell': { what: 'a shell command as a turn', verb: { turn: { type: 'shell', command: 'true' } } },
  'session.steer': {
    what: 'a prompt for the running turn',
    verb: {
      method: 'POST',
      path: 'steer',
      body: { promptId: 'p', messageId: 'm', parts: [{ type: 'text', text: 'x' }] },
    },
  },
};

/** What a harness answered to a verb: `yes`, or the status of an answer that says it has no such thing. */
export type Offers = Readonly<Record<Capability, string>>;

const ask = async (world: World, capability: Capability): Promise<string> => {
  const { verb } = VERBS[capability];
  if ('turn' in verb) {
    const { code } = await world.run([verb.turn]);
    return code === 'feature_not_supported' ? '501' : 'yes';
  }
  const path = `/beeuni/runtime/${verb.path}`;
  const answer = await (verb.method === 'GET' ? world.get(path) : world.post(path, verb.body));
  const { code } = (answer.body as { error?: { code?: string } } | undefined)?.error ?? {};
  if (code === 'feature_not_supported') return String(answer.status);
  // A document that is missing is not found. Source: A64.
  return capability === 'session.config' && answer.status === 404 ? '404' : 'yes';
};

/** Ids that the standard harness has to offer, and those of the other one; `config.release.v1` is the host's. Source: A31, A34. */
const OFFERED: Readonly<Record<HarnessId, readonly Capability[]>> = {
  opencode: CAPABILITIES,
  pi: ['session.subagents', 'session.compact', 'session.commands'],
};

/** Registers the cases; `found` gets what the harness answered. */
export const capabilityCases = (world: () => World, found: (offers: Offers) => void): void => {
  it('A30 A31 A34 A62 A64 A65 offers exactly what it lists, and says of everything else that it is not supported', async () => {
    const { health, harness, rig } = world();
    const { capabilities } = await health();
    const listed = capabilities.filter((id) => id.startsWith('session.'));
    assert.deepEqual(listed, OFFERED[harness]);
    const offers: Partial<Record<Capability, string>> = {};
    for (const capability of CAPABILITIES) offers[capability] = await ask(world(), capability);
    for (const capability of CAPABILITIES) {
      const wanted: string = listed.includes(capability) ? 'yes' : capability === 'session.config' ? '404' : '501';
      assert.equal(offers[capability], wanted, capability);
    }
    assert.ok(rig.controlPlane.claims() >= 1);
    found(offers as Offers);
  });

  it('A63 A62 keeps a plan on opencode and none on pi', async () => {
    const { run, harness, asked, call, get } = world();
    await run('@@say hi');
    assert.equal(asked().tools.includes('todowrite'), harness === 'opencode');
    if (harness === 'pi') return;
    const todos = [{ content: 'Feed the bees', status: 'pending', priority: 'high' }];
    await call('todowrite', { todos });
    const { body } = await get('/beeuni/runtime/todo');
    assert.match(JSON.stringify(body), /Feed the bees/);
  });

  it('A20 A143 says what was compiled and what runs, and names the verb of an answer', async () => {
    const { health, harness, rig, daemon } = world();
    const document = await health();
    assert.match(document.agent_config_etag ?? '', /^[0-9a-f]{16}$/);
    assert.equal(document.runtime.running?.harness, harness);
    assert.equal(document.config_provider?.actual_sha, rig.git.baseCommit);
    assert.equal(document.runtime_truth?.daemon.value, document.daemon_version);
    const headers = { authorization: `Bearer ${rig.controlPlane.daemonCredential}` };
    const answer = await fetch(`${await daemon().url()}/beeuni/runtime/children`, { headers });
    assert.equal(answer.headers.get('x-beeuni-turn-verb'), 'children');
  });

  it('A67 answers 404 to a route that it does not know', async () => {
    const { get } = world();
    assert.equal((await get('/beeuni/nothing')).status, 404);
  });

  it('A49 A63 A220 A237 has the beeuni command line in the shell, with connectors, tools and system skills', async (t) => {
    const { bash: shell, inContainer } = world();
    if (!inContainer) {
      t.skip('the command line is in the image');
      return;
    }
    assert.match(await shell('beeuni connectors'), /tracker\s+dev\s+yes/);
    assert.match(await shell('beeuni tools ls'), /weigh/);
    assert.match(await shell('beeuni system-skills list'), /beeuni-memory/);
  });

  it('A202 FF1 runs as a user without privileges on a root that is read-only, and holds no credential', async (t) => {
    const { bash: shell, inContainer, rig } = world();
    if (!inContainer) {
      t.skip('a process of this machine has the user of the test');
      return;
    }
    const said = await shell(
      'id -u; grep -E "^(CapEff|NoNewPrivs)" /proc/self/status; (: > /x) 2>&1; cat /proc/1/environ',
    );
    assert.match(said, /^1000\nCapEff:\s+0000000000000000\nNoNewPrivs:\s+1\n.*Read-only file system/s);
    const { credentials, daemonCredential } = rig.controlPlane;
    for (const secret of [...credentials(), daemonCredential]) assert.ok(!said.includes(secret));
  });
};
