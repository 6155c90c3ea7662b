// The verbs of a session over REST, through everything that is real. Processes are killed at the worst moments.
import assert from 'node:assert/strict';
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
import { apply } from '#kube/apply.ts';
import { PROJECTS } from '#kube/resource-types.ts';
import { createPromptRoute, streamEventsRoute } from '#schema/rest/prompts.ts';
import * as requests from '#schema/rest/requests.ts';
import * as verbs from '#schema/rest/session-verbs.ts';
import * as sessions from '#schema/rest/sessions.ts';
import * as transcript from '#schema/rest/transcript.ts';
import { openLatch, waitForLatch } from '#test/support/latch.ts';
import { whyNoOpencode } from '#test/support/opencode.ts';
import { until } from '#test/support/until.ts';
import { type SessionRest, startSessionRest } from './session-rest-rig.ts';

const skip = whyNoOpencode() ?? false;
const MANAGER = { manager: 'beeuni-test', force: true };
const bash = (command: string) => `@@tool bash ${JSON.stringify({ command, description: 'run' })}\n@@say done`;

describe('the verbs of a session over REST', { skip, timeout: 900_000 }, () => {
  let rig: SessionRest;
  before(async () => {
    rig = await startSessionRest();
  });
  after(async () => {
    await rig?.stop();
  });

  it('A144 answers 503 with a wait while the sandbox starts, and 404 to what does not exist', async () => {
    await assert.rejects(
      rig.alice().call(verbs.listCommandsRoute, { params: rig.at }),
      (error) => error instanceof UnavailableError && error.code === 'runtime_not_ready',
    );
    await assert.rejects(
      rig.alice().call(verbs.revertSessionRoute, { params: rig.at, body: { messageId: 'msg_x' } }),
      (error) => error instanceof UnavailableError && error.code === 'runtime_not_ready',
    );
    await assert.rejects(
      rig.alice().call(verbs.listCommandsRoute, { params: { ...rig.at, name: 'nobody' } }),
      (error) => error instanceof NotFoundError && error.code === 'session_not_found',
    );
    const page = await rig.alice().call(transcript.listMessagesRoute, { params: rig.at });
    assert.deepEqual([page.body.items, page.body.cursor], [[], null]);
    await rig.startBox();
    await rig.ready();
  });

  it('A122 a permission is answered through REST: listed, answered once, and the command runs', async () => {
    const prompt = await rig.say(bash('touch first'));
    const asked = await rig.openOne('permission');
    assert.deepEqual([asked.session, asked.state, asked.data['patterns']], ['work', 'open', ['touch first']]);
    assert.deepEqual((await rig.bob().call(requests.listRequestsRoute, {})).body.items, [], 'bob may answer nothing');
    const params = { ...rig.at, id: asked.id };
    await assert.rejects(
      rig.bob().call(requests.answerPermissionRoute, { params, body: { reply: 'once' } }),
      ForbiddenError,
    );
    await assert.rejects(
      rig.alice().call(requests.answerPermissionRoute, { params, body: { reply: 'perhaps' } as never }),
      (error) => error instanceof InvalidError && error.status === 400,
    );
    await assert.rejects(
      rig.alice().call(requests.answerQuestionRoute, { params, body: { reject: true } }),
      (error) => error instanceof NotFoundError && error.code === 'request_not_found',
    );
    assert.ok(!rig.inWorkspace('first'));
    const answered = await rig.alice().call(requests.answerPermissionRoute, { params, body: { reply: 'once' } });
    assert.equal(answered.status, 200);
    assert.equal((await rig.ended(prompt.id)).outcome, 'Succeeded');
    assert.ok(rig.inWorkspace('first'));
    const { body } = await until('it ended', async () => {
      const read = await rig.alice().call(requests.getPermissionRoute, { params });
      return read.body.state === 'ended' ? read : undefined;
    });
    assert.deepEqual([body.outcome, body.answeredBy?.includes('alice')], ['once', true]);
    const again = await rig.alice().call(requests.answerPermissionRoute, { params, body: { reply: 'once' } });
    assert.equal(again.status, 200);
    await assert.rejects(
      rig.alice().call(requests.answerPermissionRoute, { params, body: { reply: 'reject' } }),
      (error) => error instanceof ConflictError && error.code === 'request_ended',
    );
  });

  it('A122 a question is answered through REST, with answers that fit it', async () => {
    const question = {
      questions: [{ question: 'Which?', header: 'pick', options: [{ label: 'B', description: 'bee' }], custom: false }],
    };
    const prompt = await rig.say(`@@tool question ${JSON.stringify(question)}\n@@say thanks`);
    const asked = await rig.openOne('question');
    const params = { ...rig.at, id: asked.id };
    assert.equal((await rig.alice().call(requests.getQuestionRoute, { params })).body.state, 'open');
    await assert.rejects(
      rig.alice().call(requests.answerQuestionRoute, { params, body: { answers: [['B'], ['B']] } }),
      InvalidError,
    );
    await rig.alice().call(requests.answerQuestionRoute, { params, body: { answers: [['B']] } });
    assert.equal((await rig.ended(prompt.id)).outcome, 'Succeeded');
    assert.ok((await rig.textOfMessages()).includes('thanks'));
  });

  it('known-bugs K14 an answer outlives the control plane that took it: the daemon hears of it from the next one', async () => {
    const prompt = await rig.say(bash('touch second'));
    const asked = await rig.openOne('permission');
    // The daemon cannot be reached: the answer is stored, and its receiver dies.
    rig.door.setTarget(undefined);
    const params = { ...rig.at, id: asked.id };
    const answered = await rig.alice().call(requests.answerPermissionRoute, { params, body: { reply: 'once' } });
    assert.deepEqual([answered.status, answered.body.state], [202, 'answered']);
    rig.controlPlane().child.kill('SIGKILL');
    await rig.controlPlane().exited;
    const dead = rig.controlPlane();
    await rig.startPlane({
      BEEUNI_SANDBOX_PORT: new URL(await dead.url('sandbox')).port,
      BEEUNI_ENCRYPTION_KEY_FILE: join(dead.folder, 'key'),
    });
    rig.door.setTarget(Number(new URL(await rig.daemon().url()).port));
    assert.equal((await rig.ended(prompt.id)).outcome, 'Succeeded');
    assert.ok(rig.inWorkspace('second'));
  });

  it('A135 runs a slash command of the project as a turn; an unknown one is 400 with the nearest name', async () => {
    const { body } = await rig.alice().call(verbs.listCommandsRoute, { params: rig.at });
    assert.ok(body.items.some((command) => command.name === 'greet' && command.description === 'Greet somebody'));
    const run = await rig
      .alice()
      .call(verbs.runCommandRoute, { params: rig.at, body: { name: 'greet', arguments: 'Bea' } });
    assert.equal(run.status, 202);
    assert.equal((await rig.ended(run.body.id)).outcome, 'Succeeded');
    assert.ok((await rig.textOfMessages()).includes('hello Bea'));
    await assert.rejects(
      rig.alice().call(verbs.runCommandRoute, { params: rig.at, body: { name: 'gret' } }),
      (error) => error instanceof InvalidError && error.code === 'unknown_command' && /\/greet/.test(error.message),
    );
  });

  it('A62 A47 runs a shell command and a compaction as turns, each once', async () => {
    const body = { command: 'echo shelled > shelled.txt', messageId: 'shell-1' };
    const [first, second] = await Promise.all([
      rig.alice().call(verbs.runShellRoute, { params: rig.at, body }),
      rig.alice().call(verbs.runShellRoute, { params: rig.at, body }),
    ]);
    assert.equal(first.body.id, second.body.id);
    assert.equal((await rig.ended(first.body.id)).outcome, 'Succeeded');
    assert.ok(rig.inWorkspace('shelled.txt'));
    const compact = await rig.alice().call(verbs.summarizeSessionRoute, { params: rig.at, body: {} });
    assert.equal((await rig.ended(compact.body.id)).outcome, 'Succeeded');
    const text = await rig.textOfMessages();
    assert.ok(text.includes('"type":"compaction"') && text.includes('first'), 'the transcript keeps every message');
  });

  it('A146 A154 a steered prompt joins the running turn and ends with it; one that comes when nothing runs waits in the queue', async () => {
    const running = await rig.say(bash(`${waitForLatch('joined')}; echo slept`));
    await until('it runs', async () => (await rig.textOfMessages()).includes('rm joined'));
    const joined = await rig.say('@@say steered in', 'steer');
    assert.equal(joined.delivery, 'steer');
    openLatch(rig.folders.workspace, 'joined');
    const [first, second] = [await rig.ended(running.id), await rig.ended(joined.id)];
    assert.deepEqual([second.turnId, second.outcome], [first.turnId, 'Succeeded']);
    assert.ok((await rig.textOfMessages()).includes('steered in'));
    const late = await rig.say('@@say late', 'steer');
    assert.deepEqual([late.delivery, late.deliveryReason], ['queue', 'turn_ended']);
    assert.equal((await rig.ended(late.id)).outcome, 'Succeeded');
  });

  it('A62 rewinds, restores and forks; while a turn runs none of it', async () => {
    await rig.ended((await rig.say('@@tool write {"filePath":"rewind.txt","content":"buzz"}\n@@say written')).id);
    const { items } = (await rig.alice().call(transcript.listMessagesRoute, { params: rig.at })).body;
    const messageId = items.findLast((item) => item.message.role === 'user')?.message.id ?? '';
    await rig.alice().call(verbs.revertSessionRoute, { params: rig.at, body: { messageId } });
    assert.ok(!rig.inWorkspace('rewind.txt'));
    const reverted = (await rig.alice().call(transcript.listMessagesRoute, { params: rig.at })).body.items;
    assert.deepEqual([reverted.at(-1)?.reverted, reverted[0]?.reverted], [true, false]);
    await rig.alice().call(verbs.unrevertSessionRoute, { params: rig.at, body: {} });
    assert.ok(rig.inWorkspace('rewind.txt'));
    await assert.rejects(
      rig.alice().call(verbs.revertSessionRoute, { params: rig.at, body: { messageId: 'msg_nobody' } }),
      (error) => error instanceof NotFoundError && error.code === 'message_not_found',
    );
    const running = await rig.say(bash(waitForLatch('refused')));
    await until('it runs', async () => (await rig.textOfMessages()).includes('rm refused'));
    for (const call of [
      () => rig.alice().call(verbs.revertSessionRoute, { params: rig.at, body: { messageId } }),
      () => rig.alice().call(verbs.unrevertSessionRoute, { params: rig.at, body: {} }),
      () => rig.alice().call(verbs.forkSessionRoute, { params: rig.at, body: { messageId } }),
    ]) {
      await assert.rejects(call(), (error) => error instanceof ConflictError && error.code === 'turn_running');
    }
    openLatch(rig.folders.workspace, 'refused');
    await rig.ended(running.id);
    const fork = await rig.alice().call(verbs.forkSessionRoute, { params: rig.at, body: { messageId } });
    await until('the fork is in the transcript', async () => !(await rig.textOfMessages()).includes('rewind.txt'));
    assert.ok((await rig.textOfMessages({ thread: fork.body.threadId })).includes('rewind.txt'));
    const { body } = await rig.alice().call(transcript.listChildrenRoute, { params: rig.at });
    assert.ok(body.items.some((child) => child.threadId === fork.body.threadId));
  });

  it('A65 a subagent has a readable conversation, and takes no writes', async () => {
    const task = { description: 'look', prompt: '@@say from the child', subagent_type: 'general' };
    const todos = { todos: [{ content: 'buzz', status: 'pending', priority: 'high' }] };
    const text = `@@tool todowrite ${JSON.stringify(todos)}\n@@tool task ${JSON.stringify(task)}\n@@say done`;
    await rig.ended((await rig.say(text)).id);
    const { items } = (await rig.alice().call(transcript.listChildrenRoute, { params: rig.at })).body;
    const child = items.find((item) => item.title !== null);
    assert.ok(child !== undefined);
    assert.ok((await rig.textOfMessages({ thread: child.threadId })).includes('from the child'));
    assert.deepEqual((await rig.alice().call(transcript.getTodoRoute, { params: rig.at })).body.todos, todos.todos);
    const ofChild = await rig
      .alice()
      .call(transcript.getTodoRoute, { params: rig.at, query: { thread: child.threadId } });
    assert.deepEqual(ofChild.body.todos, []);
    const { threadId } = child;
    for (const call of [
      () =>
        rig.alice().call(createPromptRoute, {
          params: rig.at,
          body: { parts: [{ type: 'text' as const, text: 'x' }], threadId },
        }),
      () => rig.alice().call(verbs.runShellRoute, { params: rig.at, body: { command: 'true', threadId } }),
      () => rig.alice().call(verbs.summarizeSessionRoute, { params: rig.at, body: { threadId } }),
      () => rig.alice().call(verbs.revertSessionRoute, { params: rig.at, body: { messageId: 'msg_x', threadId } }),
      () => rig.alice().call(verbs.forkSessionRoute, { params: rig.at, body: { threadId } }),
    ]) {
      await assert.rejects(call(), (error) => error instanceof UnsupportedError && error.status === 501);
    }
  });

  it('A62 shows MCP servers, the terminal client and the configuration, without a secret', async () => {
    assert.deepEqual((await rig.alice().call(verbs.listMcpServersRoute, { params: rig.at })).body.items, []);
    const attach = await rig.alice().call(verbs.attachSessionRoute, { params: rig.at });
    assert.ok(attach.body.command.includes('attach'));
    const config = JSON.stringify((await rig.alice().call(verbs.getRuntimeConfigRoute, { params: rig.at })).body);
    assert.ok(config.includes('scripted/large') && !config.includes(rig.key));
    await assert.rejects(rig.bob().call(verbs.getRuntimeConfigRoute, { params: rig.at }), ForbiddenError);
  });

  it('J2 says what the session runs now and at its next start', async () => {
    const { body } = await rig.alice().call(verbs.getSessionHarnessRoute, { params: rig.at });
    assert.deepEqual(
      [body.now?.id, body.next, body.changes],
      ['opencode', { id: 'opencode', reason: 'default' }, false],
    );
    assert.match(body.message, /^now opencode, and so at the next start, because /);
    const { client } = rig.api.admin;
    const repository = { url: rig.remote.urlOf('shop.git') };
    const spec = { repository, features: { piHarness: 'Enabled' } };
    await apply(client, PROJECTS, { metadata: { namespace: rig.at.namespace, name: 'shop' }, spec }, MANAGER);
    const changed = await until('the flag is seen', async () => {
      const read = await rig.alice().call(verbs.getSessionHarnessRoute, { params: rig.at });
      return read.body.changes ? read.body : undefined;
    });
    assert.deepEqual([changed.next.id, changed.next.reason, changed.now?.id], ['pi', 'project-flag', 'opencode']);
    assert.match(changed.message, /^now opencode, next start pi, because the project flag pi_harness is on$/);
    assert.ok(changed.lost.includes('session.rewind') && !changed.lost.includes('session.compact'));
  });

  it('finds visible text, and gives the runs with their events', async () => {
    const hits = (
      await rig.alice().call(transcript.searchSessionRoute, { params: rig.at, query: { q: '"hello Bea"' } })
    ).body.items;
    assert.ok(hits.length > 0);
    const runs = (await rig.alice().call(transcript.listRunsRoute, { params: rig.at, query: { limit: 2 } })).body;
    const run = runs.items[0];
    assert.ok(run !== undefined && runs.cursor !== null);
    const events = await rig.alice().call(transcript.listRunEventsRoute, { params: { ...rig.at, id: run.id } });
    assert.equal(events.body.items[0]?.type, 'turn.started');
    await assert.rejects(
      rig.alice().call(transcript.listRunEventsRoute, { params: { ...rig.at, id: 'trn_nobody' } }),
      NotFoundError,
    );
  });

  it('A155 J12 a daemon that is killed leaves nothing asked and no call open; the next one answers', async () => {
    const prompt = await rig.say(bash('sleep 1; touch third'));
    const asked = await rig.openOne('permission');
    const params = { ...rig.at, id: asked.id };
    rig.daemon().signal('SIGKILL');
    await rig.daemon().exited;
    await rig.daemon().cleanUp();
    await rig.startBox();
    const released = await until('the request is released', async () => {
      const { body } = await rig.alice().call(requests.getPermissionRoute, { params });
      return body.state === 'ended' ? body : undefined;
    });
    assert.equal(released.outcome, 'reject');
    await assert.rejects(
      rig.alice().call(requests.answerPermissionRoute, { params, body: { reply: 'once' } }),
      (error) => error instanceof ConflictError && error.code === 'request_ended',
    );
    const next = await rig.openOne('permission');
    await rig.alice().call(requests.answerPermissionRoute, {
      params: { ...rig.at, id: next.id },
      body: { reply: 'reject', message: 'no' },
    });
    await rig.ended(prompt.id);
    const runs = (await rig.alice().call(transcript.listRunsRoute, { params: rig.at, query: { limit: 2 } })).body.items;
    assert.deepEqual(
      runs.map((run) => [run.attempt, run.outcome]),
      [
        [2, 'Succeeded'],
        [1, 'Interrupted'],
      ],
    );
    const interrupted = runs[1];
    assert.ok(interrupted !== undefined);
    const events = (
      await rig.alice().call(transcript.listRunEventsRoute, { params: { ...rig.at, id: interrupted.id } })
    ).body.items;
    const types = events.map((event) => event.type);
    assert.deepEqual(types.slice(-3), ['effect.uncertain', 'tool.terminal', 'turn.ended']);
    const { items } = (await rig.alice().call(transcript.listMessagesRoute, { params: rig.at, query: { limit: 200 } }))
      .body;
    const calls = items.flatMap((item) => item.parts).filter((part) => part.type === 'tool');
    assert.deepEqual(
      calls.filter((part) => part.state?.status === 'running' || part.state?.status === 'pending'),
      [],
    );
    assert.ok(calls.some((part) => /may have had its effect/.test(part.state?.error ?? '')));
  });

  it('A125 reads the conversation while the session sleeps, and wakes it for what only the harness knows', async () => {
    rig.daemon().signal('SIGTERM');
    await rig.daemon().exited;
    rig.door.setTarget(undefined);
    assert.ok((await rig.textOfMessages()).includes('from the child') || (await rig.textOfMessages()).length > 2);
    assert.ok((await rig.alice().call(transcript.listChildrenRoute, { params: rig.at })).body.items.length > 0);
    assert.deepEqual((await rig.alice().call(transcript.getTodoRoute, { params: rig.at })).body.todos.length, 1);
    await assert.rejects(
      rig.alice().call(verbs.listCommandsRoute, { params: rig.at }),
      (error) => error instanceof UnavailableError && error.code === 'runtime_not_ready',
    );
    await rig.alice().call(sessions.suspendSessionRoute, { params: rig.at, body: {} });
    await until('the wish is seen', () =>
      rig
        .alice()
        .call(verbs.listCommandsRoute, { params: rig.at })
        .then(
          () => false,
          (error) => error instanceof ConflictError && error.code === 'session_suspended',
        ),
    );
    const events = await rig.alice().sse(streamEventsRoute, { params: rig.at, query: { follow: 'false' } });
    let count = 0;
    for await (const event of events) count += event.event === 'hello' ? 0 : 1;
    assert.ok(count > 50);
  });
});
