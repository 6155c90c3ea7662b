// Open permission and question requests: announced, answered once, and "no" at the deadline or when the turn ends.
// Must not know harnesses or HTTP. Source: A119 to A123.
import type { Clock } from '#base/clock.ts';
import type { HumanAnswer, HumanRequest } from '#daemon/harness/contract/adapter.ts';
import type { TypedEvent } from '#schema/events/envelope.ts';

/** How long a request waits for a human. Units: milliseconds. Source: 20-control-plane §9. */
export const REQUEST_DEADLINE_MS = 120_000;

/** Ports of the broker. */
export type BrokerPorts = Readonly<{
  emit: (event: TypedEvent, threadId: string) => void;
  /** The number of open requests changed. */
  onChange: () => void;
  clock: Clock;
  deadlineMs?: number | undefined;
}>;

/** The open requests of this daemon. */
export type Broker = Readonly<{
  /** Resolves with the answer; never rejects. The same id twice shares one answer. */
  ask: (request: HumanRequest, signal: AbortSignal) => Promise<HumanAnswer>;
  /** Closes all with "no". */
  closeAll: () => void;
  openCount: () => number;
}>;

/** The "no" of a kind of request, with what a model may read. */
const refusal = (kind: HumanRequest['kind'], message: string | null): HumanAnswer =>
  kind === 'permission' ? { kind, reply: 'reject', message } : { kind, answers: null };

type Open = Readonly<{ answer: Promise<HumanAnswer>; close: (message: string | null) => void }>;

/** A broker. */
export const createBroker = (ports: BrokerPorts): Broker => {
  const { clock, emit } = ports;
  const deadlineMs = ports.deadlineMs ?? REQUEST_DEADLINE_MS;
  const open = new Map<string, Open>();

  const announce = (request: HumanRequest): void => {
    const data = { ...request.data, id: request.id, deadlineAt: new Date(clock.nowMs() + deadlineMs).toISOString() };
    emit({ type: request.kind === 'permission' ? 'permission.asked' : 'question.asked', data }, request.threadId);
  };

  const announceAnswer = ({ id, threadId }: HumanRequest, answer: HumanAnswer): void => {
    if (answer.kind === 'permission') emit({ type: 'permission.replied', data: { id, reply: answer.reply } }, threadId);
    else if (answer.answers === null) emit({ type: 'question.rejected', data: { id } }, threadId);
    else emit({ type: 'question.replied', data: { id, answers: answer.answers } }, threadId);
  };

  return {
    ask: (request, signal) => {
      const known = open.get(request.id);
      if (known !== undefined) return known.answer;
      const { promise, resolve } = Promise.withResolvers<HumanAnswer>();
      const close = (message: string | null): void => {
        if (!open.delete(request.id)) return;
        cancel();
        signal.removeEventListener('abort', onAbort);
        const answer = refusal(request.kind, message);
        announceAnswer(request, answer);
        resolve(answer);
        ports.onChange();
      };
      const onAbort = (): void => close(null);
      const cancel = clock.startTimer(deadlineMs, () => close('nobody answered in time; the call is denied'));
      open.set(request.id, { answer: promise, close });
      announce(request);
      ports.onChange();
      if (signal.aborted) close(null);
      else signal.addEventListener('abort', onAbort, { once: true });
      return promise;
    },
    closeAll: () => {
      for (const request of open.values()) request.close(null);
    },
    openCount: () => open.size,
  };
};
