// What ends the calls and requests that unsent events of a dead daemon opened: the control plane ended what it knew of, and
// these it did not know. Pure. Must not know where events are kept. Source: A121, A155, J12.
import type { DaemonEvent } from '#schema/events/envelope.ts';
import { openCallsOf } from '#schema/rules/open-calls.ts';

/** An event before it is numbered and dated. */
export type Closing = Pick<DaemonEvent, 'type' | 'threadId' | 'turnId' | 'data'>;

const ENDS_REQUEST: ReadonlySet<string> = new Set(['permission.replied', 'question.replied', 'question.rejected']);

const requestsOf = (events: readonly DaemonEvent[]): readonly Closing[] => {
  const open = new Map<string, Closing>();
  for (const { type, threadId, turnId, data } of events) {
    const { id } = data;
    if (typeof id !== 'string') continue;
    if (type === 'permission.asked') {
      open.set(id, { type: 'permission.replied', threadId, turnId, data: { id, reply: 'reject' } });
    } else if (type === 'question.asked') open.set(id, { type: 'question.rejected', threadId, turnId, data: { id } });
    else if (ENDS_REQUEST.has(type)) open.delete(id);
  }
  return [...open.values()];
};

/** Events that end what the given ones leave open; a call that ran may have had its effect. */
export const closingsOf = (events: readonly DaemonEvent[]): readonly Closing[] => {
  const calls = [...Map.groupBy(events, (event) => event.turnId)].flatMap(([turnId, own]) =>
    openCallsOf(own.map(({ type, threadId, data }) => ({ type, thread_id: threadId, data }))).flatMap(
      ({ callId, tool, status, threadId }): Closing[] => [
        ...(status === 'running' ? [{ type: 'effect.uncertain', threadId, turnId, data: { callId, tool } }] : []),
        { type: 'tool.terminal', threadId, turnId, data: { callId, tool, outcome: 'aborted' } },
      ],
    ),
  );
  return [...requestsOf(events), ...calls];
};
