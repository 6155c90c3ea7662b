// What follows when a budget is reached, and when it is raised or its period is over: marks, events, and what the operator
// is told. Must not know SQL, HTTP or how money is counted. Source: 20-control-plane §10, 10-kubernetes §2, §3 (limits).
import type { Clock } from '#base/clock.ts';
import type { Logger } from '#base/log.ts';
import type { Project } from '#schema/resources/project.ts';
import type { Session } from '#schema/resources/session.ts';
import type { BudgetKey, BudgetLimit, BudgetRefusal } from '../gateway/budgets.ts';
import { callLimits } from './call-limits.ts';
import type { SandboxIdentity } from './ports.ts';

/** A budget that a call of a session has found used up. `at` in RFC 3339. */
export type ReachedBudget = Readonly<{
  limit: BudgetLimit;
  sessionUid: string;
  turnId: string | null;
  at: string;
  onReached: 'Fail' | 'Suspend';
}>;

/** A budget that is marked, with what is spent of it now. */
export type MarkedBudget = BudgetLimit & Readonly<{ spentMicroUsd: number }>;

/** The marks. Errors of all: UnavailableError `database_unavailable`. */
export type BudgetMarks = Readonly<{
  /** Marks a budget and tells it once for each limit; false when that was done before. */
  reach: (reached: ReachedBudget) => Promise<boolean>;
  /** Takes the mark away; a session is told of its new limit, null for none. */
  clear: (key: BudgetKey, limitMicroUsd: number | null, at: string) => Promise<void>;
  list: () => Promise<readonly MarkedBudget[]>;
  /** What projects say: these are reached, no other is. */
  setProjects: (reached: readonly Readonly<{ uid: string; message: string }>[]) => Promise<void>;
}>;

/** What the watch needs. */
export type BudgetWatchPorts = Readonly<{
  marks: BudgetMarks;
  findSession: (uid: string) => Session | undefined;
  findProject: (uid: string) => Project | undefined;
  clock: Clock;
  log: Logger;
}>;

/** The watch. */
export type BudgetWatch = Readonly<{
  /** A call was refused; never waits and never throws. */
  refused: (refusal: Readonly<{ identity: SandboxIdentity; turnId: string | null; refusal: BudgetRefusal }>) => void;
  /** Compares every mark with the limits as they are now. Errors: UnavailableError. */
  look: () => Promise<void>;
  /** As `look`, for a session whose limits may have changed: at once if it was refused here. Never throws. */
  changed: (sessionUid: string) => void;
  /** Resolves when nothing runs. */
  idle: () => Promise<void>;
}>;

const MAX_TOLD = 10_000;
const keyOf = ({ scope, uid, period }: BudgetKey): string => `${scope} ${uid} ${period}`;

const dollars = (microUsd: number): string => `${(microUsd / 1_000_000).toFixed(2)} USD`;

/** The limit of a marked budget as it is now: undefined when there is none, or its period is over. */
export const currentLimit = (
  marked: BudgetKey,
  session: Session | undefined,
  project: Project | undefined,
  nowMs: number,
): number | undefined =>
  callLimits(session, project, nowMs).budgets.find((limit) => keyOf(limit) === keyOf(marked))?.limitMicroUsd;

/** Makes the watch. */
export const makeBudgetWatch = (ports: BudgetWatchPorts): BudgetWatch => {
  const { marks, findSession, findProject, clock, log } = ports;
  /** Budgets that this replica has told of, with the limit that they were reached at. */
  const told = new Map<string, number>();
  let running: Promise<void> = Promise.resolve();
  const now = (): string => new Date(clock.nowMs()).toISOString();

  const look = async (): Promise<void> => {
    const reached: { uid: string; message: string }[] = [];
    for (const mark of await marks.list()) {
      const isSession = mark.scope === 'session';
      const limit = currentLimit(
        mark,
        isSession ? findSession(mark.uid) : undefined,
        isSession ? undefined : findProject(mark.uid),
        clock.nowMs(),
      );
      if (limit === undefined || limit > mark.spentMicroUsd) {
        told.delete(keyOf(mark));
        await marks.clear(mark, limit ?? null, now());
      } else if (!isSession) {
        const what = mark.scope === 'project_day' ? 'daily' : 'monthly';
        reached.push({ uid: mark.uid, message: `the ${what} budget of ${dollars(limit)} is used up` });
      }
    }
    const latest = new Map(reached.map((each) => [each.uid, each]));
    await marks.setProjects([...latest.values()]);
  };

  const inBackground = (work: () => Promise<unknown>): void => {
    running = running.then(work).then(
      () => undefined,
      (error: unknown) => log.warn('a reached budget could not be told', { err: error }),
    );
  };

  return {
    refused: ({ identity, turnId, refusal: { limit } }) => {
      if (limit === undefined || told.get(keyOf(limit)) === limit.limitMicroUsd) return;
      told.set(keyOf(limit), limit.limitMicroUsd);
      const [oldest] = told.keys();
      if (told.size > MAX_TOLD && oldest !== undefined) told.delete(oldest);
      const { sessionUid } = identity;
      const onReached = findSession(sessionUid)?.spec.limits?.onReached ?? 'Fail';
      inBackground(async () => {
        try {
          if (await marks.reach({ limit, sessionUid, turnId, at: now(), onReached })) {
            log.info('a budget is used up', { scope: limit.scope, session: sessionUid });
          }
        } catch (error) {
          told.delete(keyOf(limit));
          throw error;
        }
        if (limit.scope !== 'session') await look();
      });
    },
    look,
    changed: (sessionUid) => {
      if (told.has(keyOf({ scope: 'session', uid: sessionUid, period: '' }))) inBackground(look);
    },
    idle: () => running,
  };
};
