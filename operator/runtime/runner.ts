// Runs one controller: observe, plan, perform, status, events. Owns outcomes, logs, metrics and the pace of statuses.
// Must not know any kind. Source: K27, K36, K39.
import type { Clock } from '#base/clock.ts';
import { BeeuniError, UnavailableError } from '#base/errors.ts';
import type { Logger } from '#base/log.ts';
import type { Instruments } from '#base/metrics.ts';
import type { EventNote, Regarding } from '#kube/events.ts';
import type { RunOutcome } from '#kube/queue.ts';
import type { RECONCILE_METRICS } from '#schema/metrics.ts';
import type { Controller, FailureAnswer, Key, Plan } from './controller.ts';
import { MinorWrites } from './minor-writes.ts';
import { knownError, outcomeOf } from './outcome.ts';

/** What a runner needs. */
export type RunnerPorts = Readonly<{
  clock: Clock;
  log: Logger;
  metrics: Instruments<typeof RECONCILE_METRICS>;
  note: (regarding: Regarding, note: EventNote) => void;
}>;

/** Look at what is forbidden again after so long. Units: milliseconds. */
const SLOWLY_MS = 300_000;
/** A conflict is read again after the cache had time to follow. Units: milliseconds. */
const AT_ONCE_MS = 50;

type Failure<Action> = Readonly<{ action: Action; error: unknown }>;

/** The function that a work queue runs for each key of one controller. */
export const makeRunner = <Observed, Action extends Readonly<{ kind: string }>, Status>(
  controller: Controller<Observed, Action, Status>,
  ports: RunnerPorts,
): ((key: Key, signal: AbortSignal) => Promise<RunOutcome>) => {
  const { clock, metrics, note } = ports;
  const { name } = controller;
  const kind = name === 'project' ? 'Project' : 'Session';
  const minors = new MinorWrites();

  const performAll = async (
    observed: Observed,
    actions: readonly Action[],
    signal: AbortSignal,
  ): Promise<Failure<Action> | undefined> => {
    for (const action of actions) {
      if (signal.aborted) return { action, error: new UnavailableError('timed_out', 'the pass took too long') };
      metrics.planOpsTotal.inc({ controller: name, op: action.kind });
      try {
        await controller.perform(observed, action, signal);
      } catch (error) {
        return { action, error };
      }
    }
    return undefined;
  };

  /** Writes the status when it differs and may be written now. Gives back how long it waits, 0 when nothing waits. */
  const settleStatus = async (
    key: Key,
    observed: Observed,
    status: Status,
    inTransit: boolean,
    signal: AbortSignal,
  ): Promise<Readonly<{ wrote: boolean; waitMs: number }>> => {
    const change = controller.compare(controller.storedStatus(observed), status);
    if (change === 'none') {
      minors.settled(key);
      return { wrote: false, waitMs: 0 };
    }
    const rated = inTransit ? 'minor' : change;
    const waitMs = minors.waitMs(key, rated, clock.monotonicMs());
    if (waitMs > 0) return { wrote: false, waitMs };
    await controller.writeStatus(observed, status, signal);
    minors.wrote(key, clock.monotonicMs());
    metrics.statusWritesTotal.inc({ kind, class: rated });
    return { wrote: true, waitMs: 0 };
  };

  const answerOf = (observed: Observed, failure: Failure<Action>): FailureAnswer<Status> | undefined => {
    const known = knownError(failure.error);
    return known === undefined ? undefined : controller.statusOnFailure(observed, failure.action, known);
  };

  const finish = (result: 'done' | 'retry' | 'delayed' | 'stalled', startedMs: number): void => {
    metrics.reconcileTotal.inc({ controller: name, result });
    metrics.reconcileDurationSeconds.observe({ controller: name }, (clock.monotonicMs() - startedMs) / 1_000);
  };

  const fail = (key: Key, error: unknown, log: Logger, startedMs: number): RunOutcome => {
    const outcome = outcomeOf(error);
    const [namespace, object] = key.split('/');
    log[outcome.level]('reconcile failed', { namespace, [name]: object, code: outcome.code, err: error });
    metrics.reconcileErrorsTotal.inc({ controller: name, reason: outcome.code });
    finish(outcome.stalled ? 'stalled' : 'retry', startedMs);
    switch (outcome.retry) {
      case 'on-change':
        return { kind: 'done' };
      case 'slowly':
        return { kind: 'done', recheckAfterMs: SLOWLY_MS };
      case 'at-once':
        return { kind: 'done', recheckAfterMs: AT_ONCE_MS };
      case 'backoff':
        return { kind: 'retry', afterMs: outcome.afterMs };
    }
  };

  const pass = async (
    key: Key,
    observed: Observed,
    plan: Plan<Action, Status>,
    log: Logger,
    startedMs: number,
    signal: AbortSignal,
  ): Promise<RunOutcome> => {
    const failure = await performAll(observed, plan.actions, signal);
    const answer = failure === undefined ? undefined : answerOf(observed, failure);
    const stalled = failure !== undefined && answer === undefined && outcomeOf(failure.error).stalled;
    const status = answer?.status ?? (stalled ? controller.stalled(observed, knownError(failure.error)) : plan.status);
    const events = answer?.events ?? plan.events;
    let waitMs = 0;
    let wrote = status === undefined;
    if (status !== undefined) {
      const inTransit = failure === undefined && plan.inTransit;
      ({ wrote, waitMs } = await settleStatus(key, observed, status, inTransit, signal));
    }
    if (wrote && (failure === undefined || answer !== undefined)) {
      for (const event of events) note(controller.regarding(observed), event);
    }
    if (failure !== undefined && answer === undefined) return fail(key, failure.error, log, startedMs);
    const wish = answer === undefined ? plan.recheckAfterMs : answer.recheckAfterMs;
    const recheckAfterMs = waitMs > 0 ? Math.min(waitMs, wish ?? waitMs) : wish;
    finish(recheckAfterMs === undefined ? 'done' : 'delayed', startedMs);
    return { kind: 'done', recheckAfterMs };
  };

  return async (key, signal) => {
    const startedMs = clock.monotonicMs();
    const { log } = ports;
    try {
      const observed = await controller.observe(key, signal);
      if (observed === undefined) {
        minors.forget(key);
        finish('done', startedMs);
        return { kind: 'done' };
      }
      return await pass(key, observed, controller.plan(observed), log, startedMs, signal);
    } catch (error) {
      // A pass that its time limit cut off says nothing about the object.
      if (signal.aborted && !(error instanceof BeeuniError)) return { kind: 'retry' };
      return fail(key, error, log, startedMs);
    }
  };
};
