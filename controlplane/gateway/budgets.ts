// Money before and after a call: a reservation out of what this replica leased of each budget, and what the call cost.
// A lease is a row in the database, so replicas do not overspend; within it a call waits for nobody.
// Must not know SQL or where limits are written. Source: 20-control-plane §5, §10, K6.
import type { Clock } from '#base/clock.ts';
import { UnavailableError } from '#base/errors.ts';

/** What a budget belongs to. */
export const BUDGET_SCOPES = ['session', 'project_day', 'project_month'] as const;
/** See BUDGET_SCOPES. */
export type BudgetScope = (typeof BUDGET_SCOPES)[number];

/** One budget. `period`: UTC day or month, empty for a whole session. 0 allows nothing. Units: micro-USD. */
export type BudgetLimit = Readonly<{ scope: BudgetScope; uid: string; period: string; limitMicroUsd: number }>;

/** Turns that a project may begin in a UTC day. */
export type RunLimit = Readonly<{ projectUid: string; day: string; limit: number }>;

/** Everything that limits one call. */
export type Limits = Readonly<{ budgets: readonly BudgetLimit[]; runs: RunLimit | undefined }>;

/** Which budget is concerned, without its limit. */
export type BudgetKey = Pick<BudgetLimit, 'scope' | 'uid' | 'period'>;

/** What the database says of a budget. `othersMicroUsd`: leases of other replicas; `heldMicroUsd`: ours now. */
export type Lease = Readonly<{ spentMicroUsd: number; othersMicroUsd: number; heldMicroUsd: number }>;

/** Leases up to `wantMicroUsd`, never more than what is left. Errors: UnavailableError `database_unavailable`. */
export type LeaseBudget = (limit: BudgetLimit, wantMicroUsd: number) => Promise<Lease>;

/** The place of a turn among the turns that its project began on a day, from 1. Errors: UnavailableError. */
export type RankOfTurn = (limit: RunLimit, turnId: string | null) => Promise<number>;

/** Money that is set aside for a call; `settle` must be called once with what the call cost. Units: micro-USD. */
export type Hold = Readonly<{ settle: (costMicroUsd: number) => void }>;

/** Why a call may not be made. `held`: the rest of the budget is set aside for calls that are not over. */
export type BudgetRefusal = Readonly<{
  reason: 'reached' | 'held';
  scope: BudgetScope | 'project_runs';
  limit: BudgetLimit | undefined;
}>;

/** The budgets of this replica. */
export type Budgets = Readonly<{
  /** Sets aside what a call may cost, in every budget or in none. Errors: UnavailableError when it cannot be known. */
  take: (limits: Limits, estimateMicroUsd: number, turnId: string | null) => Promise<Hold | BudgetRefusal> | Hold;
  /** What calls cost is in the database now, or lost for good. */
  stored: (costs: readonly Readonly<BudgetKey & { costMicroUsd: number }>[]) => void;
}>;

/** How long a lease is used before the database is asked again. Units: milliseconds. */
const FRESH_MS = 5_000;
/** Part of a budget's rest that one lease takes at most, so that replicas share it. */
const SHARE = 16;
const MAX_ROUNDS = 32;
const MAX_ENTRIES = 20_000;
const MAX_TURNS = 10_000;

type Entry = {
  limitMicroUsd: number;
  spent: number;
  others: number;
  /** Our lease, as the database has it, less what it has as spent since. */
  held: number;
  /** Set aside for calls that are not over. */
  reserved: number;
  /** What calls cost that the database has not as spent yet. */
  pending: number;
  leasedAtMs: number;
  /** True when it ended with less than was wanted. */
  leasing: Promise<boolean> | undefined;
};

const NO_HOLD: Hold = { settle: () => undefined };

/** Makes the budgets. */
export const makeBudgets = (
  ports: Readonly<{ lease: LeaseBudget; rankOfTurn: RankOfTurn; clock: Pick<Clock, 'monotonicMs'> }>,
): Budgets => {
  const { clock } = ports;
  const entries = new Map<string, Entry>();
  const ranks = new Map<string, number>();
  const keyOf = (key: BudgetKey): string => `${key.scope} ${key.uid} ${key.period}`;
  const free = (entry: Entry): number => entry.held - entry.pending - entry.reserved;
  const isFresh = (entry: Entry): boolean => clock.monotonicMs() - entry.leasedAtMs < FRESH_MS;

  const entryOf = (limit: BudgetLimit): Entry => {
    const key = keyOf(limit);
    let entry = entries.get(key);
    if (entry === undefined) {
      entry = {
        limitMicroUsd: limit.limitMicroUsd,
        spent: 0,
        others: 0,
        held: 0,
        reserved: 0,
        pending: 0,
        leasedAtMs: Number.NEGATIVE_INFINITY,
        leasing: undefined,
      };
      entries.set(key, entry);
      if (entries.size > MAX_ENTRIES) {
        for (const [old, { reserved, pending }] of entries) {
          if (reserved === 0 && pending === 0 && old !== key) entries.delete(old);
          if (entries.size <= MAX_ENTRIES) break;
        }
      }
    }
    if (entry.limitMicroUsd !== limit.limitMicroUsd) {
      entry.limitMicroUsd = limit.limitMicroUsd;
      entry.leasedAtMs = Number.NEGATIVE_INFINITY;
    }
    return entry;
  };

  const lease = (limit: BudgetLimit, entry: Entry, estimate: number): Promise<boolean> => {
    entry.leasing ??= (async () => {
      const rest = Math.max(0, limit.limitMicroUsd - entry.spent - entry.pending);
      const want = entry.pending + entry.reserved + Math.max(estimate, Math.floor(rest / SHARE));
      const pendingBefore = entry.pending;
      const answer = await ports.lease(limit, want);
      // What became stored while the database answered is in `spent` or in our lease, never in neither.
      entry.held = Math.max(0, answer.heldMicroUsd - Math.max(0, pendingBefore - entry.pending));
      entry.spent = answer.spentMicroUsd;
      entry.others = answer.othersMicroUsd;
      entry.leasedAtMs = clock.monotonicMs();
      return answer.heldMicroUsd < want;
    })().finally(() => {
      entry.leasing = undefined;
    });
    return entry.leasing;
  };

  /** Sets aside in one budget; the amount, or why not. */
  const reserve = async (limit: BudgetLimit, estimate: number): Promise<number | 'reached' | 'held'> => {
    const entry = entryOf(limit);
    const isEnough = (): boolean => isFresh(entry) && free(entry) >= estimate;
    for (let round = 0; round < MAX_ROUNDS && !isEnough(); round += 1) {
      try {
        // Calls that wait together share a lease, so one of them may need another.
        if (await lease(limit, entry, estimate)) break;
      } catch (error) {
        // Without the database what was leased goes on; nobody else can lease meanwhile.
        if (!(error instanceof UnavailableError) || free(entry) <= 0) throw error;
        break;
      }
    }
    if (free(entry) >= estimate) {
      entry.reserved += estimate;
      return estimate;
    }
    // What is not stored yet may be in `spent` already, so it does not make a budget reached for good.
    if (entry.spent >= limit.limitMicroUsd) return 'reached';
    // The last call of a budget may have what is left, when no other one is under way.
    const rest = free(entry);
    if (rest <= 0 || entry.reserved > 0) return 'held';
    entry.reserved += rest;
    return rest;
  };

  const holdOf = (taken: readonly (readonly [BudgetLimit, number])[]): Hold => ({
    settle: (costMicroUsd) => {
      for (const [limit, amount] of taken) {
        const entry = entryOf(limit);
        entry.reserved -= amount;
        entry.pending += costMicroUsd;
      }
    },
  });

  const giveBack = (taken: readonly (readonly [BudgetLimit, number])[]): void => {
    for (const [limit, amount] of taken) entryOf(limit).reserved -= amount;
  };

  const rank = async (limit: RunLimit, turnId: string | null): Promise<number> => {
    const key = `${limit.day} ${turnId}`;
    const known = ranks.get(key);
    if (known !== undefined) return known;
    const found = await ports.rankOfTurn(limit, turnId);
    // Only the rank of a turn stays as it is.
    if (turnId !== null) ranks.set(key, found);
    const [oldest] = ranks.keys();
    if (ranks.size > MAX_TURNS && oldest !== undefined) ranks.delete(oldest);
    return found;
  };

  const takeAll = async (limits: Limits, estimate: number, turnId: string | null): Promise<Hold | BudgetRefusal> => {
    const { runs } = limits;
    if (runs !== undefined && (runs.limit === 0 || (await rank(runs, turnId)) > runs.limit)) {
      return { reason: 'reached', scope: 'project_runs', limit: undefined };
    }
    const taken: [BudgetLimit, number][] = [];
    for (const limit of limits.budgets) {
      try {
        const amount = await reserve(limit, estimate);
        if (typeof amount === 'string') {
          giveBack(taken);
          return { reason: amount, scope: limit.scope, limit };
        }
        taken.push([limit, amount]);
      } catch (error) {
        giveBack(taken);
        throw error;
      }
    }
    return holdOf(taken);
  };

  return {
    take: (limits, estimateMicroUsd, turnId) => {
      if (limits.budgets.length === 0 && limits.runs === undefined) return NO_HOLD;
      const estimate = Math.max(1, estimateMicroUsd);
      const isLeased = limits.budgets.every((limit) => {
        const entry = entryOf(limit);
        return isFresh(entry) && free(entry) >= estimate;
      });
      if (!isLeased || limits.runs !== undefined) return takeAll(limits, estimate, turnId);
      const taken = limits.budgets.map((limit) => {
        entryOf(limit).reserved += estimate;
        return [limit, estimate] as const;
      });
      return holdOf(taken);
    },
    stored: (costs) => {
      for (const cost of costs) {
        const entry = entries.get(keyOf(cost));
        if (entry === undefined) continue;
        const part = Math.min(entry.pending, cost.costMicroUsd);
        entry.pending -= part;
        entry.held = Math.max(0, entry.held - part);
      }
    },
  };
};

/** The budgets that a call at `at` (RFC 3339) counts against. */
export const budgetKeys = (
  call: Readonly<{ at: string; sessionUid: string; projectUid: string }>,
): readonly BudgetKey[] => [
  { scope: 'session', uid: call.sessionUid, period: '' },
  { scope: 'project_day', uid: call.projectUid, period: call.at.slice(0, 10) },
  { scope: 'project_month', uid: call.projectUid, period: call.at.slice(0, 7) },
];
