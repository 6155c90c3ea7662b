// Says in the session that a model call failed and is made again, as OpenCode says it of its own calls. Must not know sockets.
import type { Clock } from '#base/clock.ts';
import { ROOT_THREAD } from '../harness/contract/events.ts';
import type { EventLog } from './event-log/event-log.ts';
import type { Relay } from './relay/relay.ts';

/** What it needs. */
export type RetryTelling = Readonly<{
  relay: Pick<Relay, 'retryCalls'>;
  emit: EventLog['emit'];
  turnId: () => string | null;
  clock: Clock;
}>;

/** Lets the relay make failed calls again for a harness that asks for it, and tells each wait. Source: A79, A141. */
export const tellRetries = ({ relay, emit, turnId, clock }: RetryTelling): void => {
  const place = () => ({ threadId: ROOT_THREAD, turnId: turnId() });
  relay.retryCalls({
    clock,
    onWait: ({ tries, waitMs, message }) => {
      const nextAt = new Date(clock.nowMs() + waitMs).toISOString();
      emit({ type: 'session.status', data: { status: 'retry', attempt: tries, nextAt, message } }, place());
    },
    onAnswer: () => emit({ type: 'session.status', data: { status: 'busy' } }, place()),
  });
};
