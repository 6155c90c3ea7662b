// The tables of budgets: leases of replicas, what was spent, and that a budget was reached. Must not know what is bought.
import type { ProjectFact } from '#schema/wire/sync.ts';
import type { BudgetKey, BudgetLimit, Lease, RunLimit } from '../gateway/budgets.ts';
import { type Database, firstRow, type Statement } from './statement.ts';

/** How long a lease counts after it was last asked for. */
const LEASE_SECONDS = 30;

/** What was spent of a budget; the row is made and locked, so that two replicas lease one after the other. */
export const lockSpend = ({ scope, uid, period }: BudgetKey): Statement<{ spent_micro_usd: number }> => ({
  text: `insert into budget_spend as b (scope, uid, period, spent_micro_usd) values ($1, $2, $3, 0)
    on conflict (scope, uid, period) do update set spent_micro_usd = b.spent_micro_usd
    returning spent_micro_usd`,
  values: [scope, uid, period],
});

/** Leases what is left of a budget, up to `want` and not below `used`. To be run under `lockSpend`. */
export const leaseRest = (
  limit: BudgetLimit,
  replica: string,
  spent: number,
  want: number,
  used: number,
): Statement<{ held_micro_usd: number; others: number }> => ({
  text: `with others as (
      select coalesce(sum(held_micro_usd), 0)::bigint as held from budget_leases
      where scope = $1 and uid = $2 and period = $3 and replica <> $4 and expires_at > now()
    )
    insert into budget_leases (scope, uid, period, replica, held_micro_usd, expires_at)
    select $1, $2, $3, $4, greatest($7::bigint, least($6::bigint, $5::bigint - others.held)), now() + interval '${LEASE_SECONDS} seconds'
    from others
    on conflict (scope, uid, period, replica)
    do update set held_micro_usd = excluded.held_micro_usd, expires_at = excluded.expires_at
    returning held_micro_usd, (select held from others) as others`,
  values: [limit.scope, limit.uid, limit.period, replica, limit.limitMicroUsd - spent, want, used],
});

/** The place of a turn among those that its project began since a day began; without a turn, how many there are. */
export const rankOfTurn = (limit: RunLimit, turnId: string | null): Statement<{ rank: number }> => ({
  text: `select count(*)::bigint as rank from turns t join sessions s on s.uid = t.session_uid
    where s.project_uid = $1 and t.taken_at >= ($2 || 'T00:00:00Z')::timestamptz
      and ($3::text is null or t.taken_at <= coalesce((select taken_at from turns where id = $3), now()))`,
  values: [limit.projectUid, limit.day, turnId],
});

/** Marks a budget as reached at a limit; a row when it was not marked with this limit yet. */
export const markReached = (limit: BudgetLimit): Statement<{ uid: string }> => ({
  text: `update budget_spend set reached_limit_micro_usd = $4
    where scope = $1 and uid = $2 and period = $3 and reached_limit_micro_usd is distinct from $4::bigint
    returning uid`,
  values: [limit.scope, limit.uid, limit.period, limit.limitMicroUsd],
});

/** Takes the mark away; a row when there was one. */
export const clearReached = ({ scope, uid, period }: BudgetKey): Statement<{ uid: string }> => ({
  text: `update budget_spend set reached_limit_micro_usd = null
    where scope = $1 and uid = $2 and period = $3 and reached_limit_micro_usd is not null returning uid`,
  values: [scope, uid, period],
});

/** One budget that was reached, and how much of it is spent. */
export type ReachedRow = Readonly<{
  scope: BudgetKey['scope'];
  uid: string;
  period: string;
  spent_micro_usd: number;
  reached_limit_micro_usd: number;
}>;

/** Every budget that is marked as reached. */
export const listReached = (): Statement<ReachedRow> => ({
  text: `select scope, uid, period, spent_micro_usd, reached_limit_micro_usd from budget_spend
    where reached_limit_micro_usd is not null order by scope, uid, period limit 10000`,
  values: [],
});

/** What is spent of these budgets. */
export const spentOfProjects = (
  keys: readonly BudgetKey[],
): Statement<Pick<ReachedRow, 'scope' | 'uid' | 'period' | 'spent_micro_usd'>> => ({
  text: `select b.scope, b.uid, b.period, b.spent_micro_usd
    from unnest($1::text[], $2::text[], $3::text[]) as k(scope, uid, period) join budget_spend b using (scope, uid, period)`,
  values: [keys.map(({ scope }) => scope), keys.map(({ uid }) => uid), keys.map(({ period }) => period)],
});

/** Removes leases and periods that count no longer. */
export const forgetBudgets = (days: number): readonly Statement[] => [
  { text: `delete from budget_leases where expires_at < now() - interval '1 hour'`, values: [] },
  {
    text: `delete from budget_spend where scope = 'project_day' and period < to_char(now() at time zone 'utc' - $1 * interval '1 day', 'YYYY-MM-DD')`,
    values: [days],
  },
];

/** Leases over a database for one replica. Errors: UnavailableError `database_unavailable`. */
export const makeLeaseBudget =
  (database: Database, replica: string) =>
  (limit: BudgetLimit, wantMicroUsd: number, usedMicroUsd: number): Promise<Lease> =>
    database.withTransaction(async (query) => {
      const spentMicroUsd = (await firstRow(query, lockSpend(limit)))?.spent_micro_usd ?? 0;
      const row = await firstRow(query, leaseRest(limit, replica, spentMicroUsd, wantMicroUsd, usedMicroUsd));
      return { spentMicroUsd, othersMicroUsd: row?.others ?? 0, heldMicroUsd: row?.held_micro_usd ?? 0 };
    });

/** How many turns each of these projects began since a day began; those that began none are left out. */
export const turnsSince = (
  projectUids: readonly string[],
  day: string,
): Statement<{ project_uid: string; turns: number }> => ({
  text: `select s.project_uid, count(*)::bigint as turns from sessions s join turns t on t.session_uid = s.uid
    where s.project_uid = any($1::text[]) and t.taken_at >= ($2 || 'T00:00:00Z')::timestamptz group by s.project_uid`,
  values: [projectUids, day],
});

/** Sets what projects say about their limits: those of the list are reached, with a message each, no other is. */
export const setProjectBudgets = (
  reached: readonly Readonly<{ uid: string; isRuns: boolean; message: string }>[],
): Statement<{ uid: string; fact: ProjectFact }> => ({
  text: `with wanted as (
      select p.uid, jsonb_build_object('reached', coalesce(not r.is_runs, false),
        'runsReached', coalesce(r.is_runs, false), 'message', coalesce(r.message, '')) as budget
      from projects p left join unnest($1::text[], $2::bool[], $3::text[]) as r(uid, is_runs, message) on r.uid = p.uid
      where p.fact is not null
    )
    update projects p set fact = jsonb_set(p.fact::jsonb, '{budget}', w.budget) from wanted w
    where w.uid = p.uid and (p.fact::jsonb -> 'budget') is distinct from w.budget
    returning p.uid, p.fact`,
  values: [reached.map(({ uid }) => uid), reached.map(({ isRuns }) => isRuns), reached.map(({ message }) => message)],
});
