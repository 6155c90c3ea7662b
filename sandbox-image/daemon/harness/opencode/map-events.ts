// OpenCode's event frames in the product's words. Pure: what comes out depends on what came in, and on nothing else.
// Must not know sockets, turns or the host. Source: harness-runtimes §2.4, §5, A139 to A141.
import { type EventData, type MessagePart, messagePart } from '#schema/events/envelope.ts';
import type { HumanRequest } from '../contract/adapter.ts';
import { type HarnessEvent, ROOT_THREAD } from '../contract/events.ts';
import type { TurnError } from '../contract/turn-error.ts';
import { PROVIDER_ID } from './config-files.ts';
import { turnErrorOf } from './turn-error.ts';

/** One frame of `/global/event` without its envelope. */
export type Frame = Readonly<{ type: string; properties: Readonly<Record<string, unknown>> }>;

/** What a frame means. `busy` to `error` are about the root session and end or go on with a turn. */
export type Effect =
  | Readonly<{ kind: 'emit'; event: HarnessEvent }>
  | Readonly<{ kind: 'ask'; request: HumanRequest }>
  | Readonly<{ kind: 'busy' }>
  | Readonly<{ kind: 'idle' }>
  | Readonly<{ kind: 'error'; error: TurnError }>
  | Readonly<{ kind: 'message'; role: 'user' | 'assistant'; id: string; error: TurnError | undefined }>;

/** Turns frames into effects. It remembers what it said, so that the same news is told once. */
export type EventMapper = Readonly<{
  map: (frame: Frame) => readonly Effect[];
  /** A stored message with its parts, read again after a gap. */
  mapStored: (stored: Readonly<{ info: unknown; parts: readonly unknown[] }>) => readonly Effect[];
  /** A subagent's session that existed before. */
  addChild: (sessionId: string) => void;
  /** Calls of the root session that have no end yet. */
  openCalls: () => number;
}>;

type Fields = Readonly<Record<string, unknown>>;

const MAX_RUNNING_OUTPUT = 4_096;
const MAX_REMEMBERED = 2_000;
const MAX_DATA_URL = 65_536;

const fieldsOf = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {});
const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
const timeOf = (value: unknown): string | undefined =>
  typeof value === 'number' && Number.isFinite(value) ? new Date(value).toISOString() : undefined;

/** Leaves out what is absent: the log takes no undefined. */
const present = (fields: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

const modelOf = (info: Fields): string | undefined => {
  const model = fieldsOf(info['model']);
  const provider = textOf(info['providerID']) ?? textOf(model['providerID']);
  const id = textOf(info['modelID']) ?? textOf(model['modelID']);
  if (id === undefined) return undefined;
  return provider === undefined || provider === PROVIDER_ID ? id : `${provider}/${id}`;
};

const messageOf = (info: Fields): EventData<'message.updated'>['message'] | undefined => {
  const id = textOf(info['id']);
  const role = info['role'];
  if (id === undefined || (role !== 'user' && role !== 'assistant')) return undefined;
  const time = fieldsOf(info['time']);
  return {
    id,
    role,
    ...present({
      parentId: textOf(info['parentID']),
      agent: textOf(info['agent']),
      model: modelOf(info),
      tokens: info['tokens'],
      cost: info['cost'],
      finish: textOf(info['finish']),
      summary: info['summary'] === true ? true : undefined,
      createdAt: timeOf(time['created']),
      completedAt: timeOf(time['completed']),
      error: turnErrorOf(info['error']),
    }),
  };
};

const STATUSES = ['pending', 'running', 'completed', 'error'] as const;

const stateOf = (value: unknown): NonNullable<MessagePart['state']> => {
  const state = fieldsOf(value);
  const status = STATUSES.find((known) => known === state['status']) ?? 'pending';
  const { output: growing, ...metadata } = fieldsOf(state['metadata']);
  const running =
    status === 'running' && typeof growing === 'string' ? { output: growing.slice(-MAX_RUNNING_OUTPUT) } : {};
  const all = { ...metadata, ...running };
  const time = fieldsOf(state['time']);
  return present({
    status,
    input: state['input'],
    output: textOf(state['output']),
    title: textOf(state['title']),
    error: textOf(state['error']),
    metadata: Object.keys(all).length === 0 ? undefined : all,
    startedAt: timeOf(time['start']),
    endedAt: timeOf(time['end']),
  }) as NonNullable<MessagePart['state']>;
};

/** What each other kind of part says, besides id and kind. */
const detailsOf = (part: Fields): Record<string, unknown> => {
  const time = fieldsOf(part['time']);
  switch (part['type']) {
    case 'text':
    case 'reasoning':
      return {
        text: textOf(part['text']) ?? '',
        synthetic: part['synthetic'] === true ? true : undefined,
        startedAt: timeOf(time['start']),
        endedAt: timeOf(time['end']),
      };
    case 'tool':
      return { tool: textOf(part['tool']), callId: textOf(part['callID']), state: stateOf(part['state']) };
    case 'step-finish':
      return { reason: part['reason'], tokens: part['tokens'], cost: part['cost'] };
    case 'file': {
      const url = textOf(part['url']);
      const kept = url !== undefined && !(url.startsWith('data:') && url.length > MAX_DATA_URL) ? url : undefined;
      return { mime: part['mime'], filename: part['filename'], url: kept };
    }
    case 'agent':
      return { name: part['name'] };
    case 'retry':
      return { attempt: part['attempt'], error: turnErrorOf(part['error']) };
    case 'compaction':
      return { auto: part['auto'] === true, overflow: part['overflow'] };
    case 'patch':
      return { hash: part['hash'], files: part['files'] };
    case 'subtask':
      return { agent: part['agent'], description: part['description'], text: textOf(part['prompt']) };
    default:
      return {};
  }
};

const PART_TYPES: ReadonlySet<string> = new Set(messagePart.shape.type.options);

const partOf = (part: Fields): MessagePart | undefined => {
  const id = textOf(part['id']);
  const messageId = textOf(part['messageID']);
  const type = textOf(part['type']);
  if (id === undefined || messageId === undefined || type === undefined || !PART_TYPES.has(type)) return undefined;
  return { id, messageId, type: type as MessagePart['type'], ...present(detailsOf(part)) };
};

const isAbortedCall = (state: NonNullable<MessagePart['state']>): boolean =>
  state.error === 'Tool execution aborted' || (state.output ?? '').includes('User aborted the command');

/** 32 bit FNV-1a with the length: enough to see whether the same thing is said again. */
const digestOf = (text: string): string => {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return `${text.length}:${hash >>> 0}`;
};

/** A mapper for one root session. */
export const createEventMapper = (rootSessionId: string): EventMapper => {
  const threads = new Map([[rootSessionId, ROOT_THREAD]]);
  const said = new Map<string, string>();
  const ended = new Set<string>();
  const open = new Set<string>();
  let compactionWasAutomatic = true;

  const isNews = (id: string, value: unknown): boolean => {
    const digest = digestOf(JSON.stringify(value));
    if (said.get(id) === digest) return false;
    said.delete(id);
    said.set(id, digest);
    for (const oldest of said.keys()) {
      if (said.size <= MAX_REMEMBERED) break;
      said.delete(oldest);
    }
    return true;
  };

  const emit = (event: HarnessEvent): Effect => ({ kind: 'emit', event });

  const onMessage = (threadId: string, info: Fields): readonly Effect[] => {
    const message = messageOf(info);
    if (message === undefined || !isNews(message.id, message)) return [];
    const effects: Effect[] = [emit({ type: 'message.updated', threadId, data: { message } })];
    if (threadId === ROOT_THREAD) {
      effects.push({ kind: 'message', role: message.role, id: message.id, error: turnErrorOf(info['error']) });
    }
    return effects;
  };

  const onPart = (threadId: string, raw: Fields): readonly Effect[] => {
    const part = partOf(raw);
    if (part === undefined || !isNews(part.id, part)) return [];
    if (part.type === 'compaction') compactionWasAutomatic = part['auto'] === true;
    const effects: Effect[] = [emit({ type: 'message.part.updated', threadId, data: { part } })];
    const { callId, state, tool = 'unknown' } = part;
    if (part.type !== 'tool' || callId === undefined || state === undefined || ended.has(callId)) return effects;
    if (state.status === 'pending' || state.status === 'running') {
      if (threadId === ROOT_THREAD) open.add(callId);
      return effects;
    }
    open.delete(callId);
    ended.add(callId);
    const outcome = isAbortedCall(state) ? 'aborted' : state.status === 'error' ? 'error' : 'completed';
    effects.push(emit({ type: 'tool.terminal', threadId, data: { callId, tool, outcome } }));
    return effects;
  };

  const onStatus = (threadId: string, status: Fields): readonly Effect[] => {
    const isRoot = threadId === ROOT_THREAD;
    if (status['type'] === 'retry') {
      const attempt = typeof status['attempt'] === 'number' ? status['attempt'] : undefined;
      const data = {
        status: 'retry' as const,
        ...(attempt === undefined ? {} : { attempt }),
        ...present({ nextAt: timeOf(status['next']), message: textOf(status['message'])?.slice(0, 1_024) }),
      };
      return [emit({ type: 'session.status', threadId, data })];
    }
    if (status['type'] === 'busy') {
      if (isRoot) return [{ kind: 'busy' }];
      return isNews(`status of ${threadId}`, 'busy')
        ? [emit({ type: 'session.status', threadId, data: { status: 'busy' } })]
        : [];
    }
    if (isRoot || !isNews(`status of ${threadId}`, 'idle')) return [];
    return [emit({ type: 'session.status', threadId, data: { status: 'idle' } })];
  };

  const onAsked = (threadId: string, kind: HumanRequest['kind'], properties: Fields): readonly Effect[] => {
    const id = textOf(properties['id']);
    if (id === undefined) return [];
    const tool = fieldsOf(properties['tool']);
    const data = present({
      permission: properties['permission'],
      patterns: properties['patterns'],
      metadata: properties['metadata'],
      always: properties['always'],
      questions: properties['questions'],
      tool: tool['callID'] === undefined ? undefined : { messageId: tool['messageID'], callId: tool['callID'] },
    });
    return [{ kind: 'ask', request: { kind, id, threadId, data } }];
  };

  const onFrame = (threadId: string, { type, properties }: Frame): readonly Effect[] => {
    switch (type) {
      case 'message.updated':
        return onMessage(threadId, fieldsOf(properties['info']));
      case 'message.part.updated':
        return onPart(threadId, fieldsOf(properties['part']));
      case 'message.part.delta': {
        const messageId = textOf(properties['messageID']);
        const partId = textOf(properties['partID']);
        const field = textOf(properties['field']);
        const delta = textOf(properties['delta']);
        if (messageId === undefined || partId === undefined || field === undefined || delta === undefined) return [];
        return [emit({ type: 'message.part.delta', threadId, data: { messageId, partId, field, delta } })];
      }
      case 'message.removed': {
        const messageId = textOf(properties['messageID']);
        return messageId === undefined ? [] : [emit({ type: 'message.removed', threadId, data: { messageId } })];
      }
      case 'message.part.removed': {
        const messageId = textOf(properties['messageID']);
        const partId = textOf(properties['partID']);
        if (messageId === undefined || partId === undefined) return [];
        return [emit({ type: 'message.part.removed', threadId, data: { messageId, partId } })];
      }
      case 'session.status':
        return onStatus(threadId, fieldsOf(properties['status']));
      case 'session.idle':
        if (threadId === ROOT_THREAD) return [{ kind: 'idle' }];
        return [emit({ type: 'session.idle', threadId, data: {} })];
      case 'session.error': {
        const error = turnErrorOf(properties['error']);
        if (error === undefined) return [];
        return threadId === ROOT_THREAD
          ? [{ kind: 'error', error }]
          : [emit({ type: 'session.error', threadId, data: error })];
      }
      case 'session.compacted':
        return [emit({ type: 'session.compacted', threadId, data: { auto: compactionWasAutomatic } })];
      case 'todo.updated':
        return [emit({ type: 'todo.updated', threadId, data: { todos: properties['todos'] } })];
      case 'permission.asked':
        return onAsked(threadId, 'permission', properties);
      case 'question.asked':
        return onAsked(threadId, 'question', properties);
      default:
        return [];
    }
  };

  const sessionOf = (properties: Fields): string | undefined =>
    textOf(properties['sessionID']) ??
    textOf(fieldsOf(properties['info'])['sessionID']) ??
    textOf(fieldsOf(properties['part'])['sessionID']);

  return {
    map: (frame) => {
      if (frame.type === 'session.created') {
        const info = fieldsOf(frame.properties['info']);
        const id = textOf(info['id']);
        const parent = textOf(info['parentID']);
        if (id !== undefined && parent !== undefined && threads.has(parent)) threads.set(id, id);
        return [];
      }
      const threadId = threads.get(sessionOf(frame.properties) ?? '');
      return threadId === undefined ? [] : onFrame(threadId, frame);
    },
    mapStored: ({ info, parts }) => [
      ...onMessage(ROOT_THREAD, fieldsOf(info)),
      ...parts.flatMap((part) => onPart(ROOT_THREAD, fieldsOf(part))),
    ],
    addChild: (sessionId) => {
      threads.set(sessionId, sessionId);
    },
    openCalls: () => open.size,
  };
};
