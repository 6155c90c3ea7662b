// The conversation folded from the event log: messages and their parts as they stand after some events. Pure; for clients too.
// Must not know SQL or harnesses. Source: A125, A139, A140, A152.

/** One event as far as the fold needs it. `data` is whole, never a reference to a blob. */
export type FoldedEvent = Readonly<{
  seq: number;
  type: string;
  thread_id: string;
  turn_id: string | null;
  hidden: boolean;
  data: Readonly<Record<string, unknown>>;
}>;

/** One message. `data`: as the event has it. */
export type FoldedMessage = Readonly<{
  id: string;
  threadId: string;
  ordinal: number;
  turnId: string | null;
  hidden: boolean;
  data: Readonly<Record<string, unknown>>;
}>;

/** One part of a message. */
export type FoldedPart = Readonly<{
  messageId: string;
  id: string;
  ordinal: number;
  hidden: boolean;
  callId: string | null;
  data: Readonly<Record<string, unknown>>;
}>;

/** What the events of a chunk refer to and what is stored of it. */
export type FoldState = Readonly<{
  messages: ReadonlyMap<string, FoldedMessage>;
  /** By message and part id, see partKey. */
  parts: ReadonlyMap<string, FoldedPart>;
  revertedFrom: string | null;
}>;

/** What changed; `removed...` hold ids that must go, the others hold what must be stored as it is. */
export type FoldResult = Readonly<{
  messages: readonly FoldedMessage[];
  parts: readonly FoldedPart[];
  removedMessages: readonly string[];
  removedParts: readonly Readonly<{ messageId: string; id: string }>[];
  revertedFrom: string | null;
}>;

/** Types that the fold reads. */
export const FOLDED_TYPES = [
  'message.updated',
  'message.removed',
  'message.part.updated',
  'message.part.removed',
  'message.part.delta',
  'tool.terminal',
  'effect.uncertain',
  'session.reverted',
  'session.unreverted',
  'session.forked',
  'turn.started',
] as const;

type Fields = Readonly<Record<string, unknown>>;

const MAX_ID = 128;

const fieldsOf = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {});
const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
/** An id that a table can hold; what a sandbox makes up beyond that is no id. */
const idOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' && value.length <= MAX_ID && !value.includes('\u0000') ? value : undefined;

/** Key of a part in FoldState. */
export const partKey = (messageId: string, id: string): string => `${messageId} ${id}`;

/** Longest text that deltas make of a part; the end of the part brings the whole. Units: UTF-16 units. */
const MAX_GROWN_TEXT = 1_048_576;

/** Ids that a chunk refers to: what must be loaded before it is folded. */
export const referencesOf = (
  events: readonly FoldedEvent[],
): Readonly<{
  messageIds: readonly string[];
  partKeys: readonly (readonly [string, string])[];
  callIds: readonly string[];
}> => {
  const messageIds = new Set<string>();
  const partKeys = new Map<string, readonly [string, string]>();
  const callIds = new Set<string>();
  for (const { data } of events) {
    const part = fieldsOf(data['part']);
    const messageId = idOf(fieldsOf(data['message'])['id']) ?? idOf(part['messageId']) ?? idOf(data['messageId']);
    const partId = idOf(part['id']) ?? idOf(data['partId']);
    const callId = idOf(data['callId']);
    if (messageId !== undefined) messageIds.add(messageId);
    if (messageId !== undefined && partId !== undefined) partKeys.set(partKey(messageId, partId), [messageId, partId]);
    if (callId !== undefined) callIds.add(callId);
  }
  return { messageIds: [...messageIds], partKeys: [...partKeys.values()], callIds: [...callIds] };
};

/** The state of a call that was ended from outside: a call at rest always has a result. Source: A152. */
const closedState = (state: Fields, error: string): Fields =>
  state['status'] === 'pending' || state['status'] === 'running' ? { ...state, status: 'error', error } : state;

/** Folds a chunk without `session.forked`, which moves more than a chunk refers to. */
export const foldTranscript = (before: FoldState, events: readonly FoldedEvent[]): FoldResult => {
  const messages = new Map(before.messages);
  const parts = new Map(before.parts);
  const changedMessages = new Set<string>();
  const changedParts = new Set<string>();
  const removedMessages = new Set<string>();
  const removedParts = new Map<string, Readonly<{ messageId: string; id: string }>>();
  let { revertedFrom } = before;

  const setMessage = (message: FoldedMessage): void => {
    messages.set(message.id, message);
    changedMessages.add(message.id);
    removedMessages.delete(message.id);
  };
  const setPart = (part: FoldedPart): void => {
    const key = partKey(part.messageId, part.id);
    parts.set(key, part);
    changedParts.add(key);
    removedParts.delete(key);
  };
  /** A part may be told before its message: the message is there from its first sign on. */
  const ensureMessage = (id: string, event: FoldedEvent): void => {
    if (messages.has(id)) return;
    const { thread_id: threadId, turn_id: turnId, hidden, seq: ordinal } = event;
    setMessage({ id, threadId, ordinal, turnId, hidden, data: { id, role: 'assistant' } });
  };

  const onMessage = (event: FoldedEvent): void => {
    const data = fieldsOf(event.data['message']);
    const id = idOf(data['id']);
    if (id === undefined) return;
    const known = messages.get(id);
    const { thread_id: threadId, turn_id: turnId, hidden, seq } = event;
    setMessage({ id, threadId, ordinal: known?.ordinal ?? seq, turnId: known?.turnId ?? turnId, hidden, data });
  };

  const onPart = (event: FoldedEvent): void => {
    const data = fieldsOf(event.data['part']);
    const messageId = idOf(data['messageId']);
    const id = idOf(data['id']);
    if (messageId === undefined || id === undefined) return;
    ensureMessage(messageId, event);
    const known = parts.get(partKey(messageId, id));
    const callId = idOf(data['callId']) ?? null;
    setPart({ messageId, id, ordinal: known?.ordinal ?? event.seq, hidden: event.hidden, callId, data });
  };

  const onDelta = (event: FoldedEvent): void => {
    const messageId = idOf(event.data['messageId']);
    const id = idOf(event.data['partId']);
    const field = textOf(event.data['field']);
    const delta = textOf(event.data['delta']);
    if (messageId === undefined || id === undefined || field !== 'text' || delta === undefined) return;
    ensureMessage(messageId, event);
    const known = parts.get(partKey(messageId, id));
    const { hidden, seq: ordinal } = event;
    const part = known ?? { messageId, id, ordinal, hidden, callId: null, data: { id, messageId, type: 'text' } };
    const text = ((textOf(part.data['text']) ?? '') + delta).slice(0, MAX_GROWN_TEXT);
    setPart({ ...part, data: { ...part.data, text } });
  };

  const onTerminal = ({ type, data }: FoldedEvent): void => {
    const callId = idOf(data['callId']);
    const part = callId === undefined ? undefined : [...parts.values()].find((each) => each.callId === callId);
    if (part === undefined) return;
    const isUncertain = type === 'effect.uncertain';
    if (!isUncertain && data['outcome'] === 'completed') return;
    const error = isUncertain ? 'the sandbox was lost while this ran; it may have had its effect' : 'aborted';
    const state = closedState(fieldsOf(part.data['state']), error);
    setPart({ ...part, data: { ...part.data, state } });
  };

  const removeMessage = (id: string): void => {
    messages.delete(id);
    changedMessages.delete(id);
    removedMessages.add(id);
    for (const [key, part] of parts) {
      if (part.messageId !== id) continue;
      parts.delete(key);
      changedParts.delete(key);
    }
  };

  for (const event of events) {
    const { type, data } = event;
    if (type === 'message.updated') onMessage(event);
    else if (type === 'message.part.updated') onPart(event);
    else if (type === 'message.part.delta') onDelta(event);
    else if (type === 'tool.terminal' || type === 'effect.uncertain') onTerminal(event);
    else if (type === 'message.removed') removeMessage(idOf(data['messageId']) ?? '');
    else if (type === 'session.reverted') revertedFrom = idOf(data['messageId']) ?? null;
    else if (type === 'session.unreverted' || type === 'turn.started') revertedFrom = null;
    else if (type === 'message.part.removed') {
      const messageId = idOf(data['messageId']) ?? '';
      const id = idOf(data['partId']) ?? '';
      const key = partKey(messageId, id);
      parts.delete(key);
      changedParts.delete(key);
      removedParts.set(key, { messageId, id });
    }
  }
  return {
    messages: [...changedMessages].flatMap((id) => messages.get(id) ?? []),
    parts: [...changedParts].flatMap((key) => parts.get(key) ?? []),
    removedMessages: [...removedMessages],
    removedParts: [...removedParts.values()],
    revertedFrom,
  };
};

/** The visible text of a part, for search; undefined when people do not see it as text. Source: 20-control-plane §8. */
export const visibleTextOf = ({ hidden, data }: FoldedPart): string | undefined =>
  !hidden && data['type'] === 'text' && data['synthetic'] !== true ? textOf(data['text']) : undefined;
