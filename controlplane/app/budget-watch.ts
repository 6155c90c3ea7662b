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
  /** What is spent of budgets of projects, marked or not; those that nothing is spent of are left out. */
  spent: (keys: readonly BudgetKey[]) => Promise<readonly Readonly<BudgetKey & { spentMicroUsd: number }>[]>;
  /** How many turns projects began since a UTC day began; those that began none are left out. */
  turns: (
    projectUids: readonly string[],
    day: string,
  ) => Promise<readonly Readonly<{ projectUid: string; turns: number }>[]>;
  /** What projects say: these are reached, no other is. `isRuns`: it is the turns of the day, and not money. */
  setProjects: (reached: readonly Readonly<{ uid: string; isRuns: boolean; message: string }>[]) => Promise<void>;
}>;

/** What the watch needs. */
export type BudgetWatchPorts = Readonly<{
  marks: BudgetMarks;
  findSession: (uid: string) => Session | undefined;
  findProject: (uid: string) => Project | undefined;
  listProjects: () => readonly Project[];
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
  /** As `look`, for a project whose limits may have changed: at once if they did. Never throws. */
  projectChanged: (projectUid: string) => void;
  /** Resolves when nothing runs. */
  idle: () => Promise<void>;
}>;

const MAX_TOLD = 10_000;
const keyOf = ({ scope, uid, period }: BudgetKey): string => `${scope} ${uid} ${period}`;

/** An amount as it is: at least cents, and as many digits more as it has. */
export const dollars = (microUsd: number): string => {
  const [whole, part = ''] = (microUsd / 1_000_000).toFixed(6).split('.');
  return `${whole}.${part.replace(/0{1,4}$/, '')} USD`;
};

const remedy = (field: string, isDay: boolean, nowMs: number): string => {
  const now = new Date(nowMs);
  const [year, month] = [now.getUTCFullYear(), now.getUTCMonth()];
  const end = isDay ? Date.UTC(year, month, now.getUTCDate() + 1) : Date.UTC(year, month + 1, 1);
  const from = new Date(end).toISOString().replace('.000Z', 'Z');
  return `raise spec.limits.${field} of the Project, or wait until ${from}`;
};

/** What is said of a project whose budget is used up: which, and what to do. `nowMs` is in its period. */
export const projectBudgetText = ({ scope, limitMicroUsd }: BudgetLimit, nowMs: number): string => {
  const isDay = scope === 'project_day';
  const [what, field] = isDay ? ['daily', 'dailyBudgetMicroUSD'] : ['monthly', 'monthlyBudgetMicroUSD'];
  return `the ${what} budget of ${dollars(limitMicroUsd)} is used up; ${remedy(field, isDay, nowMs)}`;
};

/** As projectBudgetText, for the turns of the day. */
export const projectRunsText = (limit: number, nowMs: number): string =>
  `the ${limit} turns of this UTC day are begun; ${remedy('dailyRuns', true, nowMs)}`;

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
  const limitsOfProjects = new Map<string, string>();
  let isLookDue = false;
  let running: Promise<void> = Promise.resolve();
  const now = (): string => new Date(clock.nowMs()).toISOString();

  /** Looks at all projects with one question: a limit may be lowered below what is spent when nobody calls. */
  const lookAtProjects = async (): Promise<void> => {
    const nowMs = clock.nowMs();
    const all = ports.listProjects().map((project) => callLimits(undefined, project, nowMs));
    const limits = all.flatMap(({ budgets }) => budgets);
    const spent = new Map((await marks.spent(limits)).map((row) => [keyOf(row), row.spentMicroUsd]));
    const reached = limits.filter((limit) => (spent.get(keyOf(limit)) ?? 0) >= limit.limitMicroUsd);
    const runs = all.flatMap((limit) => limit.runs ?? []);
    const day = new Date(nowMs).toISOString().slice(0, 10);
    const begun = await marks.turns(
      runs.map(({ projectUid }) => projectUid),
      day,
    );
    const turns = new Map(begun.map((row) => [row.projectUid, row.turns]));
    const usedUp = runs.filter(({ projectUid, limit }) => (turns.get(projectUid) ?? 0) >= limit);
    // What lasts longest is told, so it comes last: turns and money of the day, then those of the month.
    const texts = new Map<string, Readonly<{ isRuns: boolean; message: string }>>([
      ...usedUp.map((run) => [run.projectUid, { isRuns: true, message: projectRunsText(run.limit, nowMs) }] as const),
      ...reached.map((limit) => [limit.uid, { isRuns: false, message: projectBudgetText(limit, nowMs) }] as const),
    ]);
    await marks.setProjects([...texts].map(([uid, what]) => ({ uid, ...what })));
  };

  const look = async (): Promise<void> => {
    const listed = await marks.list();
    for (const mark of listed) {
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
      }
    }
    await lookAtProjects();
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
    projectChanged: (projectUid) => {
      const limits = JSON.stringify(findProject(projectUid)?.spec.limits ?? null);
      if (limitsOfProjects.get(projectUid) === limits) return;
      if (limits === 'null') limitsOfProjects.delete(projectUid);
      else limitsOfProjects.set(projectUid, limits);
      // Many projects that change together, as at the start, are looked at once.
      if (isLookDue) return;
      isLookDue = true;
      inBackground(() => {
        isLookDue = false;
        return look();
      });
    },
    idle: () => running,
  };
};
