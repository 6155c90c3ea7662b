// The verbs of a session over REST, through everything: a real API server, a control plane process, the real daemon and the
// real OpenCode with a scripted model. Processes are killed at the worst moments.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import {
  ConflictError,
  ForbiddenError,
  InvalidError,
  NotFoundError,
  UnavailableError,
  UnsupportedError,
} from '#base/errors.ts';
import { type Client, createClient } from '#base/http/client.ts';
import { apply, applyStatus } from '#kube/apply.ts';
import { PROJECTS, SESSIONS } from '#kube/resource-types.ts';
import { createPromptRoute, getPromptRoute, streamEventsRoute } from '#schema/rest/prompts.ts';
import * as requests from '#schema/rest/requests.ts';
import * as verbs from '#schema/rest/session-verbs.ts';
import * as sessions from '#schema/rest/sessions.ts';
import * as transcript from '#schema/rest/transcript.ts';
import { putProviderRoute } from '#schema/rest/workspace.ts';
import { syncProjectRoute } from '#schema/wire/sync.ts';
import { type ControlPlaneProcess, startControlPlane } from '#test/support/control-plane.ts';
import {
  type DaemonProcess,
  makeSandboxFolders,
  type SandboxFolders,
  startDaemon,
} from '#test/support/daemon-process.ts';
import { type ForwardedPort, forwardPort } from '#test/support/forward-port.ts';
import { startTestRemote, type TestRemote } from '#test/support/git-server.ts';
import { applyFile, startTestApi, type TestApi } from '#test/support/kube.ts';
import { createAccount, createIdlePod, grant, grantPaths, tokenOf } from '#test/support/kube-accounts.ts';
import { openLatch, waitForLatch } from '#test/support/latch.ts';
import { whyNoOpencode } from '#test/support/opencode.ts';
import { freshDatabase, type TestDatabase } from '#test/support/postgres.ts';
import { type ScriptedProvider, startScriptedProvider } from '#test/support/scripted-provider.ts';
import { until } from '#test/support/until.ts';

const skip = whyNoOpencode() ?? false;
const AUDIENCE = 'beeuni-control-plane';
const MANAGER = { manager: 'beeuni-test', force: true };
const KEY = 'sk-canary-rest-verbs-17c2';
/** Addresses of 127.0.0.0/8 are all this machine; the process id keeps two runs apart. */
const POD_IP = `127.77.${(process.pid >> 8) & 255}.${(process.pid & 127) + 1}`;

const AGENT = `---
description: Works in the repository
mode: primary
permission:
  bash:
    '*': allow
    'touch *': ask
---
You are the developer.
`;
const MANIFEST = 'beeuni_version: 2\ndefault_agent: dev\nagents:\n  dev:\n    tools: all\n    skills: all\n';
const COMMAND = '---\ndescription: Greet somebody\n---\n@@say hello $ARGUMENTS\n';

describe('the verbs of a session over REST', { skip, timeout: 900_000 }, () => {
  let api: TestApi;
  let database: TestDatabase;
  let provider: ScriptedProvider;
  let remote: TestRemote;
  let controlPlane: ControlPlaneProcess;
  let daemon: DaemonProcess;
  let folders: SandboxFolders;
  let door: ForwardedPort;
  let namespace: string;
  let uid: string;
  let podUid: string;
  const tokens: Record<string, string> = {};
  let alice: Client;
  let bob: Client;

  const at = { namespace: '', name: 'work' };
  const clientOf = (baseUrl: string, token: string): Client =>
    createClient({ baseUrl, token: () => token, peer: 'the control plane', unreachable: 'control_plane_unavailable' });
  const connect = async (): Promise<void> => {
    const url = await controlPlane.url('public');
    alice = clientOf(url, tokens['alice'] ?? '');
    bob = clientOf(url, tokens['bob'] ?? '');
  };
  const startPlane = async (more: Readonly<Record<string, string>> = {}): Promise<void> => {
    controlPlane = await startControlPlane({
      kubeconfigPath: api.kubeconfigPath,
      databaseUrl: database.databaseUrl,
      environment: {
        BEEUNI_OPERATOR_NAMESPACE: namespace,
        BEEUNI_OPERATOR_SERVICE_ACCOUNT: 'operator',
        BEEUNI_PROVIDER_ALLOWED_PRIVATE_HOSTS: '127.0.0.0/8',
        BEEUNI_GIT_INSECURE_HTTP_HOSTS: '127.0.0.1',
        BEEUNI_RATE_LIMIT_PER_SECOND: '100000',
        BEEUNI_RATE_LIMIT_BURST: '1000000',
        ...more,
      },
    });
    await controlPlane.ready();
    await connect();
  };
  const startBox = async (): Promise<void> => {
    daemon = startDaemon(folders, await controlPlane.url('sandbox'));
    const url = await daemon.url();
    door.setTarget(Number(new URL(url).port));
  };
  const ready = () =>
    until(
      'the control plane knows that the harness is ready',
      async () => {
        const report = await alice.call(sessions.sessionHealthRoute, { params: at }).catch(() => undefined);
        return report?.body.health.runtimeReady === true && !report.body.silent;
      },
      { deadlineMs: 240_000, describe: () => daemon.output().slice(-2_000) },
    );
  const say = async (text: string, delivery: 'queue' | 'steer' = 'queue') =>
    (await alice.call(createPromptRoute, { params: at, body: { parts: [{ type: 'text', text }], delivery } })).body;
  const ended = (id: string) =>
    until(
      'the prompt ended',
      async () => {
        const { body } = await alice.call(getPromptRoute, { params: { ...at, id } });
        return body.state === 'ended' ? body : undefined;
      },
      { deadlineMs: 240_000, describe: () => daemon.output().slice(-2_000) },
    );
  const openOne = (kind: 'permission' | 'question') =>
    until(
      'something is asked',
      async () => {
        const { body } = await alice.call(requests.listRequestsRoute, {});
        return body.items.find((item) => item.kind === kind);
      },
      { deadlineMs: 240_000, describe: () => daemon.output().slice(-2_000) },
    );
  const bash = (command: string) => `@@tool bash ${JSON.stringify({ command, description: 'run' })}\n@@say done`;
  const inWorkspace = (name: string): boolean => existsSync(join(folders.workspace, name));
  const textOfMessages = async (query: Readonly<{ thread?: string }> = {}) =>
    JSON.stringify(
      (await alice.call(transcript.listMessagesRoute, { params: at, query: { limit: 200, ...query } })).body.items,
    );

  before(async () => {
    [api, database, provider, remote, door] = await Promise.all([
      startTestApi(),
      freshDatabase(),
      startScriptedProvider({ key: KEY, models: ['large'] }),
      startTestRemote(),
      forwardPort(POD_IP, 8_000),
    ]);
    const { client } = api.admin;
    await applyFile(client, 'crds/projects.yaml');
    await applyFile(client, 'crds/sessions.yaml');
    namespace = await api.namespace();
    at.namespace = namespace;
    for (const name of ['alice', 'bob', 'operator', 'sandbox']) await createAccount(client, namespace, name);
    await grant(client, namespace, 'alice', 'alice', "[{apiGroups: [beeuni.dev], resources: ['*'], verbs: ['*']}]");
    await grant(client, namespace, 'bob', 'bob', '[{apiGroups: [beeuni.dev], resources: [sessions], verbs: [get]}]');
    await grantPaths(client, namespace, 'alice', `${namespace}-alice`, ['/v1/workspace/*']);
    for (const account of ['alice', 'bob']) tokens[account] = await tokenOf(client, { namespace, account });
    const operatorToken = await tokenOf(client, { namespace, account: 'operator', audience: AUDIENCE });
    await remote.commit('shop.git', {
      'README.md': '# Shop\n',
      'beeuni.yaml': MANIFEST,
      'agents/dev.md': AGENT,
      'harnesses/opencode/commands/greet.md': COMMAND,
    });
    const repository = { url: remote.urlOf('shop.git') };
    const project = await apply(
      client,
      PROJECTS,
      { metadata: { namespace, name: 'shop' }, spec: { repository } },
      MANAGER,
    );
    await startPlane();
    await alice.call(putProviderRoute, {
      params: { id: 'scripted' },
      body: { kind: 'openai-compatible', base_url: provider.url, api_key: KEY, models: [{ id: 'large' }] },
    } as never);
    const operator = clientOf(await controlPlane.url('internal'), operatorToken);
    let fact: unknown;
    const isRead = async (): Promise<boolean> => {
      const { body } = await operator.call(syncProjectRoute, {
        params: { namespace, name: 'shop' },
        body: {
          uid: project.metadata.uid ?? '',
          generation: 1,
          syncToken: null,
          repository: {
            url: repository.url,
            defaultBranch: null,
            credentialsSecretName: null,
            forcePush: 'Forbidden',
            pollIntervalSeconds: 0,
          },
          manifestPath: 'beeuni.yaml',
          features: { llm_gateway: true },
          defaults: { agent: null, model: 'scripted/large' },
          allowedModels: null,
          secrets: [],
        },
      });
      fact = body;
      return body.state === 'done' && body.manifest.lastValid !== null;
    };
    await until('the project is read', isRead, { describe: () => fact });
    const made = await alice.call(sessions.createSessionRoute, {
      params: { namespace },
      body: { name: 'work', spec: { projectRef: { name: 'shop' }, model: 'scripted/large' } },
    });
    uid = made.body.uid;
    podUid = await createIdlePod(client, namespace, 'work-1', 'sandbox');
    const pod = { name: 'work-1', uid: podUid };
    folders = makeSandboxFolders(await tokenOf(client, { namespace, account: 'sandbox', audience: AUDIENCE, pod }));
    const status = {
      phase: 'Running',
      harness: { id: 'opencode', reason: 'default' },
      pod: { name: 'work-1', uid: podUid, ip: POD_IP, attempt: 1 },
    };
    await applyStatus(client, SESSIONS, { metadata: { namespace, name: 'work', uid }, status } as never, MANAGER);
  });
  after(async () => {
    await daemon?.cleanUp();
    await door?.close();
    await controlPlane?.stop();
    await remote?.close();
    await provider?.close();
    await api?.stop();
    folders?.remove();
  });

  it('A144 answers 503 with a wait while the sandbox starts, and 404 to what does not exist', async () => {
    await assert.rejects(
      alice.call(verbs.listCommandsRoute, { params: at }),
      (error) => error instanceof UnavailableError && error.code === 'runtime_not_ready',
    );
    await assert.rejects(
      alice.call(verbs.revertSessionRoute, { params: at, body: { messageId: 'msg_x' } }),
      (error) => error instanceof UnavailableError && error.code === 'runtime_not_ready',
    );
    await assert.rejects(
      alice.call(verbs.listCommandsRoute, { params: { ...at, name: 'nobody' } }),
      (error) => error instanceof NotFoundError && error.code === 'session_not_found',
    );
    const page = await alice.call(transcript.listMessagesRoute, { params: at });
    assert.deepEqual([page.body.items, page.body.cursor], [[], null]);
    await startBox();
    await ready();
  });

  it('A122 a permission is answered through REST: listed, answered once, and the command runs', async () => {
    const prompt = await say(bash('touch first'));
    const asked = await openOne('permission');
    assert.deepEqual([asked.session, asked.state, asked.data['patterns']], ['work', 'open', ['touch first']]);
    assert.deepEqual((await bob.call(requests.listRequestsRoute, {})).body.items, [], 'bob may answer nothing');
    const params = { ...at, id: asked.id };
    await assert.rejects(bob.call(requests.answerPermissionRoute, { params, body: { reply: 'once' } }), ForbiddenError);
    await assert.rejects(
      alice.call(requests.answerPermissionRoute, { params, body: { reply: 'perhaps' } as never }),
      (error) => error instanceof InvalidError && error.status === 400,
    );
    await assert.rejects(
      alice.call(requests.answerQuestionRoute, { params, body: { reject: true } }),
      (error) => error instanceof NotFoundError && error.code === 'request_not_found',
    );
    assert.ok(!inWorkspace('first'));
    const answered = await alice.call(requests.answerPermissionRoute, { params, body: { reply: 'once' } });
    assert.equal(answered.status, 200);
    assert.equal((await ended(prompt.id)).outcome, 'Succeeded');
    assert.ok(inWorkspace('first'));
    const { body } = await until('it ended', async () => {
      const read = await alice.call(requests.getPermissionRoute, { params });
      return read.body.state === 'ended' ? read : undefined;
    });
    assert.deepEqual([body.outcome, body.answeredBy?.includes('alice')], ['once', true]);
    const again = await alice.call(requests.answerPermissionRoute, { params, body: { reply: 'once' } });
    assert.equal(again.status, 200);
    await assert.rejects(
      alice.call(requests.answerPermissionRoute, { params, body: { reply: 'reject' } }),
      (error) => error instanceof ConflictError && error.code === 'request_ended',
    );
  });

  it('A122 a question is answered through REST, with answers that fit it', async () => {
    const question = {
      questions: [{ question: 'Which?', header: 'pick', options: [{ label: 'B', description: 'bee' }], custom: false }],
    };
    const prompt = await say(`@@tool question ${JSON.stringify(question)}\n@@say thanks`);
    const asked = await openOne('question');
    const params = { ...at, id: asked.id };
    assert.equal((await alice.call(requests.getQuestionRoute, { params })).body.state, 'open');
    await assert.rejects(
      alice.call(requests.answerQuestionRoute, { params, body: { answers: [['B'], ['B']] } }),
      InvalidError,
    );
    await alice.call(requests.answerQuestionRoute, { params, body: { answers: [['B']] } });
    assert.equal((await ended(prompt.id)).outcome, 'Succeeded');
    assert.ok((await textOfMessages()).includes('thanks'));
  });

  it('known-bugs K14 an answer outlives the control plane that took it: the daemon hears of it from the next one', async () => {
    const prompt = await say(bash('touch second'));
    const asked = await openOne('permission');
    // The daemon cannot be reached: the answer is stored, and its receiver dies.
    door.setTarget(undefined);
    const params = { ...at, id: asked.id };
    const answered = await alice.call(requests.answerPermissionRoute, { params, body: { reply: 'once' } });
    assert.deepEqual([answered.status, answered.body.state], [202, 'answered']);
    controlPlane.child.kill('SIGKILL');
    await controlPlane.exited;
    const dead = controlPlane;
    await startPlane({
      BEEUNI_SANDBOX_PORT: new URL(await dead.url('sandbox')).port,
      BEEUNI_ENCRYPTION_KEY_FILE: join(dead.folder, 'key'),
    });
    door.setTarget(Number(new URL(await daemon.url()).port));
    assert.equal((await ended(prompt.id)).outcome, 'Succeeded');
    assert.ok(inWorkspace('second'));
  });

  it('A135 runs a slash command of the project as a turn; an unknown one is 400 with the nearest name', async () => {
    const { body } = await alice.call(verbs.listCommandsRoute, { params: at });
    assert.ok(body.items.some((command) => command.name === 'greet' && command.description === 'Greet somebody'));
    const run = await alice.call(verbs.runCommandRoute, { params: at, body: { name: 'greet', arguments: 'Bea' } });
    assert.equal(run.status, 202);
    assert.equal((await ended(run.body.id)).outcome, 'Succeeded');
    assert.ok((await textOfMessages()).includes('hello Bea'));
    await assert.rejects(
      alice.call(verbs.runCommandRoute, { params: at, body: { name: 'gret' } }),
      (error) => error instanceof InvalidError && error.code === 'unknown_command' && /\/greet/.test(error.message),
    );
  });

  it('A62 A47 runs a shell command and a compaction as turns, each once', async () => {
    const body = { command: 'echo shelled > shelled.txt', messageId: 'shell-1' };
    const [first, second] = await Promise.all([
      alice.call(verbs.runShellRoute, { params: at, body }),
      alice.call(verbs.runShellRoute, { params: at, body }),
    ]);
    assert.equal(first.body.id, second.body.id);
    assert.equal((await ended(first.body.id)).outcome, 'Succeeded');
    assert.ok(inWorkspace('shelled.txt'));
    const compact = await alice.call(verbs.summarizeSessionRoute, { params: at, body: {} });
    assert.equal((await ended(compact.body.id)).outcome, 'Succeeded');
    const text = await textOfMessages();
    assert.ok(text.includes('"type":"compaction"') && text.includes('first'), 'the transcript keeps every message');
  });

  it('A146 A154 a steered prompt joins the running turn and ends with it; one that comes when nothing runs waits in the queue', async () => {
    const running = await say(bash(`${waitForLatch('joined')}; echo slept`));
    await until('it runs', async () => (await textOfMessages()).includes('rm joined'));
    const joined = await say('@@say steered in', 'steer');
    assert.equal(joined.delivery, 'steer');
    openLatch(folders.workspace, 'joined');
    const [first, second] = [await ended(running.id), await ended(joined.id)];
    assert.deepEqual([second.turnId, second.outcome], [first.turnId, 'Succeeded']);
    assert.ok((await textOfMessages()).includes('steered in'));
    const late = await say('@@say late', 'steer');
    assert.deepEqual([late.delivery, late.deliveryReason], ['queue', 'turn_ended']);
    assert.equal((await ended(late.id)).outcome, 'Succeeded');
  });

  it('A62 rewinds, restores and forks; while a turn runs none of it', async () => {
    await ended((await say('@@tool write {"filePath":"rewind.txt","content":"buzz"}\n@@say written')).id);
    const { items } = (await alice.call(transcript.listMessagesRoute, { params: at })).body;
    const messageId = items.findLast((item) => item.message.role === 'user')?.message.id ?? '';
    await alice.call(verbs.revertSessionRoute, { params: at, body: { messageId } });
    assert.ok(!inWorkspace('rewind.txt'));
    const reverted = (await alice.call(transcript.listMessagesRoute, { params: at })).body.items;
    assert.deepEqual([reverted.at(-1)?.reverted, reverted[0]?.reverted], [true, false]);
    await alice.call(verbs.unrevertSessionRoute, { params: at, body: {} });
    assert.ok(inWorkspace('rewind.txt'));
    await assert.rejects(
      alice.call(verbs.revertSessionRoute, { params: at, body: { messageId: 'msg_nobody' } }),
      (error) => error instanceof NotFoundError && error.code === 'message_not_found',
    );
    const running = await say(bash(waitForLatch('refused')));
    await until('it runs', async () => (await textOfMessages()).includes('rm refused'));
    for (const call of [
      () => alice.call(verbs.revertSessionRoute, { params: at, body: { messageId } }),
      () => alice.call(verbs.unrevertSessionRoute, { params: at, body: {} }),
      () => alice.call(verbs.forkSessionRoute, { params: at, body: { messageId } }),
    ]) {
      await assert.rejects(call(), (error) => error instanceof ConflictError && error.code === 'turn_running');
    }
    openLatch(folders.workspace, 'refused');
    await ended(running.id);
    const fork = await alice.call(verbs.forkSessionRoute, { params: at, body: { messageId } });
    await until('the fork is in the transcript', async () => !(await textOfMessages()).includes('rewind.txt'));
    assert.ok((await textOfMessages({ thread: fork.body.threadId })).includes('rewind.txt'));
    const { body } = await alice.call(transcript.listChildrenRoute, { params: at });
    assert.ok(body.items.some((child) => child.threadId === fork.body.threadId));
  });

  it('A65 a subagent has a readable conversation, and takes no writes', async () => {
    const task = { description: 'look', prompt: '@@say from the child', subagent_type: 'general' };
    const todos = { todos: [{ content: 'buzz', status: 'pending', priority: 'high' }] };
    const text = `@@tool todowrite ${JSON.stringify(todos)}\n@@tool task ${JSON.stringify(task)}\n@@say done`;
    await ended((await say(text)).id);
    const { items } = (await alice.call(transcript.listChildrenRoute, { params: at })).body;
    const child = items.find((item) => item.title !== null);
    assert.ok(child !== undefined);
    assert.ok((await textOfMessages({ thread: child.threadId })).includes('from the child'));
    assert.deepEqual((await alice.call(transcript.getTodoRoute, { params: at })).body.todos, todos.todos);
    const ofChild = await alice.call(transcript.getTodoRoute, { params: at, query: { thread: child.threadId } });
    assert.deepEqual(ofChild.body.todos, []);
    const { threadId } = child;
    for (const call of [
      () =>
        alice.call(createPromptRoute, {
          params: at,
          body: { parts: [{ type: 'text' as const, text: 'x' }], threadId },
        }),
      () => alice.call(verbs.runShellRoute, { params: at, body: { command: 'true', threadId } }),
      () => alice.call(verbs.summarizeSessionRoute, { params: at, body: { threadId } }),
      () => alice.call(verbs.revertSessionRoute, { params: at, body: { messageId: 'msg_x', threadId } }),
      () => alice.call(verbs.forkSessionRoute, { params: at, body: { threadId } }),
    ]) {
      await assert.rejects(call(), (error) => error instanceof UnsupportedError && error.status === 501);
    }
  });

  it('A62 shows MCP servers, the terminal client and the configuration, without a secret', async () => {
    assert.deepEqual((await alice.call(verbs.listMcpServersRoute, { params: at })).body.items, []);
    const attach = await alice.call(verbs.attachSessionRoute, { params: at });
    assert.ok(attach.body.command.includes('attach'));
    const config = JSON.stringify((await alice.call(verbs.getRuntimeConfigRoute, { params: at })).body);
    assert.ok(config.includes('scripted/large') && !config.includes(KEY));
    await assert.rejects(bob.call(verbs.getRuntimeConfigRoute, { params: at }), ForbiddenError);
  });

  it('J2 says what the session runs now and at its next start', async () => {
    const { body } = await alice.call(verbs.getSessionHarnessRoute, { params: at });
    assert.deepEqual(
      [body.now?.id, body.next, body.changes],
      ['opencode', { id: 'opencode', reason: 'default' }, false],
    );
    assert.match(body.message, /^now opencode, and so at the next start, because /);
    const { client } = api.admin;
    const repository = { url: remote.urlOf('shop.git') };
    const spec = { repository, features: { piHarness: 'Enabled' } };
    await apply(client, PROJECTS, { metadata: { namespace, name: 'shop' }, spec }, MANAGER);
    const changed = await until('the flag is seen', async () => {
      const read = await alice.call(verbs.getSessionHarnessRoute, { params: at });
      return read.body.changes ? read.body : undefined;
    });
    assert.deepEqual([changed.next.id, changed.next.reason, changed.now?.id], ['pi', 'project-flag', 'opencode']);
    assert.match(changed.message, /^now opencode, next start pi, because the project flag pi_harness is on$/);
    assert.ok(changed.lost.includes('session.rewind') && !changed.lost.includes('session.compact'));
  });

  it('finds visible text, and gives the runs with their events', async () => {
    const hits = (await alice.call(transcript.searchSessionRoute, { params: at, query: { q: '"hello Bea"' } })).body
      .items;
    assert.ok(hits.length > 0);
    const runs = (await alice.call(transcript.listRunsRoute, { params: at, query: { limit: 2 } })).body;
    const run = runs.items[0];
    assert.ok(run !== undefined && runs.cursor !== null);
    const events = await alice.call(transcript.listRunEventsRoute, { params: { ...at, id: run.id } });
    assert.equal(events.body.items[0]?.type, 'turn.started');
    await assert.rejects(
      alice.call(transcript.listRunEventsRoute, { params: { ...at, id: 'trn_nobody' } }),
      NotFoundError,
    );
  });

  it('A155 J12 a daemon that is killed leaves nothing asked and no call open; the next one answers', async () => {
    const prompt = await say(bash('sleep 1; touch third'));
    const asked = await openOne('permission');
    const params = { ...at, id: asked.id };
    daemon.signal('SIGKILL');
    await daemon.exited;
    await daemon.cleanUp();
    await startBox();
    const released = await until('the request is released', async () => {
      const { body } = await alice.call(requests.getPermissionRoute, { params });
      return body.state === 'ended' ? body : undefined;
    });
    assert.equal(released.outcome, 'reject');
    await assert.rejects(
      alice.call(requests.answerPermissionRoute, { params, body: { reply: 'once' } }),
      (error) => error instanceof ConflictError && error.code === 'request_ended',
    );
    const next = await openOne('permission');
    await alice.call(requests.answerPermissionRoute, {
      params: { ...at, id: next.id },
      body: { reply: 'reject', message: 'no' },
    });
    await ended(prompt.id);
    const runs = (await alice.call(transcript.listRunsRoute, { params: at, query: { limit: 2 } })).body.items;
    assert.deepEqual(
      runs.map((run) => [run.attempt, run.outcome]),
      [
        [2, 'Succeeded'],
        [1, 'Interrupted'],
      ],
    );
    const interrupted = runs[1];
    assert.ok(interrupted !== undefined);
    const events = (await alice.call(transcript.listRunEventsRoute, { params: { ...at, id: interrupted.id } })).body
      .items;
    const types = events.map((event) => event.type);
    assert.deepEqual(types.slice(-3), ['effect.uncertain', 'tool.terminal', 'turn.ended']);
    const { items } = (await alice.call(transcript.listMessagesRoute, { params: at, query: { limit: 200 } })).body;
    const calls = items.flatMap((item) => item.parts).filter((part) => part.type === 'tool');
    assert.deepEqual(
      calls.filter((part) => part.state?.status === 'running' || part.state?.status === 'pending'),
      [],
    );
    assert.ok(calls.some((part) => /may have had its effect/.test(part.state?.error ?? '')));
  });

  it('A125 reads the conversation while the session sleeps, and wakes it for what only the harness knows', async () => {
    daemon.signal('SIGTERM');
    await daemon.exited;
    door.setTarget(undefined);
    assert.ok((await textOfMessages()).includes('from the child') || (await textOfMessages()).length > 2);
    assert.ok((await alice.call(transcript.listChildrenRoute, { params: at })).body.items.length > 0);
    assert.deepEqual((await alice.call(transcript.getTodoRoute, { params: at })).body.todos.length, 1);
    await assert.rejects(
      alice.call(verbs.listCommandsRoute, { params: at }),
      (error) => error instanceof UnavailableError && error.code === 'runtime_not_ready',
    );
    await alice.call(sessions.suspendSessionRoute, { params: at, body: {} });
    await until('the wish is seen', () =>
      alice.call(verbs.listCommandsRoute, { params: at }).then(
        () => false,
        (error) => error instanceof ConflictError && error.code === 'session_suspended',
      ),
    );
    const events = await alice.sse(streamEventsRoute, { params: at, query: { follow: 'false' } });
    let count = 0;
    for await (const event of events) count += event.event === 'hello' ? 0 : 1;
    assert.ok(count > 50);
  });
});
