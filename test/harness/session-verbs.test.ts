// What clients ask of a session besides prompts, with the real OpenCode in the real daemon: answers to permissions and
// questions, turns that are no prompt, rewind, fork, steering and the documents, all over port 8000.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { HealthDocument } from '#schema/wire/health.ts';
import type { Turn } from '#schema/wire/turns.ts';
import type { DaemonProcess } from '#test/support/daemon-process.ts';
import { openLatch, waitForLatch } from '#test/support/latch.ts';
import { whyNoOpencode } from '#test/support/opencode.ts';
import type { LoggedEvent } from '#test/support/scripted-control-plane.ts';
import { until } from '#test/support/until.ts';
import { CANARY, makeRig, type Rig } from './rig.ts';

const skip = whyNoOpencode() ?? false;

describe('a session beyond prompts', { skip, timeout: 900_000 }, () => {
  let rig: Rig;
  let daemon: DaemonProcess;

  const post = (path: string, body: unknown = {}) => daemon.call('POST', path, rig.controlPlane.daemonCredential, body);
  const get = (path: string) => daemon.call('GET', path, rig.controlPlane.daemonCredential);
  const codeOf = (answer: Readonly<{ status: number; body: unknown }>) => [
    answer.status,
    (answer.body as { error?: { code?: string } }).error?.code,
  ];

  const begin = async (parts: Turn['parts']): Promise<string> => {
    const turnId = rig.controlPlane.prompt('', { parts });
    await post('/beeuni/nudge', { reason: 'prompt' });
    return turnId;
  };
  const say = (text: string): Promise<string> => begin([{ type: 'text', text }]);
  const endOf = async (turnId: string): Promise<LoggedEvent['data']> => {
    const end = await rig.controlPlane.event('turn.ended', turnId);
    await rig.controlPlane.healthy('idle', (health) => health.activity.state === 'Idle');
    assert.equal(rig.controlPlane.eventsOf(turnId).filter((event) => event.type === 'turn.ended').length, 1);
    return end.data;
  };
  const bash = (command: string): string =>
    `@@tool bash ${JSON.stringify({ command, description: 'run' })}\n@@say done`;
  const askedIn = async (turnId: string, type: 'permission.asked' | 'question.asked'): Promise<string> =>
    String((await rig.controlPlane.event(type, turnId)).data['id']);
  const dataOf = (turnId: string, type: string): readonly LoggedEvent['data'][] =>
    rig.controlPlane
      .eventsOf(turnId)
      .filter((event) => event.type === type)
      .map((event) => event.data);
  const inWorkspace = (name: string): boolean => existsSync(join(rig.folders.workspace, name));

  before(async () => {
    rig = await makeRig({
      claim: {
        env: { SHOP_KEY: CANARY.grantedSecret },
        agents: [
          {
            name: 'dev',
            mode: 'primary',
            prompt: 'You are the developer.',
            tools: 'all',
            skills: 'all',
            permission: { bash: { '*': 'allow', 'touch *': 'ask', 'touch secret*': 'deny' } },
          },
        ],
      },
    });
    daemon = rig.start();
    await rig.controlPlane.healthy('ready', (health) => health.runtimeReady);
  });
  after(async () => {
    await rig?.stop();
  });

  it('A119 runs a command once a person has allowed it once, and asks again the next time', async () => {
    const turnId = await say(bash('touch first'));
    const id = await askedIn(turnId, 'permission.asked');
    await rig.controlPlane.healthy('it waits', (health) => health.activity.state === 'WaitingForInput');
    assert.ok(!inWorkspace('first'));
    const answer = { kind: 'permission', reply: 'once' };
    assert.deepEqual(await post(`/beeuni/requests/${id}`, answer), { status: 200, body: { state: 'taken' } });
    assert.equal((await endOf(turnId))['outcome'], 'Succeeded');
    assert.ok(inWorkspace('first'));
    assert.deepEqual(dataOf(turnId, 'permission.replied'), [{ id, reply: 'once' }]);
    assert.deepEqual(await post(`/beeuni/requests/${id}`, answer), { status: 200, body: { state: 'taken' } });
    const other = await post(`/beeuni/requests/${id}`, { kind: 'permission', reply: 'reject' });
    assert.deepEqual(other, { status: 200, body: { state: 'ended' } });
  });

  it('A41 tells the model why a person refused, and the turn goes on', async () => {
    const turnId = await say(bash('touch second'));
    const id = await askedIn(turnId, 'permission.asked');
    await post(`/beeuni/requests/${id}`, { kind: 'permission', reply: 'reject', message: 'use the other file' });
    assert.equal((await endOf(turnId))['outcome'], 'Succeeded');
    assert.ok(!inWorkspace('second'));
    assert.ok(JSON.stringify(rig.provider.requests.at(-1)).includes('use the other file'));
  });

  it('A119 lets "always" hold for the session, and never beat a deny', async () => {
    const first = await say(bash('touch third'));
    const id = await askedIn(first, 'permission.asked');
    await post(`/beeuni/requests/${id}`, { kind: 'permission', reply: 'always' });
    await endOf(first);
    const second = await say(bash('touch fourth'));
    assert.equal((await endOf(second))['outcome'], 'Succeeded');
    assert.deepEqual(dataOf(second, 'permission.asked'), []);
    const third = await say(bash('touch secret1'));
    await endOf(third);
    assert.deepEqual(['third', 'fourth', 'secret1'].map(inWorkspace), [true, true, false]);
  });

  it('A120 gives the model the answers of a person', async () => {
    const question = {
      questions: [{ question: 'Which one?', header: 'pick', options: [{ label: 'B', description: 'bee' }] }],
    };
    const turnId = await say(`@@tool question ${JSON.stringify(question)}\n@@say thanks`);
    const id = await askedIn(turnId, 'question.asked');
    assert.equal((await post(`/beeuni/requests/${id}`, { kind: 'permission', reply: 'once' })).status, 404);
    await post(`/beeuni/requests/${id}`, { kind: 'question', answers: [['B']] });
    assert.equal((await endOf(turnId))['outcome'], 'Succeeded');
    assert.deepEqual(dataOf(turnId, 'question.replied'), [{ id, answers: [['B']] }]);
  });

  it('K14 takes an answer that came with a report when the call was lost', async () => {
    const turnId = await say(
      `@@tool question ${JSON.stringify({ questions: [{ question: 'Ok?', header: 'ok', options: [{ label: 'Y', description: 'yes' }] }] })}\n@@say ok`,
    );
    const id = await askedIn(turnId, 'question.asked');
    rig.controlPlane.answerByReport({ id, answer: { kind: 'question', answers: [['Y']] } });
    assert.equal((await endOf(turnId))['outcome'], 'Succeeded');
  });

  it('A121 releases what is asked when the turn is aborted; later answers come too late', async () => {
    const question = { questions: [{ question: 'Ok?', header: 'ok', options: [{ label: 'Y', description: 'yes' }] }] };
    const turnId = await say(`@@tool question ${JSON.stringify(question)}\n@@say ok`);
    const id = await askedIn(turnId, 'question.asked');
    await post('/beeuni/abort', { turnId });
    assert.equal((await endOf(turnId))['outcome'], 'Aborted');
    assert.deepEqual(dataOf(turnId, 'question.rejected'), [{ id }]);
    const late = await post(`/beeuni/requests/${id}`, { kind: 'question', answers: [['Y']] });
    assert.deepEqual(late, { status: 200, body: { state: 'ended' } });
  });

  it('A121 answers 404 to an id that was never asked, and 400 to an answer that is none', async () => {
    const never = await post('/beeuni/requests/per_never', { kind: 'permission', reply: 'once' });
    assert.deepEqual(codeOf(never), [404, 'request_not_found']);
    assert.equal((await post('/beeuni/requests/per_never', { kind: 'permission', reply: 'maybe' })).status, 400);
    const foreign = await daemon.call('POST', '/beeuni/requests/x', 'not-the-credential', {});
    assert.equal(foreign.status, 401);
  });

  it('A62 runs a shell command as a turn without a model, with one end', async () => {
    const calls = rig.provider.requests.length;
    const turnId = await begin([{ type: 'shell', command: 'echo from-the-shell > shell.txt; echo said' }]);
    assert.equal((await endOf(turnId))['outcome'], 'Succeeded');
    assert.equal(readFileSync(join(rig.folders.workspace, 'shell.txt'), 'utf8').trim(), 'from-the-shell');
    assert.equal(rig.provider.requests.length, calls);
    const part = dataOf(turnId, 'message.part.updated').at(-1);
    assert.match(JSON.stringify(part), /"status":"completed".*said|said.*"status":"completed"/);
  });

  it('A38 ends a shell command on request, as aborted', async () => {
    const turnId = await begin([{ type: 'shell', command: 'echo begun; sleep 60' }]);
    await until('it runs', () => JSON.stringify(dataOf(turnId, 'message.part.updated')).includes('"running"'));
    const prompt = { promptId: 'p-shell', messageId: 'm-shell', parts: [{ type: 'text', text: '@@say no' }] };
    assert.deepEqual(codeOf(await post('/beeuni/runtime/steer', prompt)), [409, 'no_active_turn']);
    await post('/beeuni/abort', { turnId });
    assert.equal((await endOf(turnId))['outcome'], 'Aborted');
  });

  it('A24 tells of a message whether its turn runs and how it ended', async () => {
    const standing = async (query: string) =>
      (await daemon.call('GET', `/beeuni/health?${query}`)).body as HealthDocument;
    const turnId = await begin([{ type: 'shell', command: waitForLatch('standing') }]);
    const messageId = turnId.replace('t', 'm');
    await until('it runs', async () => (await standing(`turn=1&turn_message_id=${messageId}`)).turn_in_flight === true);
    openLatch(rig.folders.workspace, 'standing');
    await endOf(turnId);
    const ended = await until('its end is stored', async () => {
      const document = await standing(`turn=1&turn_message_id=${messageId}`);
      return document.turn_orphaned_prompt === null && document.turn_end !== null && document;
    });
    assert.deepEqual(ended.harness.turn, { in_flight: false, end: 'Succeeded', orphaned_prompt: null });
    assert.deepEqual((await standing('turn=1&turn_message_id=nobody')).turn_in_flight, null);
    assert.equal((await standing('')).harness.turn, null);
    const odd = await daemon.call('GET', `/beeuni/health?turn=yes&turn=no&turn_message_id=${'x'.repeat(2_000)}`);
    assert.equal(odd.status, 200, 'A19 health always answers');
  });

  it('A135 lists slash commands and runs one as a turn; an unknown one ends its turn with the reason', async () => {
    const listed = (await get('/beeuni/runtime/commands')).body as { commands: { name: string }[] };
    assert.ok(listed.commands.some((command) => command.name === 'init'));
    const turnId = await begin([{ type: 'command', name: 'review', arguments: '@@say reviewed' }]);
    assert.equal((await endOf(turnId))['outcome'], 'Succeeded');
    const message = dataOf(turnId, 'message.part.updated').map((data) => JSON.stringify(data));
    assert.ok(
      message.some((text) => text.includes('@@say reviewed')),
      'the user message is the expanded text',
    );
    const unknown = await endOf(await begin([{ type: 'command', name: 'nope', arguments: '' }]));
    assert.deepEqual([unknown['outcome'], unknown['message']], ['Failed', 'there is no command /nope']);
  });

  it('A137 compacts on demand, as a turn that tells it', async () => {
    const turnId = await begin([{ type: 'compact' }]);
    assert.equal((await endOf(turnId))['outcome'], 'Succeeded');
    assert.deepEqual(dataOf(turnId, 'session.compacted'), [{ auto: false }]);
    const parts = dataOf(turnId, 'message.part.updated').map((data) => data['part'] as { type: string });
    assert.ok(parts.some((part) => part.type === 'compaction'));
    assert.equal((await endOf(await say('@@say after')))['outcome'], 'Succeeded');
  });

  it('A62 goes back to before a message with its files, and forth again', async () => {
    const turnId = await say('@@tool write {"filePath":"rewind.txt","content":"buzz"}\n@@say written');
    await endOf(turnId);
    const asked = dataOf(turnId, 'message.updated').find(
      (data) => (data['message'] as { role: string }).role === 'user',
    );
    const messageId = (asked?.['message'] as { id: string } | undefined)?.id ?? '';
    assert.ok(inWorkspace('rewind.txt'));
    assert.deepEqual(await post('/beeuni/runtime/revert', { messageId }), { status: 200, body: {} });
    assert.ok(!inWorkspace('rewind.txt'));
    await rig.controlPlane.event('session.reverted');
    assert.equal((await post('/beeuni/runtime/unrevert')).status, 200);
    assert.ok(inWorkspace('rewind.txt'));
    await rig.controlPlane.event('session.unreverted');
    assert.deepEqual(codeOf(await post('/beeuni/runtime/unrevert')), [409, 'not_rewound']);
    const unknown = await post('/beeuni/runtime/revert', { messageId: 'msg_000000000000unknown' });
    assert.deepEqual(codeOf(unknown), [404, 'message_not_found']);
    assert.deepEqual(codeOf(await post('/beeuni/runtime/revert', { messageId: '../../x' })), [
      404,
      'message_not_found',
    ]);
  });

  it('A146 adds a prompt to the running turn, once', async () => {
    const turnId = await say(bash(`${waitForLatch('steered')}; echo slept`));
    await until('the tool runs', () => JSON.stringify(dataOf(turnId, 'message.part.updated')).includes('"running"'));
    const prompt = { promptId: 'p-steer', messageId: 'm-steer', parts: [{ type: 'text', text: '@@say steered' }] };
    const answers = await Promise.all([post('/beeuni/runtime/steer', prompt), post('/beeuni/runtime/steer', prompt)]);
    assert.deepEqual(
      answers.map((answer) => [answer.status, (answer.body as { turnId: string }).turnId]),
      [
        [200, turnId],
        [200, turnId],
      ],
    );
    assert.deepEqual(codeOf(await post('/beeuni/runtime/revert', { messageId: 'msg_x' })), [409, 'turn_running']);
    assert.deepEqual(codeOf(await post('/beeuni/runtime/fork')), [409, 'turn_running']);
    openLatch(rig.folders.workspace, 'steered');
    const end = await endOf(turnId);
    assert.deepEqual([end['outcome'], end['summary']], ['Succeeded', 'steered']);
    assert.deepEqual(dataOf(turnId, 'prompt.steered'), [{ promptId: 'p-steer', messageId: 'm-steer' }]);
    const idle = await post('/beeuni/runtime/steer', { ...prompt, promptId: 'p-idle' });
    assert.deepEqual(codeOf(idle), [409, 'no_active_turn']);
  });

  it('A62 shows the configuration without a secret, the MCP servers and the terminal client', async () => {
    const config = await get('/beeuni/runtime/config');
    const text = JSON.stringify(config.body);
    assert.ok(config.status === 200 && text.includes('beeuni/scripted/large'));
    for (const canary of Object.values(CANARY)) assert.ok(!text.includes(canary));
    assert.match(text, /"apiKey":"\[redacted\]"/);
    assert.deepEqual((await get('/beeuni/runtime/mcp')).body, { servers: [] });
    const attach = (await get('/beeuni/runtime/attach')).body as { command: string[] };
    assert.match(attach.command.join(' '), /opencode attach http:\/\/127\.0\.0\.1:\d+ --session ses_/);
    assert.ok(!/password/i.test(JSON.stringify(attach)));
  });

  it('A62 goes on from before a message as another conversation; the one before stays readable', async () => {
    const before_ = (await daemon.health()).harness.session.id;
    await endOf(await say('@@say to be left out'));
    const users = rig.controlPlane.events.filter(
      (event) => event.type === 'message.updated' && (event.data['message'] as { role: string }).role === 'user',
    );
    const messageId = (users.at(-1)?.data['message'] as { id: string } | undefined)?.id ?? '';
    const fork = await post('/beeuni/runtime/fork', { messageId });
    assert.deepEqual(fork, { status: 200, body: { threadId: before_ } });
    const after_ = await rig.controlPlane.healthy('another one', (health) => health.harness.session.id !== before_);
    assert.match(String(after_.harness.session.id), /^ses_/);
    assert.equal((await endOf(await say('@@say in the fork')))['outcome'], 'Succeeded');
    const request = JSON.stringify(rig.provider.requests.at(-1));
    assert.ok(!request.includes('to be left out') && request.includes('in the fork'));
  });

  it('A125 keeps the conversation of a fork, and what was allowed, over a restart', async () => {
    const { id } = (await daemon.health()).harness.session;
    daemon.signal('SIGTERM');
    await daemon.exited;
    daemon = rig.start();
    await rig.controlPlane.healthy('ready again', (health) => health.runtimeReady && health.harness.session.id === id);
    const turnId = await say(bash('touch fifth'));
    assert.equal((await endOf(turnId))['outcome'], 'Succeeded');
    assert.deepEqual(dataOf(turnId, 'permission.asked'), []);
    assert.ok(inWorkspace('fifth'));
  });
});
