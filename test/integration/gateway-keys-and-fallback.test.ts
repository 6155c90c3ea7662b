// Which key and which provider answers: pools that rotate, one fallback before the first byte, roles as names, a limit of
// calls for each session. Source: 20-control-plane §5, A217, A218.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { systemClock } from '#base/clock.ts';
import { makeRateLimit } from '#controlplane/app/rate-limit.ts';
import { MAX_COOL_DOWN_MS, makeKeyPools } from '#controlplane/gateway/key-pool.ts';
import {
  type GatewayRig,
  RIG_TIMEOUTS,
  type RigProvider,
  rigModel,
  rigProvider,
  startGatewayRig,
} from '#test/support/gateway-rig.ts';
import { manualClock } from '#test/support/manual-clock.ts';
import { type ScriptedProvider, startScriptedProvider } from '#test/support/scripted-provider.ts';
import { until } from '#test/support/until.ts';

const KEYS = ['sk-one', 'sk-two', 'sk-three'];
const POOL = KEYS.map((secret, at) => ({ id: `k${at}`, secret }));

let first: ScriptedProvider;
let second: ScriptedProvider;
let rig: GatewayRig;

before(async () => {
  first = await startScriptedProvider({ keys: KEYS });
  second = await startScriptedProvider({ key: 'sk-other' });
  rig = await startGatewayRig({
    ports: { takeCall: makeRateLimit({ clock: systemClock, perSecond: 0.5, burst: 50 }) },
  });
});
after(async () => {
  await rig.close();
  await first.close();
  await second.close();
});

const other = (more: Partial<RigProvider> = {}): RigProvider =>
  rigProvider('other', second.url, { secrets: [{ id: 'only', secret: 'sk-other' }], ...more });

let round = 0;
/** A provider of a new name for each test, so that no key rests from the one before. */
const register = (more: Partial<RigProvider>, ...rest: readonly RigProvider[]): string => {
  round += 1;
  const id = `p${round}`;
  rig.state.providers = [rigProvider(id, first.url, { secrets: POOL, ...more }), ...rest];
  rig.state.generation += 1;
  return id;
};
beforeEach(() => {
  rig.usage.length = 0;
  rig.fellBack.length = 0;
  rig.state.allowed = null;
  rig.state.roles = {};
});

const ask = (model: string, content: string, stream = false, session = 's') =>
  rig.post('/chat/completions', JSON.stringify({ model, stream, messages: [{ role: 'user', content }] }), {
    authorization: `Bearer bs_${session}`,
  });
const codeOf = (text: string): string => (JSON.parse(text) as { error: { code: string } }).error.code;
const keysSince = (mark: number): string[] =>
  first.requests.slice(mark).map(({ headers }) => String(headers['authorization']).replace('Bearer ', ''));

test('A217 a 429 before any output is tried again with each other key of the pool, once', async () => {
  const id = register({});
  const mark = first.requests.length;
  const answer = await ask(`${id}/scripted-large`, `@@error 2 429 slow ${id}`);
  assert.equal(answer.status, 200);
  assert.match(answer.text, /recovered/);
  assert.equal(new Set(keysSince(mark)).size, 3);
  const tired = register({});
  const second_ = first.requests.length;
  const refused = await ask(`${tired}/scripted-large`, `@@error 9 429 slow ${tired}`);
  assert.equal(refused.status, 429);
  assert.deepEqual([...keysSince(second_)].sort(), [...KEYS].sort());
});

test('A217 a key that was asked to slow down rests, and a pool whose keys all rest is refused without a call', async () => {
  const id = register({});
  await ask(`${id}/scripted-large`, `@@retry-after 20\n@@error 9 429 slow ${id}`);
  const mark = first.requests.length;
  const refused = await ask(`${id}/scripted-large`, '@@say x');
  assert.deepEqual([refused.status, codeOf(refused.text)], [429, 'rate_limited']);
  assert.ok(Number(refused.headers['retry-after']) >= 15);
  assert.equal(first.requests.length, mark);
});

test('A217 a key rests 60 s at most, and a session keeps its key while that one serves', async () => {
  const clock = manualClock();
  const pools = makeKeyPools(clock);
  const [chosen] = pools.usable('p', POOL, 'session-a');
  assert.equal(pools.usable('p', POOL, 'session-a')[0], chosen);
  pools.rest('p', chosen?.id ?? '', 86_400_000);
  assert.equal(pools.usable('p', POOL, 'session-a').length, 2);
  await clock.advance(MAX_COOL_DOWN_MS + 1);
  assert.equal(pools.usable('p', POOL, 'session-a')[0], chosen);
  assert.equal(pools.waitMs('p', POOL), 0);
});

test('A217 a pool borrows no key of another provider, and a partial answer is never replayed', async () => {
  const id = register({}, other());
  const mark = second.requests.length;
  await ask(`${id}/scripted-large`, `@@error 9 429 slow ${id}`);
  assert.equal(second.requests.length, mark);
  const before_ = first.requests.length;
  const fresh = register({ fallback: ['other/scripted-large'] }, other());
  const cut = await ask(`${fresh}/scripted-large`, '@@drop 9', true);
  assert.match(cut.text, /provider_failed/);
  assert.equal(first.requests.length, before_ + 1);
  assert.equal(second.requests.length, mark);
});

test('FC3 A218 a provider that fails before the first byte is answered for once by its fallback, and the row says so', async () => {
  const id = register({ fallback: ['gone/x', 'other/scripted-large'] }, other());
  const calls = second.requests.length;
  for (const script of ['@@error 9 500 broken', '@@retry-after 86400\n@@error 9 429 later', '@@error 9 401 key']) {
    rig.usage.length = 0;
    const name = register({ fallback: ['gone/x', 'other/scripted-large'] }, other());
    const answer = await ask(`${name}/scripted-large`, `${script} ${name}\n@@say x`);
    // Both play one script: that the second provider was asked is what counts.
    await until('a usage row', () => rig.usage.length === 1);
    assert.equal(rig.usage[0]?.fallbackFrom, `${name}/scripted-large`, script);
    assert.ok(answer.status >= 400);
  }
  assert.equal(second.requests.length, calls + 3);
  assert.deepEqual(rig.fellBack, ['provider_failed', 'provider_failed', 'provider_auth_failed']);
  rig.usage.length = 0;
  const down = register({ base_url: 'http://127.0.0.1:1/v1', fallback: ['other/scripted-large'] }, other());
  const served = await ask(`${down}/scripted-large`, '@@say from the other', true);
  assert.equal(served.status, 200);
  assert.equal(served.headers['x-beeuni-served-model'], 'other/scripted-large');
  assert.match(served.text, /other/);
  await until('a usage row', () => rig.usage.length === 1);
  const [row] = rig.usage;
  assert.deepEqual(
    [row?.model, row?.fallbackFrom, row?.servedModel, row?.status],
    [`${down}/scripted-large`, `${down}/scripted-large`, 'scripted-large', 200],
  );
  assert.ok(id !== down);
});

test('FC2 FC3 silence until the first-byte limit goes to the fallback; what the caller did wrong does not', async () => {
  const slow = register(
    { fallback: ['other/scripted-large'], timeouts: { ...RIG_TIMEOUTS, first_byte_ms: 1_000 } },
    other({ timeouts: { ...RIG_TIMEOUTS, first_byte_ms: 1_000 } }),
  );
  first.queue({ mischief: { kind: 'silent' } });
  const answer = await ask(`${slow}/scripted-large`, '@@say in time');
  assert.match(answer.text, /in time/);
  const mark = second.requests.length;
  const wrong = register({ fallback: ['other/scripted-large'] }, other());
  assert.equal((await ask(`${wrong}/scripted-large`, `@@error 9 400 bad ${wrong}`)).status, 400);
  assert.equal((await ask(`${wrong}/scripted-large`, `@@overflow 9 ${wrong}`)).status, 400);
  assert.equal(second.requests.length, mark);
});

test('a fallback obeys the list of the project, and speaks the API of the call', async () => {
  const mark = second.requests.length;
  const id = register({ base_url: 'http://127.0.0.1:1/v1', fallback: ['other/scripted-large'] }, other());
  rig.state.allowed = [`${id}/*`];
  assert.equal((await ask(`${id}/scripted-large`, '@@say x')).status, 502);
  rig.state.allowed = null;
  const odd = register(
    { base_url: 'http://127.0.0.1:1/v1', fallback: ['other/scripted-large'] },
    other({ kind: 'anthropic' }),
  );
  assert.equal((await ask(`${odd}/scripted-large`, '@@say x')).status, 502);
  assert.equal(second.requests.length, mark);
});

test('B2 a role stands for the model that the settings give it; FC8 an unknown one and a circle are refused', async () => {
  const id = register({});
  rig.state.roles = { title: `${id}/scripted-large`, judge: 'role/judge', vision: 'title' };
  for (const name of ['role/title', 'title']) {
    const answer = await ask(name, '@@say named');
    assert.match(answer.text, /named/, name);
  }
  await until('two rows', () => rig.usage.length === 2);
  assert.deepEqual(new Set(rig.usage.map(({ model }) => model)), new Set([`${id}/scripted-large`]));
  for (const name of ['role/compaction', 'role/judge', 'vision', 'role/']) {
    assert.deepEqual([codeOf((await ask(name, 'x')).text)], ['unknown_model'], name);
  }
});

test('B26 the calls of a session reach the provider with one key and an unchanged beginning, so that its cache is of use', async () => {
  const id = register({});
  const sessions = ['cache-a', 'cache-b', 'cache-c', 'cache-d', 'cache-e'];
  const history = Array.from({ length: 4 }, (_, turn) => ({ role: 'user', content: `turn ${turn}\n@@say x` }));
  for (const session of sessions) {
    const mark = first.requests.length;
    for (let turns = 1; turns <= history.length; turns += 1) {
      const body = { model: `${id}/scripted-large`, tools: [], messages: history.slice(0, turns) };
      await rig.post('/chat/completions', JSON.stringify(body), { authorization: `Bearer bs_${session}` });
    }
    assert.equal(new Set(keysSince(mark)).size, 1, session);
    const sent = first.requests.slice(mark).map(({ body }) => JSON.stringify(body).slice(0, -']}'.length));
    for (const [at, text] of sent.entries()) assert.ok(sent[at + 1]?.startsWith(text) ?? true, text);
  }
  assert.ok(new Set(keysSince(0)).size > 1, 'other sessions have other keys');
});

test('A216 a tier that a model does not have is dropped, by the tiers of the model that is called, and nothing else is', async () => {
  const reasons = { models: [rigModel('scripted-large', { reasoning: true })] };
  const tiers = (...variants: string[]) => ({ models: [rigModel('scripted-large', { reasoning: true, variants })] });
  const down = { base_url: 'http://127.0.0.1:1/v1', fallback: ['other/scripted-large'] };
  const cases: readonly (readonly [string, Partial<RigProvider>, string, string | undefined])[] = [
    ['its own tier', tiers('low', 'high'), 'high', 'high'],
    ['a tier of another model', tiers('low', 'high'), 'xhigh', undefined],
    ['auto', reasons, 'auto', undefined],
    ['a model without a list', reasons, 'any', 'any'],
    ['a model that does not reason', {}, 'low', undefined],
    ['the fallback has it', { ...tiers('low'), ...down }, 'high', 'high'],
    ['the fallback has it not', { ...tiers('high', 'low'), ...down }, 'low', undefined],
  ];
  for (const [what, more, effort, sent] of cases) {
    const id = register(more, other(tiers('high')));
    const rest = { top_p: 0.5, messages: [{ role: 'user', content: '@@say x' }], tools: [] };
    const body = { reasoning_effort: effort, model: `${id}/scripted-large`, ...rest };
    assert.equal((await rig.post('/chat/completions', JSON.stringify(body))).status, 200, what);
    const asked = ('base_url' in more ? second : first).requests.at(-1)?.body;
    const effortSent = sent === undefined ? {} : { reasoning_effort: sent };
    assert.deepEqual(asked, { ...effortSent, model: 'scripted-large', ...rest }, what);
  }
});

test('a session that calls too often is told to wait, and others are not', async () => {
  const id = register({});
  const answers = await Promise.all(
    Array.from({ length: 60 }, () => ask(`${id}/scripted-large`, '@@say x', false, 'busy')),
  );
  const refused = answers.filter(({ status }) => status === 429);
  assert.ok(refused.length >= 1 && refused.length <= 30, String(refused.length));
  assert.ok(
    refused.some(({ headers, text }) => headers['retry-after'] !== undefined && codeOf(text) === 'rate_limited'),
  );
  assert.equal((await ask(`${id}/scripted-large`, '@@say x', false, 'calm')).status, 200);
});
