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

/**
 * Leases up to `wantMicroUsd`, never more than what is left, but never less than `usedMicroUsd`: what calls under way and
 * calls that are not stored yet take is not another replica's to have. Errors: UnavailableError `database_unavailable`.
 */
export type LeaseBudget = (limit: BudgetLimit, wantMicroUsd: number, usedMicroUsd: number) => Promise<Lease>;

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
  /**
   * The smallest part that is left of the budgets that calls asked for lately: of any, 1 when there is none, and of those of
   * each project by its uid.
   */
  lowestRests: () => Readonly<{ all: number; projects: ReadonlyMap<string, number> }>;
}>;

/** How long a lease is used before the database is asked again. Units: milliseconds. */
const FRESH_MS = 5_000;
/** Part of a budget's rest that one lease takes at most, so that replicas share it. */
const SHARE = 16;
/** Budgets that nobody asked for so long are not looked at. Units: milliseconds. */
const RECENT_MS = 900_000;
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
  /** What became spent in the database, all told. */
  stored: number;
  leasedAtMs: number;
  /** True when it ended with less than was wanted. */
  leasing: Promise<boolean> | undefined;
  /** Nobody remembers it any more; who holds it looks again. */
  isForgotten: boolean;
};

/** What is set aside in one budget. */
type Taken = Readonly<{ entry: Entry; amount: number }>;

class TakenHold implements Hold {
  readonly #taken: readonly Taken[];
  constructor(taken: readonly Taken[]) {
    this.#taken = taken;
  }
  settle(costMicroUsd: number): void {
    for (const { entry, amount } of this.#taken) {
      entry.reserved -= amount;
      entry.pending += costMicroUsd;
    }
  }
}

/** The same amount in each of some budgets. */
class EvenHold implements Hold {
  readonly #entries: readonly Entry[];
  readonly #amount: number;
  constructor(entries: readonly Entry[], amount: number) {
    this.#entries = entries;
    this.#amount = amount;
  }
  settle(costMicroUsd: number): void {
    for (const entry of this.#entries) {
      entry.reserved -= this.#amount;
      entry.pending += costMicroUsd;
    }
  }
}

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
  const isFresh = (entry: Entry, nowMs: number): boolean => nowMs - entry.leasedAtMs < FRESH_MS;

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
        stored: 0,
        leasedAtMs: Number.NEGATIVE_INFINITY,
        leasing: undefined,
        isForgotten: false,
      };
      entries.set(key, entry);
      if (entries.size > MAX_ENTRIES) {
        for (const [old, other] of entries) {
          if (other.reserved === 0 && other.pending === 0 && old !== key) {
            other.isForgotten = true;
            entries.delete(old);
          }
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
      const used = entry.pending + entry.reserved;
      const want = used + Math.max(estimate, Math.floor(rest / SHARE));
      const storedBefore = entry.stored;
      const answer = await ports.lease(limit, want, used);
      // What became stored while the database answered is in `spent` or in our lease, never in neither.
      entry.held = Math.max(0, answer.heldMicroUsd - (entry.stored - storedBefore));
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
  const reserve = async (limit: BudgetLimit, entry: Entry, estimate: number): Promise<number | 'reached' | 'held'> => {
    const isEnough = (): boolean => isFresh(entry, clock.monotonicMs()) && free(entry) >= estimate;
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

  /** Entries of the limits of a call; limits that do not change are the same object, so they are looked up once. */
  const known = new WeakMap<Limits, readonly Entry[]>();
  const entriesOf = (limits: Limits): readonly Entry[] => {
    const held = known.get(limits);
    if (held?.every((entry, at) => !entry.isForgotten && entry.limitMicroUsd === limits.budgets[at]?.limitMicroUsd)) {
      return held;
    }
    const found = limits.budgets.map(entryOf);
    known.set(limits, found);
    return found;
  };

  const giveBack = (taken: readonly Taken[]): void => {
    for (const { entry, amount } of taken) entry.reserved -= amount;
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
    const taken: Taken[] = [];
    const found = entriesOf(limits);
    for (const [at, limit] of limits.budgets.entries()) {
      const entry = found[at] ?? entryOf(limit);
      try {
        const amount = await reserve(limit, entry, estimate);
        if (typeof amount === 'string') {
          giveBack(taken);
          return { reason: amount, scope: limit.scope, limit };
        }
        taken.push({ entry, amount });
      } catch (error) {
        giveBack(taken);
        throw error;
      }
    }
    return new TakenHold(taken);
  };

  return {
    take: (limits, estimateMicroUsd, turnId) => {
      if (limits.budgets.length === 0 && limits.runs === undefined) return NO_HOLD;
      const estimate = Math.max(1, estimateMicroUsd);
      if (limits.runs !== undefined) return takeAll(limits, estimate, turnId);
      const found = entriesOf(limits);
      const nowMs = clock.monotonicMs();
      for (const entry of found) {
        if (!isFresh(entry, nowMs) || free(entry) < estimate) return takeAll(limits, estimate, turnId);
      }
      for (const entry of found) entry.reserved += estimate;
      return new EvenHold(found, estimate);
    },
    lowestRests: () => {
      let all = 1;
      const projects = new Map<string, number>();
      for (const [key, { limitMicroUsd, spent, pending, leasedAtMs }] of entries) {
        if (clock.monotonicMs() - leasedAtMs > RECENT_MS) continue;
        const rest = limitMicroUsd === 0 ? 0 : Math.max(0, (limitMicroUsd - spent - pending) / limitMicroUsd);
        all = Math.min(all, rest);
        const [scope = '', uid = ''] = key.split(' ');
        if (scope !== 'session') projects.set(uid, Math.min(projects.get(uid) ?? 1, rest));
      }
      return { all, projects };
    },
    stored: (costs) => {
      for (const cost of costs) {
        const entry = entries.get(keyOf(cost));
        if (entry === undefined) continue;
        const part = Math.min(entry.pending, cost.costMicroUsd);
        entry.pending -= part;
        entry.stored += part;
        entry.held = Math.max(0, entry.held - part);
      }
    },
  };
};

/** What calls have cost, by budget: each call counts for its session, and for the day and month of its project. */
export const costsByBudget = (
  calls: readonly Readonly<{ at: string; sessionUid: string; projectUid: string; costMicroUsd: number }>[],
): readonly Readonly<BudgetKey & { costMicroUsd: number }>[] => {
  const sums = new Map<string, BudgetKey & { costMicroUsd: number }>();
  const add = (scope: BudgetScope, uid: string, period: string, cost: number): void => {
    const key = `${scope} ${uid} ${period}`;
    const sum = sums.get(key);
    if (sum === undefined) sums.set(key, { scope, uid, period, costMicroUsd: cost });
    else sum.costMicroUsd += cost;
  };
  for (const { at, sessionUid, projectUid, costMicroUsd } of calls) {
    if (costMicroUsd === 0) continue;
    add('session', sessionUid, '', costMicroUsd);
    add('project_day', projectUid, at.slice(0, 10), costMicroUsd);
    add('project_month', projectUid, at.slice(0, 7), costMicroUsd);
  }
  return [...sums.values()];
};
