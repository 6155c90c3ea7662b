// The transactions around a budget that is reached, or raised again: the mark, the event in the session's log, what the
// operator is told. Each may be repeated. Must not know why a budget is reached. Source: 20-control-plane §8, §10.
import type { BudgetMarks, ReachedBudget } from '../app/budget-watch.ts';
import type { BudgetKey } from '../gateway/budgets.ts';
import {
  clearReached,
  listReached,
  lockSpend,
  markReached,
  setProjectBudgets,
  spentOfProjects,
  turnsSince,
} from './budgets.ts';
import { ROOT_THREAD } from './end-turns.ts';
import { advanceLogs, insertEvents } from './events.ts';
import { raiseFact, raiseFacts } from './facts.ts';
import { lockSessions, setBudgetReached } from './sessions.ts';
import { type Database, firstRow, type Query } from './statement.ts';

type Told = Readonly<{ type: 'budget.reached' | 'budget.raised'; turnId: string | null; at: string; data: object }>;

/** Appends an event of our own to a session's log; nothing when the session is closed or unknown. */
const tell = async (query: Query, sessionUid: string, newId: () => string, told: Told): Promise<boolean> => {
  const session = await firstRow(query, lockSessions([sessionUid]));
  if (session === undefined || session.closed_at !== null) return false;
  const seq = session.head_seq + 1;
  await query(
    insertEvents([
      {
        session_uid: sessionUid,
        seq,
        generation: session.generation,
        n: null,
        id: newId(),
        type: told.type,
        thread_id: ROOT_THREAD,
        turn_id: told.turnId,
        at: told.at,
        hidden: false,
        caused_by: null,
        data: JSON.stringify(told.data),
      },
    ]),
  );
  await query(advanceLogs([{ uid: sessionUid, headSeq: seq, acknowledgedN: session.acknowledged_n }]));
  return true;
};

/** The transactions over a database. */
export const makeBudgetMarks = (database: Database, newId: () => string): BudgetMarks => ({
  reach: ({ limit, sessionUid, turnId, at, onReached }: ReachedBudget) =>
    database.withTransaction(async (query) => {
      const { scope, period, limitMicroUsd } = limit;
      const spentMicroUSD = (await firstRow(query, lockSpend(limit)))?.spent_micro_usd ?? 0;
      if ((await firstRow(query, markReached(limit))) === undefined) return false;
      const data = { scope, period, limitMicroUSD: limitMicroUsd, spentMicroUSD, onReached };
      await tell(query, sessionUid, newId, { type: 'budget.reached', turnId, at, data });
      if (scope !== 'session') return true;
      await query(setBudgetReached(sessionUid, true));
      await raiseFact(query, { kind: 'session', uid: sessionUid });
      return true;
    }),
  clear: (key: BudgetKey, limitMicroUsd, at) =>
    database.withTransaction(async (query) => {
      if ((await firstRow(query, clearReached(key))) === undefined || key.scope !== 'session') return;
      const data = { scope: 'session', limitMicroUSD: limitMicroUsd };
      if (!(await tell(query, key.uid, newId, { type: 'budget.raised', turnId: null, at, data }))) return;
      await query(setBudgetReached(key.uid, false));
      await raiseFact(query, { kind: 'session', uid: key.uid });
    }),
  list: async () =>
    (await database.query(listReached())).map((row) => ({
      scope: row.scope,
      uid: row.uid,
      period: row.period,
      spentMicroUsd: row.spent_micro_usd,
      limitMicroUsd: row.reached_limit_micro_usd,
    })),
  spent: async (keys) =>
    keys.length === 0
      ? []
      : (await database.query(spentOfProjects(keys))).map((row) => ({
          scope: row.scope,
          uid: row.uid,
          period: row.period,
          spentMicroUsd: row.spent_micro_usd,
        })),
  turns: async (projectUids, day) =>
    projectUids.length === 0
      ? []
      : (await database.query(turnsSince(projectUids, day))).map((row) => ({
          projectUid: row.project_uid,
          turns: row.turns,
        })),
  setProjects: (reached) =>
    database.withTransaction(async (query) => {
      const changed = await query(setProjectBudgets(reached));
      if (changed.length === 0) return;
      await raiseFacts(
        query,
        changed.map(({ uid, fact }) => ({ kind: 'project', uid, body: fact })),
      );
    }),
});
