// Which calls of a turn have no end, from the events about them. Pure. Must not know where events are kept.
// Source: A155, J12.

/** A call without its end. */
export type OpenCall = Readonly<{ callId: string; tool: string; status: 'pending' | 'running'; threadId: string }>;

type Fields = Readonly<Record<string, unknown>>;
const fieldsOf = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {});

/** Calls whose last event leaves them pending or running, in the order in which they began. */
export const openCallsOf = (
  events: readonly Readonly<{ type: string; thread_id: string; data: Fields }>[],
): readonly OpenCall[] => {
  const open = new Map<string, OpenCall>();
  for (const { type, thread_id: threadId, data } of events) {
    const part = fieldsOf(data['part']);
    const callId = type === 'tool.terminal' ? data['callId'] : part['callId'];
    if (typeof callId !== 'string' || callId === '') continue;
    const { status } = fieldsOf(part['state']);
    if (type === 'message.part.updated' && (status === 'pending' || status === 'running')) {
      const tool = typeof part['tool'] === 'string' ? part['tool'] : 'unknown';
      open.set(callId, { callId, tool, status, threadId });
    } else {
      open.delete(callId);
    }
  }
  return [...open.values()];
};
