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
