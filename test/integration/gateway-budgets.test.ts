// Money over a real Postgres: reservations of two replicas, settlement, what is reached and what is raised, and the time
// when the database is away. Source: 20-control-plane §5, §10, K6, FC11.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { systemClock } from '#base/clock.ts';
import { UnavailableError } from '#base/errors.ts';
import { createLogger } from '#base/log.ts';
import { makeBudgetWatch } from '#controlplane/app/budget-watch.ts';
import { callLimits } from '#controlplane/app/call-limits.ts';
import type { Limits } from '#controlplane/gateway/budgets.ts';
import type { UsageRow } from '#controlplane/gateway/ports.ts';
import { makeBudgetMarks } from '#controlplane/store/budget-marks.ts';
import { makeLeaseBudget } from '#controlplane/store/budgets.ts';
import { makeProjectStore } from '#controlplane/store/projects.ts';
import type { Database, Query } from '#controlplane/store/statement.ts';
import { forgetUsage, insertUsage } from '#controlplane/store/usage.ts';
import { type Metering, wireMetering } from '#controlplane/wiring/gateway.ts';
import type { ProjectFact } from '#schema/wire/sync.ts';
import { type GatewayRig, rigProvider, startGatewayRig } from '#test/support/gateway-rig.ts';
import { freshDatabase, type TestDatabase } from '#test/support/postgres.ts';
import { type ScriptedProvider, startScriptedProvider } from '#test/support/scripted-provider.ts';
import { aProject, aSession } from '#test/support/session-fixtures.ts';
import { aPrompt, aSessionKey, storedSessions } from '#test/support/stored-sessions.ts';
import { until } from '#test/support/until.ts';

/** A call that says `@@usage 100 100` costs so much. */
const COST = 300;
const HARNESS_RETRIES =
  /429|500|502|503|504|524|rate.?limit|too many requests|server.?error|overloaded|try again later|unavailable|timeout/i;

let database: TestDatabase;
let folder: string;
let provider: ScriptedProvider;
let replicas: readonly Readonly<{ rig: GatewayRig; metering: Metering }>[];
let isAway = false;
const limits = new Map<string, Limits>();
const refused: { sessionUid: string; scope: string }[] = [];

before(async () => {
  database = await freshDatabase();
  folder = await mkdtemp(join(tmpdir(), 'beeuni-budgets-'));
  provider = await startScriptedProvider();
  const query: Query = (statement) => {
    if (isAway) throw new UnavailableError('database_unavailable', 'the database does not answer');
    return database.pool.query(statement);
  };
  const reachable: Database = {
    query: async (statement) => query(statement),
    withTransaction: async (run) => {
      if (isAway) throw new UnavailableError('database_unavailable', 'the database does not answer');
      return database.pool.withTransaction(run);
    },
  };
  replicas = await Promise.all(
    ['a', 'b'].map(async (name) => {
      const log = createLogger({ level: 'error', write: () => undefined });
      const metering = wireMetering({
        clock: systemClock,
        log,
        database: reachable as Parameters<typeof wireMetering>[0]['database'],
        usageFile: join(folder, name),
      });
      const rig = await startGatewayRig({
        maxConnections: 64,
        ports: {
          budgets: metering.budgets,
          usage: metering.usage,
          findLimits: ({ sessionUid }) => limits.get(sessionUid) ?? { budgets: [], runs: undefined },
          onBudgetReached: ({ identity, refusal }) =>
            refused.push({ sessionUid: identity.sessionUid, scope: refusal.scope }),
        },
      });
      rig.state.providers = [rigProvider('demo', provider.url)];
      rig.state.generation += 1;
      await metering.background.start();
      return { rig, metering };
    }),
  );
});
after(async () => {
  for (const { rig, metering } of replicas) {
    await metering.background.stop();
    await rig.close();
  }
  await provider.close();
  await database.close();
  await rm(folder, { recursive: true, force: true });
});
beforeEach(() => {
  isAway = false;
  refused.length = 0;
});

const ask = (session: string, replica = 0, script = '@@usage 100 100\n@@say x', more: object = {}) => {
  const body = { model: 'demo/scripted-large', messages: [{ role: 'user', content: script }], ...more };
  const rig = replicas[replica]?.rig;
  if (rig === undefined) throw new Error('there are two replicas');
  return rig.post('/chat/completions', JSON.stringify(body), { authorization: `Bearer bs_${session}` });
};
const codeOf = (text: string): string => (JSON.parse(text) as { error: { code: string } }).error.code;
const sessionBudget = (uid: string, limitMicroUsd: number): void => {
  limits.set(uid, { budgets: [{ scope: 'session', uid, period: '', limitMicroUsd }], runs: undefined });
};
const spentOf = async (scope: string, uid: string): Promise<number> => {
  const rows = await database.pool.query<{ spent: number }>({
    text: 'select coalesce(sum(spent_micro_usd), 0)::bigint as spent from budget_spend where scope = $1 and uid = $2',
    values: [scope, uid],
  });
  return rows[0]?.spent ?? 0;
};
/** Asks until the budget is used up for good; what is only set aside is waited for. */
const untilReached = (session: string, replica = 0) =>
  until(
    'the budget is reached',
    async () => {
      const answer = await ask(session, replica);
      return answer.status === 402 && answer;
    },
    { deadlineMs: 20_000 },
  );

test('a session budget ends calls with a final error that no harness calls again for, and raising it lets them go on', async () => {
  sessionBudget('one', 1_000);
  const first = await ask('one');
  assert.equal(first.status, 200);
  const answer = await untilReached('one');
  assert.equal(codeOf(answer.text), 'budget_reached');
  assert.equal(HARNESS_RETRIES.test(answer.text), false);
  assert.equal(/\d/.test(answer.text), false);
  assert.equal(answer.headers['retry-after'], undefined);
  assert.ok(refused.some(({ scope }) => scope === 'session'));
  const spent = await spentOf('session', 'one');
  assert.ok(spent >= 1_000 && spent < 1_000 + COST, String(spent));
  sessionBudget('one', 100_000);
  assert.equal((await ask('one')).status, 200);
});

test('K6 a budget of 0 allows nothing, and an absent one everything', async () => {
  sessionBudget('zero', 0);
  const mark = provider.requests.length;
  assert.equal((await ask('zero')).status, 402);
  assert.equal(provider.requests.length, mark);
  assert.equal(replicas[0]?.metering.budgets.lowestRests().all, 0);
  assert.equal((await ask('free')).status, 200);
});

test('two replicas that call at once do not spend more than the budget and the last call of each', async () => {
  const limit = 6_000;
  sessionBudget('both', limit);
  for (;;) {
    // Each costs no more than what is set aside for it, so that only the last ones go beyond the budget.
    const script = '@@usage 10 100\n@@say x';
    const answers = await Promise.all(Array.from({ length: 16 }, (_, at) => ask('both', at % 2, script)));
    if (answers.some(({ status }) => status === 402)) break;
  }
  for (const { metering } of replicas) await metering.background.stop();
  const spent = await spentOf('session', 'both');
  assert.ok(spent >= limit && spent <= limit + 2 * COST, String(spent));
});

test('a replica keeps what its calls use, although the lease of another one counts twice until it is asked for again', async () => {
  const limit = { scope: 'session', uid: 'kept', period: '', limitMicroUsd: 1_000 } as const;
  const [one, other] = [makeLeaseBudget(database.pool, 'one'), makeLeaseBudget(database.pool, 'other')];
  assert.equal((await one(limit, 500, 0)).heldMicroUsd, 500);
  assert.equal((await other(limit, 500, 0)).heldMicroUsd, 500);
  await database.pool.query({
    text: `update budget_spend set spent_micro_usd = 400 where scope = 'session' and uid = 'kept'`,
    values: [],
  });
  assert.equal((await one(limit, 600, 450)).heldMicroUsd, 450);
  assert.equal((await other(limit, 900, 0)).heldMicroUsd, 150);
});

test('what is set aside for calls under way is not given away, and the one who waits is told to come back', async () => {
  sessionBudget('held', 200);
  const arrived = provider.nextRequest();
  const slow = ask('held', 0, '@@delay 400\n@@usage 100 100\n@@say x');
  await arrived;
  const waiting = await ask('held', 1);
  assert.deepEqual([waiting.status, codeOf(waiting.text), waiting.headers['retry-after']], [429, 'budget_held', '1']);
  assert.equal((await slow).status, 200);
});

/** A call that cost 42 micro-USD. */
const aUsageRow = (changes: Partial<UsageRow>): UsageRow => ({
  id: randomUUID(),
  at: '2026-11-30T23:59:59.999Z',
  namespace: 'n',
  projectUid: changes.sessionUid ?? 'p',
  sessionUid: 's',
  generation: 1,
  turnId: null,
  agent: null,
  model: 'demo/m',
  servedModel: null,
  fallbackFrom: null,
  status: 200,
  code: null,
  promptTokens: 1,
  cachedTokens: 0,
  completionTokens: 1,
  estimated: false,
  costMicroUsd: 42,
  firstByteMs: 1,
  durationMs: 1,
  requestBytes: 1,
  responseBytes: 1,
  ...changes,
});

test('a row that is stored again costs nothing again', async () => {
  const row = aUsageRow({ sessionUid: 'again' });
  const others = Array.from({ length: 3 }, () => ({ ...row, id: randomUUID() }));
  for (const rows of [[row], [row, ...others], [row, ...others]]) await database.pool.query(insertUsage(rows));
  assert.equal(await spentOf('session', 'again'), 4 * 42);
  const [day] = await database.pool.query<{ period: string }>({
    text: `select period from budget_spend where scope = 'project_day' and uid = 'again'`,
    values: [],
  });
  assert.equal(day?.period, '2026-11-30');
});

test('calls that no answer reaches any more are removed, a part at a time, and what they cost stays spent', async () => {
  const days = (count: number) => new Date(Date.now() - count * 86_400_000).toISOString();
  const old = Array.from({ length: 3 }, () => aUsageRow({ sessionUid: 'ancient', at: days(403) }));
  const kept = aUsageRow({ sessionUid: 'ancient', at: days(401) });
  await database.pool.query(insertUsage([...old, kept]));
  const removed = [];
  for (let round = 0; round < 3; round += 1) removed.push((await database.pool.query(forgetUsage(402, 2))).length);
  assert.deepEqual(removed, [2, 1, 0]);
  const left = await database.pool.query<{ id: string }>({
    text: `select id from usage where session_uid = 'ancient'`,
    values: [],
  });
  assert.deepEqual(left, [{ id: kept.id }]);
  assert.equal(await spentOf('session', 'ancient'), 4 * 42);
});

test('days and months of a project are budgets of their own, in UTC', () => {
  const at = Date.UTC(2026, 11, 31, 23, 59, 59, 999);
  const project = aProject({ limits: { dailyBudgetMicroUSD: 5, monthlyBudgetMicroUSD: 50, dailyRuns: 7 } });
  const { budgets, runs } = callLimits(aSession({ limits: { budgetMicroUSD: 1 } }), project, at);
  assert.deepEqual(
    budgets.map(({ scope, period, limitMicroUsd }) => [scope, period, limitMicroUsd]),
    [
      ['session', '', 1],
      ['project_day', '2026-12-31', 5],
      ['project_month', '2026-12', 50],
    ],
  );
  assert.deepEqual([runs?.day, runs?.limit], ['2026-12-31', 7]);
  assert.equal(callLimits(aSession(), project, at + 1).budgets[0]?.period, '2027-01-01');
  assert.deepEqual(callLimits(undefined, undefined, at), { budgets: [], runs: undefined });
});

test('a project whose day is used up is refused for every session, and the turns of a day are counted', async () => {
  const at = new Date().toISOString();
  const day = { scope: 'project_day', uid: 'day-project', period: at.slice(0, 10), limitMicroUsd: 100 } as const;
  await database.pool.query({
    text: 'insert into budget_spend (scope, uid, period, spent_micro_usd) values ($1, $2, $3, 100)',
    values: [day.scope, day.uid, day.period],
  });
  for (const session of ['d1', 'd2']) {
    limits.set(session, { budgets: [day], runs: undefined });
    assert.equal((await ask(session)).status, 402);
  }
  const stored = storedSessions(database.pool);
  const turns: string[] = [];
  for (const uid of ['r1', 'r2']) {
    const claim = await stored.claim(uid);
    await stored.inbox.admit(aSessionKey(uid), aPrompt(uid, 'm1'));
    turns.push(await stored.take(claim));
  }
  const runs = { projectUid: 'project-1', day: at.slice(0, 10), limit: 1 };
  limits.set('runner', { budgets: [], runs });
  const of = (turn: string | undefined) =>
    replicas[0]?.rig.post(
      '/chat/completions',
      JSON.stringify({ model: 'demo/scripted-large', messages: [{ role: 'user', content: '@@say x' }] }),
      { authorization: 'Bearer bs_runner', 'x-beeuni-turn-id': String(turn) },
    );
  assert.equal((await of(turns[0]))?.status, 200);
  const second = await of(turns[1]);
  assert.deepEqual([second?.status, codeOf(second?.text ?? '')], [402, 'budget_reached']);
  assert.ok(refused.some(({ scope }) => scope === 'project_runs'));
});

test('FC11 while the database is away what was leased goes on, then calls are 503 and never 401; no row is lost or doubled', async () => {
  sessionBudget('away', 100_000);
  assert.equal((await ask('away')).status, 200);
  isAway = true;
  assert.equal((await ask('away')).status, 200);
  sessionBudget('late', 100_000);
  const refusedCall = await ask('late');
  assert.deepEqual([refusedCall.status, codeOf(refusedCall.text)], [503, 'database_unavailable']);
  isAway = false;
  assert.equal((await ask('late')).status, 200);
  await until('both rows are stored', async () => (await spentOf('session', 'away')) === 2 * COST, {
    deadlineMs: 20_000,
  });
});

test('a reached session budget is told once for each limit: event, mark and fact; raised, it goes away and wakes', async () => {
  const stored = storedSessions(database.pool);
  await stored.claim('marked');
  const session = { current: aSession({ limits: { budgetMicroUSD: 10, onReached: 'Suspend' } }) };
  const watch = makeBudgetWatch({
    marks: makeBudgetMarks(database.pool, randomUUID),
    findSession: () => session.current,
    findProject: () => undefined,
    listProjects: () => [],
    clock: systemClock,
    log: createLogger({ level: 'error', write: () => undefined }),
  });
  const uid = 'marked';
  const identity = { sessionUid: uid, generation: 1, podUid: 'p', namespace: 'team', projectUid: 'project-1' };
  const limit = { scope: 'session', uid, period: '', limitMicroUsd: 10 } as const;
  await database.pool.query({
    text: `insert into budget_spend (scope, uid, period, spent_micro_usd) values ('session', $1, '', 12)`,
    values: [uid],
  });
  for (let times = 0; times < 3; times += 1) {
    watch.refused({ identity, turnId: 'turn-1', refusal: { reason: 'reached', scope: 'session', limit } });
  }
  await watch.idle();
  const events = (await stored.log(uid)).filter(({ type }) => type.startsWith('budget.'));
  assert.deepEqual(
    events.map(({ type, turn_id, data }) => [type, turn_id, data]),
    [
      [
        'budget.reached',
        'turn-1',
        { scope: 'session', period: '', limitMicroUSD: 10, spentMicroUSD: 12, onReached: 'Suspend' },
      ],
    ],
  );
  const state = async () =>
    (
      await stored.rows<{ budget_reached: boolean; want_start: boolean }>(
        'select budget_reached, want_start from sessions where uid = $1',
        uid,
      )
    )[0];
  assert.deepEqual(await state(), { budget_reached: true, want_start: false });
  // The limit of this uid is that of the fixture's session, so it is asked for by the fixture's own uid.
  session.current = aSession({ limits: { budgetMicroUSD: 1_000 } });
  await watch.look();
  assert.deepEqual(await state(), { budget_reached: false, want_start: true });
  assert.equal((await stored.log(uid)).filter(({ type }) => type === 'budget.raised').length, 1);
  await watch.look();
  assert.equal((await stored.log(uid)).filter(({ type }) => type === 'budget.raised').length, 1);
});

test('§10 a daily budget that is lowered below what is spent is told without a call, and stays told while a sync saves', async () => {
  const project = { current: aProject({ limits: { dailyBudgetMicroUSD: 100_000 } }) };
  const { uid, name, namespace } = project.current.metadata;
  const store = makeProjectStore(database.pool);
  const fact = {
    uid,
    models: { registryGeneration: 0 },
    budget: { reached: false, runsReached: false, message: '' },
  } as ProjectFact;
  await store.saveRequest({ uid, name, namespace } as never, {} as never, new Date().toISOString());
  const save = () => store.saveResult(uid, { fact, config: undefined, dueAt: null, isNews: true } as never);
  await save();
  const clock = { ...systemClock, nowMs: () => Date.UTC(2031, 11, 31, 12) };
  const watch = makeBudgetWatch({
    marks: makeBudgetMarks(database.pool, randomUUID),
    findSession: () => undefined,
    findProject: () => project.current,
    listProjects: () => [project.current],
    clock,
    log: createLogger({ level: 'error', write: () => undefined }),
  });
  await database.pool.query({
    text: `insert into budget_spend (scope, uid, period, spent_micro_usd) values ('project_day', $1, '2031-12-31', 64884)`,
    values: [uid],
  });
  watch.projectChanged(uid);
  await watch.idle();
  assert.equal((await store.find(uid))?.fact?.budget.reached, false);
  project.current = aProject({ limits: { dailyBudgetMicroUSD: 100 } });
  watch.projectChanged(uid);
  await watch.idle();
  await save();
  const message =
    'the daily budget of 0.0001 USD is used up; raise spec.limits.dailyBudgetMicroUSD of the Project, or wait until 2032-01-01T00:00:00Z';
  assert.deepEqual((await store.find(uid))?.fact?.budget, { reached: true, runsReached: false, message });
});

test('§2 a project says that the turns of its day are used up, and no longer once it may begin more', async () => {
  const project = { current: aProject({ limits: { dailyRuns: 2 } }) };
  const { name, namespace } = project.current.metadata;
  const uid = 'project-1';
  project.current = { ...project.current, metadata: { ...project.current.metadata, uid } };
  const store = makeProjectStore(database.pool);
  const fact = { uid, models: { registryGeneration: 0 }, budget: { reached: false, runsReached: false, message: '' } };
  await store.saveRequest({ uid, name, namespace } as never, {} as never, new Date().toISOString());
  await store.saveResult(uid, { fact, config: undefined, dueAt: null, isNews: true } as never);
  const watch = makeBudgetWatch({
    marks: makeBudgetMarks(database.pool, randomUUID),
    findSession: () => undefined,
    findProject: () => project.current,
    listProjects: () => [project.current],
    clock: systemClock,
    log: createLogger({ level: 'error', write: () => undefined }),
  });
  const stored = storedSessions(database.pool);
  const begun = Number(
    (
      await database.pool.query<{ count: string }>({
        text: `select count(*) from turns t join sessions s on s.uid = t.session_uid where s.project_uid = $1`,
        values: [uid],
      })
    )[0]?.count,
  );
  const says = async (dailyRuns: number) => {
    const limits = { ...project.current.spec.limits, dailyRuns };
    project.current = { ...project.current, spec: { ...project.current.spec, limits } };
    await watch.look();
    return (await store.find(uid))?.fact?.budget;
  };
  assert.equal((await says(begun + 1))?.runsReached, false);
  const claim = await stored.claim('daily');
  await stored.inbox.admit(aSessionKey('daily'), aPrompt('daily', 'm1'));
  await stored.take(claim);
  const full = await says(begun + 1);
  assert.deepEqual([full?.reached, full?.runsReached], [false, true]);
  assert.match(
    full?.message ?? '',
    /^the \d+ turns of this UTC day are begun; raise spec\.limits\.dailyRuns of the Project/,
  );
  assert.equal((await says(begun + 2))?.runsReached, false);
});
