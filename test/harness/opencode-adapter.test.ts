// The OpenCode adapter alone, with times of its own: a server that hangs, requests that nobody answers, a stream that
// breaks. The relay is replaced by the scripted provider itself.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { systemClock } from '#base/clock.ts';
import { createLogger } from '#base/log.ts';
import type { Harness, HarnessHost, HumanAnswer, HumanRequest } from '#daemon/harness/contract/adapter.ts';
import type { HarnessEvent } from '#daemon/harness/contract/events.ts';
import { startHarness } from '#daemon/harness/opencode/adapter.ts';
import { endLeftovers } from '#daemon/host/process/leftovers.ts';
import { opencodePath, whyNoOpencode } from '#test/support/opencode.ts';
import { type ScriptedProvider, startScriptedProvider } from '#test/support/scripted-provider.ts';
import { noTools } from '#test/support/tool-host.ts';
import { until } from '#test/support/until.ts';

const skip = whyNoOpencode() ?? false;
const TOKEN = 'loopback-token';

describe('the OpenCode adapter', { skip, timeout: 600_000 }, () => {
  let root: string;
  let provider: ScriptedProvider;
  let environment: Server;
  let harness: Harness;
  const events: HarnessEvent[] = [];
  const asked: HumanRequest[] = [];
  let answer: (request: HumanRequest) => Promise<HumanAnswer>;
  let turns = 0;

  const submit = (text: string, signal = new AbortController().signal, model: string | null = null) => {
    turns += 1;
    const id = String(turns);
    const parts = [{ type: 'text' as const, text }];
    return harness.submit(
      { turnId: `t${id}`, promptId: `p${id}`, messageId: `m${id}`, parts, agent: null, model },
      signal,
    );
  };

  before(async () => {
    root = mkdtempSync(join(tmpdir(), 'beeuni-adapter-'));
    const folder = (name: string): string => {
      mkdirSync(join(root, name));
      return join(root, name);
    };
    const workspace = folder('workspace');
    writeFileSync(join(workspace, 'a.txt'), 'a');
    writeFileSync(join(workspace, 'secret.txt'), 's3cret');
    symlinkSync('secret.txt', join(workspace, 'alias.txt'));
    writeFileSync(join(workspace, 'plain.txt'), 'plain');
    symlinkSync('plain.txt', join(workspace, 'harmless.txt'));
    execFileSync('mkfifo', [join(workspace, 'pipe.txt')]);
    execFileSync('git', ['init', '--quiet', workspace]);
    provider = await startScriptedProvider({ key: TOKEN });
    environment = createServer((_request, response: ServerResponse) => {
      response.end(JSON.stringify({ GRANTED: 'yes' }));
    });
    await new Promise<void>((resolve) => environment.listen(0, '127.0.0.1', resolve));
    const address = environment.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    const marker = { name: 'BEEUNI_RUN', value: `adapter-test-${process.pid}` };
    const log = createLogger({ level: 'error', write: () => {} });
    const model = {
      name: 'scripted/large',
      contextWindowTokens: 100_000,
      maxOutputTokens: 8_000,
      input: ['text' as const],
      reasoning: false,
    };
    const host: HarnessHost = {
      session: {
        uid: 'u',
        title: 't',
        agent: 'dev',
        agents: [
          {
            name: 'dev',
            mode: 'primary',
            prompt: 'You are dev.',
            tools: 'all',
            skills: 'all',
            permission: { bash: { '*': 'allow', 'rm *': 'ask' }, read: { '*': 'allow', 'secret*': 'deny' } },
          },
        ],
        model,
        models: [model, { ...model, name: 'scripted/small', contextWindowTokens: 4_000, maxOutputTokens: 1_000 }],
        unattended: false,
      },
      relay: {
        modelBaseUrl: provider.url,
        environmentUrl: `http://127.0.0.1:${port}/env`,
        toolsUrl: 'http://127.0.0.1:9',
        judgeUrl: 'http://127.0.0.1:9',
        token: TOKEN,
      },
      paths: {
        workspace,
        data: join(root, 'data'),
        config: join(root, 'config'),
        home: folder('home'),
        temporary: folder('tmp'),
      },
      rules: null,
      tools: noTools,
      skills: [],
      configDirectory: null,
      marker,
      searchPath: process.env['PATH'] ?? '',
      emit: (event) => events.push(event),
      ask: (request) => {
        asked.push(request);
        return answer(request);
      },
      output: () => {},
      healthChanged: () => {},
      endLeftovers: () => endLeftovers(marker, new Set(), log),
      log,
      clock: systemClock,
    };
    harness = await startHarness(host, {
      program: opencodePath(),
      times: { probeIntervalMs: 1_000, probeTimeoutMs: 6_000, abortLimitMs: 3_000 },
    });
  });
  after(async () => {
    await harness?.stop(2_000);
    await provider?.close();
    environment?.close();
    if (root !== undefined) rmSync(root, { recursive: true, force: true });
  });

  const ready = async (): Promise<void> => {
    await until('the harness is ready', () => harness.health().state === 'ok', {
      deadlineMs: 120_000,
      describe: () => harness.health(),
    });
  };

  beforeEach(ready);

  it('A123 goes on after a permission that nobody gave, and the model is told', async () => {
    answer = async () => ({
      kind: 'permission',
      reply: 'reject',
      message: 'nobody answered in time; the call is denied',
    });
    assert.deepEqual(await submit('@@tool bash {"command":"rm nothing","description":"d"}\n@@say going on'), {
      kind: 'completed',
    });
    assert.equal(asked[0]?.data['permission'], 'bash');
    assert.deepEqual(asked[0]?.data['patterns'], ['rm nothing']);
    const request = provider.requests.at(-1);
    assert.match(JSON.stringify(request?.body), /nobody answered in time/);
  });

  it('A41 runs the command once it is allowed', async () => {
    answer = async () => ({ kind: 'permission', reply: 'once', message: null });
    assert.deepEqual(await submit('@@tool bash {"command":"rm -f a.txt","description":"d"}\n@@say gone'), {
      kind: 'completed',
    });
    const end = events.findLast((event) => event.type === 'tool.terminal');
    assert.equal(end?.data.outcome, 'completed');
  });

  it('A117 FF6 judges a file by what its name leads to, and opens no pipe', async () => {
    const read = async (filePath: string): Promise<string> => {
      const from = events.length;
      assert.deepEqual(await submit(`@@tool read ${JSON.stringify({ filePath })}\n@@say read`), { kind: 'completed' });
      const ends = events.slice(from).filter((event) => event.type === 'message.part.updated');
      return JSON.stringify(ends.map((event) => event.data)) + JSON.stringify(provider.requests.at(-1)?.body);
    };
    for (const path of ['secret.txt', 'alias.txt', './x/../alias.txt', '/proc/self/cwd/secret.txt']) {
      const said = await read(path);
      assert.doesNotMatch(said, /s3cret/, path);
      assert.match(said, /"status":"error"/, path);
    }
    assert.match(await read('harmless.txt'), /"status":"completed"/);
    assert.match(await read('pipe.txt'), /is no regular file/);
  });

  it('A120 ends the turn when a question is dismissed, and answers the next prompt', async () => {
    answer = async () => ({ kind: 'question', answers: null });
    const question =
      '{"questions":[{"question":"Which?","header":"Pick","options":[{"label":"A","description":"a"},{"label":"B","description":"b"}]}]}';
    assert.deepEqual(await submit(`@@tool question ${question}\n@@say never`), { kind: 'completed' });
    assert.equal(asked.at(-1)?.kind, 'question');
    answer = async () => ({ kind: 'question', answers: [['B']] });
    assert.deepEqual(await submit(`@@tool question ${question}\n@@say answered`), { kind: 'completed' });
    assert.ok(events.some((event) => event.type === 'message.part.updated' && event.data.part.text === 'answered'));
  });

  it('A47 compacts by itself when the context is full, and the turn goes on', async () => {
    assert.deepEqual(await submit('@@overflow 1'), { kind: 'completed' });
    assert.ok(events.some((event) => event.type === 'session.compacted'));
  });

  it('A47 ends the turn whose first request does not fit the window, and does not compact for ever', async () => {
    const before = provider.requests.length;
    const end = await submit('@@say hello', undefined, 'scripted/small');
    assert.equal(end.kind === 'failed' && end.code, 'context_length');
    assert.match(end.kind === 'failed' ? end.message : '', /context window/);
    assert.ok(provider.requests.length - before <= 10, `${provider.requests.length - before} calls of the model`);
    assert.deepEqual(await submit('@@say fits'), { kind: 'completed' });
  });

  it('known-bugs K5 does not execute cut tool arguments, and the next prompt answers', async () => {
    const from = events.length;
    await submit('@@tool bash {"command": "touch should-not-be\n@@say went on');
    const completed = events
      .slice(from)
      .filter((event) => event.type === 'tool.terminal' && event.data.tool === 'bash');
    assert.ok(completed.every((event) => event.type === 'tool.terminal' && event.data.outcome !== 'completed'));
    assert.deepEqual(await submit('@@say fine'), { kind: 'completed' });
  });

  it('A30 serves what its capabilities name: subagents, the plan, compaction on demand', async () => {
    const { signal } = new AbortController();
    const todos = '{"todos":[{"content":"buzz","status":"pending","priority":"high"}]}';
    const task = '{"description":"look","prompt":"@@say from the child","subagent_type":"general"}';
    const end = await submit(`@@tool todowrite ${todos}\n@@tool task ${task}\n@@say done`);
    assert.deepEqual(end, { kind: 'completed' });
    assert.deepEqual(await harness.optional.todo?.(signal), [{ content: 'buzz', status: 'pending', priority: 'high' }]);
    const children = await harness.optional.children?.(signal);
    const threads = new Set(events.map((event) => event.threadId));
    assert.ok(children !== undefined && children.length === 1 && threads.has(children[0]?.threadId ?? ''));
    const before = events.filter((event) => event.type === 'session.compacted').length;
    turns += 1;
    const turn = { turnId: `t${turns}`, promptId: `p${turns}`, messageId: `m${turns}`, agent: null, model: null };
    assert.deepEqual(await harness.optional.compact?.(turn, signal), { kind: 'completed' });
    await until(
      'the compaction is told',
      () => events.filter((event) => event.type === 'session.compacted').length > before,
    );
  });

  it('FB5 ends the turn of a server that hangs, kills it and starts another', async () => {
    const request = provider.nextRequest();
    const running = submit('@@hang');
    await request;
    const { pid } = harness.health().details;
    assert.ok(typeof pid === 'number');
    process.kill(pid, 'SIGSTOP');
    const end = await running;
    assert.deepEqual([end.kind, end.kind === 'failed' && end.code], ['failed', 'harness_died']);
    await until(
      'a new server is there',
      () => harness.health().state === 'ok' && harness.health().details['pid'] !== pid,
      {
        deadlineMs: 120_000,
        describe: () => harness.health(),
      },
    );
    assert.deepEqual(await submit('@@say alive'), { kind: 'completed' });
  });

  it('ends a server that takes no abort, and calls the turn aborted', async () => {
    const request = provider.nextRequest();
    const abort = new AbortController();
    const running = submit('@@hang', abort.signal);
    await request;
    const { pid } = harness.health().details;
    assert.ok(typeof pid === 'number');
    process.kill(pid, 'SIGSTOP');
    abort.abort();
    assert.deepEqual(await running, { kind: 'aborted' });
  });

  it('resolves at once, as data, when there is no server', async () => {
    const { pid } = harness.health().details;
    assert.ok(typeof pid === 'number');
    process.kill(pid, 'SIGKILL');
    await until('the exit is seen', () => harness.health().state !== 'ok');
    const end = await submit('@@say hi');
    assert.deepEqual([end.kind, end.kind === 'failed' && end.code], ['failed', 'harness_died']);
  });
});
