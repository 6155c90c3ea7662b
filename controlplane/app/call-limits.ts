// Which budgets a model call counts against: those of its session and of its project. Pure. Must not know what is left of
// them. Source: 10-kubernetes §2, §3 (limits), K6, 20-control-plane §10.
import type { Project } from '#schema/resources/project.ts';
import type { Session } from '#schema/resources/session.ts';
import type { BudgetLimit, Limits } from '../gateway/budgets.ts';

const NO_LIMITS: Limits = { budgets: [], runs: undefined };

/** The limits of a call that begins at `atMs`; an absent limit is none, 0 allows nothing. */
export const callLimits = (session: Session | undefined, project: Project | undefined, atMs: number): Limits => {
  const own = session?.spec.limits?.budgetMicroUSD;
  const shared = project?.spec.limits;
  if (own === undefined && shared === undefined) return NO_LIMITS;
  const budgets: BudgetLimit[] = [];
  if (own !== undefined && session !== undefined) {
    budgets.push({ scope: 'session', uid: session.metadata.uid, period: '', limitMicroUsd: own });
  }
  if (project === undefined || shared === undefined) return { budgets, runs: undefined };
  const { uid } = project.metadata;
  const today = new Date(atMs).toISOString();
  const day = today.slice(0, 10);
  if (shared.dailyBudgetMicroUSD !== undefined) {
    budgets.push({ scope: 'project_day', uid, period: day, limitMicroUsd: shared.dailyBudgetMicroUSD });
  }
  if (shared.monthlyBudgetMicroUSD !== undefined) {
    const limitMicroUsd = shared.monthlyBudgetMicroUSD;
    budgets.push({ scope: 'project_month', uid, period: today.slice(0, 7), limitMicroUsd });
  }
  const runs = shared.dailyRuns === undefined ? undefined : { projectUid: uid, day, limit: shared.dailyRuns };
  return { budgets, runs };
};

const DAY_MS = 86_400_000;
/** Sessions whose limits are remembered. */
const MAX_SESSIONS = 10_000;

/** Finds the limits of a session's calls. As long as session, project and day stay what they are, so does the object. */
export const makeFindLimits = (
  findSession: (uid: string) => Session | undefined,
  findProject: (uid: string) => Project | undefined,
): ((identity: Readonly<{ sessionUid: string; projectUid: string }>, atMs: number) => Limits) => {
  type Known = Readonly<{ session: Session | undefined; project: Project | undefined; day: number; limits: Limits }>;
  const known = new Map<string, Known>();
  return ({ sessionUid, projectUid }, atMs) => {
    const session = findSession(sessionUid);
    const project = findProject(projectUid);
    const day = Math.floor(atMs / DAY_MS);
    const held = known.get(sessionUid);
    if (held?.session === session && held?.project === project && held?.day === day) return held.limits;
    const limits = callLimits(session, project, atMs);
    known.delete(sessionUid);
    known.set(sessionUid, { session, project, day, limits });
    const [oldest] = known.keys();
    if (known.size > MAX_SESSIONS && oldest !== undefined) known.delete(oldest);
    return limits;
  };
};
