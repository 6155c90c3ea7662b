// Reports the health document at every change and at least every ten seconds, and passes on what the answer asks for.
// Must not know HTTP. Source: K14.
import { type Clock, sleep } from '#base/clock.ts';
import { asBeeuniError, ConflictError, UnauthenticatedError } from '#base/errors.ts';
import type { Logger } from '#base/log.ts';
import { HEALTH_REPORT_INTERVAL_MS, type HealthDocument } from '#schema/wire/health.ts';
import type { DeliveredAnswer } from '#schema/wire/requests.ts';
import type { ReportAnswer } from '../control-plane.ts';
import { newsOf } from './health-document.ts';

/** Ports of the reporter. */
export type ReporterPorts = Readonly<{
  document: () => HealthDocument;
  report: (document: HealthDocument, signal: AbortSignal) => Promise<ReportAnswer>;
  onPromptsWaiting: () => void;
  /** Answers of people that this daemon may not have heard yet. */
  onAnswers: (answers: readonly DeliveredAnswer[]) => void;
  onAbort: (turnId: string) => void;
  onRefused: (reason: 'superseded' | 'unauthenticated') => void;
  clock: Clock;
  log: Logger;
}>;

/** Reports until it is stopped. */
export type Reporter = Readonly<{
  /** Something may have changed; several calls in one moment make one report. */
  changed: () => void;
  /** Sends the document as it is now; resolves also when that fails. */
  reportNow: () => Promise<void>;
  stop: () => void;
}>;

/** Changes within this time are one report. Units: milliseconds. */
const SETTLE_MS = 50;
const RETRY_MS = 2_000;

/** Starts reporting at once. */
export const startReporter = (ports: ReporterPorts): Reporter => {
  const { clock, log } = ports;
  const stopped = new AbortController();
  let wake = new AbortController();
  let lastNews = '';
  let isDown = false;

  const send = async (): Promise<boolean> => {
    const document = ports.document();
    try {
      const answer = await ports.report(document, stopped.signal);
      lastNews = newsOf(document);
      if (isDown) log.info('the control plane answers again');
      isDown = false;
      if (answer.abortTurnId !== null) ports.onAbort(answer.abortTurnId);
      if (answer.answers.length > 0) ports.onAnswers(answer.answers);
      if (answer.promptsWaiting) ports.onPromptsWaiting();
      return true;
    } catch (error) {
      if (stopped.signal.aborted) return false;
      if (error instanceof ConflictError) ports.onRefused('superseded');
      else if (error instanceof UnauthenticatedError) ports.onRefused('unauthenticated');
      else if (!isDown) log.warn('health could not be reported', { code: asBeeuniError(error)?.code, err: error });
      isDown = true;
      return false;
    }
  };

  const loop = async (): Promise<void> => {
    while (!stopped.signal.aborted) {
      wake = new AbortController();
      const done = await send();
      const waitMs = done ? HEALTH_REPORT_INTERVAL_MS : RETRY_MS;
      const hasNews = done && newsOf(ports.document()) !== lastNews;
      if (!hasNews) await sleep(clock, waitMs, AbortSignal.any([wake.signal, stopped.signal]));
      await sleep(clock, SETTLE_MS, stopped.signal);
    }
  };
  void loop();

  return {
    changed: () => {
      if (newsOf(ports.document()) !== lastNews) wake.abort();
    },
    reportNow: async () => {
      await send();
    },
    stop: () => stopped.abort(),
  };
};
