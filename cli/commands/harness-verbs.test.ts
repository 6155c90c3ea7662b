// Commands that ask a session's harness, and those that change a session's state, over a server that is played.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { type CallPlace, runCommand } from '#test/support/command-line.ts';
import { aPromptView, aSessionView } from '#test/support/rest-views.ts';

const SESSION = '/v1/namespaces/team/sessions/fix';

describe('commands over a played server', () => {
  const calls: string[] = [];
  /** Answers by method and path; what changes a state is taken with 202. */
  const answers = new Map<string, unknown>();
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (text) => {
      body += text;
    });
    request.on('end', () => {
      const [path = ''] = (request.url ?? '').split('?');
      calls.push(`${request.method} ${(request.url ?? '').replace(SESSION, '')} ${body}`.trim());
      const answer = answers.get(`${request.method} ${path.replace(SESSION, '')}`);
      const isState = /\/(start|stop|restart)$/.test(path);
      response.writeHead(answer === undefined ? 404 : isState ? 202 : 200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(answer ?? { error: { code: 'not_found', message: 'unknown' } }));
    });
  });
  let place: CallPlace;

  before(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    place = { env: { BEEUNI_SERVER: url, BEEUNI_TOKEN: 'x', BEEUNI_NAMESPACE: 'team' } };
  });
  after(() => server.close());

  const run = (...words: string[]) => {
    calls.length = 0;
    return runCommand(['sessions', ...words], place);
  };

  test('A62 fork goes on from before a message, or from here, and says where the conversation so far is', async () => {
    answers.set('POST /fork', { threadId: 'ses_old' });
    const forked = await run('fork', 'fix', 'msg_1');
    assert.deepEqual([forked.code, calls], [0, ['POST /fork {"messageId":"msg_1"}']], forked.err);
    assert.match(forked.err, /from before msg_1; .*beeuni sessions children fix ses_old/);
    const all = await run('fork', 'fix', '--json');
    assert.deepEqual([JSON.parse(all.out), calls], [{ threadId: 'ses_old' }, ['POST /fork {}']]);
  });

  test('A62 mcp lists the servers of the harness, those that fail with the reason', async () => {
    const items = [
      { name: 'docs', status: 'connected', error: null },
      { name: 'down', status: 'failed', error: 'no\u001b[2J answer' },
    ];
    answers.set('GET /mcp', { items });
    const list = await run('mcp', 'fix');
    assert.match(list.out, /^docs +connected +-\ndown +failed +no␛\[2J answer$/m, list.err);
    answers.set('GET /mcp', { items: [] });
    assert.match((await run('mcp', 'fix')).err, /no MCP servers/);
  });

  test('A125 children lists the conversations below a session, and prints one with its pages in order', async () => {
    answers.set('GET /children', { items: [{ threadId: 'ses_1', title: 'look for it' }] });
    assert.match((await run('children', 'fix')).out, /^ses_1 +look for it$/m);
    const said = (id: string, role: string, text: string) => ({
      message: { id, role },
      threadId: 'ses_1',
      turnId: null,
      reverted: false,
      parts: [{ id: `p-${id}`, messageId: id, type: 'text', text }],
    });
    answers.set('GET /messages', {
      items: [said('m1', 'user', 'look'), said('m2', 'assistant', 'found')],
      cursor: null,
      seq: 9,
    });
    const one = await run('children', 'fix', 'ses_1');
    assert.deepEqual([one.code, one.out], [0, '\n>> look\nfound\n'], one.err);
    assert.match(calls[0] ?? '', /thread=ses_1/);
  });

  test('A239 start, stop and restart say what becomes of the session, in the words of its state', async () => {
    answers.set('GET ', aSessionView);
    for (const [verb, said] of [
      ['start', 'is being started'],
      ['stop', 'is suspended already; from now on only a start wakes it'],
      ['restart', 'is being restarted'],
    ] as const) {
      answers.set(`POST /${verb}`, aSessionView);
      const done = await run(verb, 'fix');
      assert.deepEqual([done.code, done.err], [0, `session fix ${said}\n`]);
      const json = await run(verb, 'fix', '--json');
      assert.equal((JSON.parse(json.out) as { phase: string }).phase, 'Suspended');
    }
    answers.set('GET ', aSessionView);
    assert.match((await run('info', 'fix')).out, /^state: +Suspended \(Idle\)$/m);
  });

  test('A239 start and stop say that nothing changes where it is so already', async () => {
    const running = { ...aSessionView, phase: 'Ready', ready: 'True', readyReason: 'Ready', status: {} };
    const onRequest = { ...aSessionView, spec: { operatingMode: 'Suspended' } };
    for (const [verb, before, said] of [
      ['start', running, 'runs already; nothing changes'],
      ['start', { ...running, spec: onRequest.spec }, 'is being started'],
      ['start', { ...running, phase: 'Starting', ready: 'False' }, 'is being started already; nothing changes'],
      ['stop', running, 'is being suspended; its files are kept'],
      ['stop', onRequest, 'is suspended already; nothing changes'],
      ['stop', { ...running, spec: onRequest.spec }, 'is being suspended already; nothing changes'],
    ] as const) {
      answers.set('GET ', before);
      answers.set(`POST /${verb}`, aSessionView);
      const done = await run(verb, 'fix');
      assert.deepEqual([done.code, done.err], [0, `session fix ${said}\n`]);
    }
  });

  test('K3 a name above the limit is refused with the limit, wherever one is given', async () => {
    const long = 'a'.repeat(70);
    for (const words of [
      ['info', long],
      ['new', long, '-p', 'shop'],
      ['new', '-p', long],
      ['ls', '-p', long],
    ]) {
      const refused = await run(...words);
      assert.deepEqual([refused.code, calls.length], [2, 0], words.join(' '));
      assert.match(refused.err, /a name has at most 46 characters\n .* has 70$/m);
    }
    assert.match((await run('info', `${long}/fix`)).err, /a namespace has at most 63 characters/);
    assert.match((await run('info', 'a/b/c')).err, /a\/b\/c is no name/);
  });

  test('A239 chat -d says which prompt was sent and how to follow it, and prints JSON when it is asked', async () => {
    const sent = { ...aPromptView, id: 'p1', note: 'session fix is suspended on request' };
    answers.set('POST /prompts', sent);
    const said = await run('chat', 'fix', 'go', '-d');
    assert.deepEqual([said.code, said.out], [0, ''], said.err);
    assert.match(said.err, /^prompt p1 was sent; follow it: beeuni sessions log team\/fix --follow\nsession fix is/);
    assert.equal((JSON.parse((await run('chat', 'fix', 'go', '-d', '--json')).out) as { id: string }).id, 'p1');
    assert.equal((await run('chat', 'fix', 'go', '--json')).code, 2);
    assert.equal((await run('chat', 'fix', 'go', '-d', '--timeout', '1')).code, 2);
    assert.equal((await run('chat', 'fix', 'go', '--timeout', 'soon')).code, 2);
  });

  test('§4 start and restart say why nothing runs all the same, unless they end just that', async () => {
    const status = (reason: string) => ({
      conditions: [{ type: 'Ready', status: 'False', reason, message: 'the daily budget of 1.00 USD is used up' }],
    });
    const spec = { projectRef: { name: 'shop' } };
    answers.set('POST /start', { ...aSessionView, spec, status: status('BudgetReached') });
    const held = await run('start', 'fix');
    assert.match(
      held.err,
      /^session fix waits: the daily budget of 1\.00 USD is used up\n {2}raise the limits: kubectl /,
    );
    assert.doesNotMatch(held.err, /is being started/);
    answers.set('POST /restart', { ...aSessionView, spec, status: status('CoolingDown') });
    assert.equal((await run('restart', 'fix')).err, 'session fix is being restarted\n');
    answers.set('GET ', { ...aSessionView, spec, status: status('BudgetReached') });
    assert.match((await run('info', 'fix')).out, /^to do: +raise the limits: /m);
  });

  test('A192 model shows the model of a session, changes it for its next turn, and takes the change back', async () => {
    answers.set('GET ', { ...aSessionView, model: 'acme/large', spec: { model: 'acme/large' } });
    assert.equal((await run('model', 'fix')).out, 'acme/large\n');
    answers.set('PATCH ', aSessionView);
    const set = await run('model', 'fix', 'acme/small');
    assert.deepEqual([set.code, calls], [0, ['PATCH  {"spec":{"model":"acme/small"}}']], set.err);
    assert.match(set.err, /uses acme\/small from its next turn on/);
    await run('model', 'fix', '--unset');
    assert.deepEqual(calls, ['PATCH  {"spec":{"model":null}}']);
    assert.equal((await run('model', 'fix', 'acme/small', '--unset')).code, 2);
  });

  test('A196 scope shows and replaces the secrets that a session may see: some, none, or all that are granted', async () => {
    answers.set('GET ', aSessionView);
    assert.equal((await run('scope', 'fix')).out, 'secrets: all that its agent is granted\n');
    for (const [words, sent, said] of [
      [['NPM', 'SHOP_KEY'], ['NPM', 'SHOP_KEY'], 'NPM, SHOP_KEY'],
      [['--none'], [], 'none'],
      [['--all'], null, 'all that its agent is granted'],
    ] as const) {
      answers.set('PATCH ', { ...aSessionView, spec: sent === null ? {} : { scope: { secrets: sent } } });
      const set = await run('scope', 'fix', ...words);
      assert.deepEqual(calls, [`PATCH  ${JSON.stringify({ spec: { scope: { secrets: sent } } })}`]);
      assert.deepEqual([set.code, set.err], [0, `session fix: secrets: ${said}\n`]);
    }
    assert.equal((await run('scope', 'fix', 'NPM', '--none')).code, 2);
  });
});
