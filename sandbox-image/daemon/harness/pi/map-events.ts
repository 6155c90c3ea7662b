// Pi's events in the product's words, the same families in the same order as the other harness's. Pure: what comes out
// depends on what came in, and on nothing else. Must not know threads of the process, turns or the host.
// Source: harness-runtimes §3.3, §5, A137, A139 to A141.
import type { EventData, MessagePart, TypedEvent } from '#schema/events/envelope.ts';
import type { HarnessEvent } from '../contract/events.ts';
import type { PiAssistant, PiContent, PiEvent, PiMessage, PiStep, PiToolResult, PiUsage } from './pi-events.ts';
import { turnErrorOf } from './turn-error.ts';

/** Who speaks in the messages that come next. `messageId`: id of the next user message. */
export type Speaker = Readonly<{ messageId: string; agent: string | null; model: string }>;

/** Turns events of one conversation into events of its thread. */
export type EventMapper = Readonly<{
  /** Names the speaker of what comes next. */
  begin: (speaker: Speaker) => void;
  map: (event: PiEvent, nowMs: number) => readonly HarnessEvent[];
  /** Message and part of a call, for a request to a human; undefined when it is not known. */
  messageOf: (callId: string) => string | undefined;
}>;

const MAX_RUNNING_OUTPUT = 4_096;

type State = NonNullable<MessagePart['state']>;
type Call = { partId: string; messageId: string; tool: string; state: State; open: boolean };
type Answer = {
  id: string;
  createdAt: string;
  parts: Map<number, Readonly<{ id: string; startedAt: string }>>;
  finish: PiAssistant | undefined;
  /** One of its calls was aborted. */
  aborted: boolean;
};

const iso = (timeMs: number): string => new Date(timeMs).toISOString();

const textOf = (content: string | readonly PiContent[]): string =>
  typeof content === 'string'
    ? content
    : content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n');

/** Leaves out what is absent: the log takes no undefined. */
const present = (fields: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

const tokensOf = (usage: PiUsage | undefined) => ({
  ...(usage === undefined || usage.totalTokens === 0 ? {} : { total: usage.totalTokens }),
  input: usage?.input ?? 0,
  output: usage?.output ?? 0,
  reasoning: usage?.reasoning ?? 0,
  cache: { read: usage?.cacheRead ?? 0, write: usage?.cacheWrite ?? 0 },
});

const FINISH: Readonly<Record<string, string>> = { stop: 'stop', toolUse: 'tool-calls', length: 'length' };
/** A compaction by hand that found nothing to leave out. */
const NOTHING_TO_DO = /nothing to compact|already compacted/i;
const FAILED: ReadonlySet<string> = new Set(['error', 'aborted']);

const fieldsOf = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};

/** A short name of what a call does: its command, path, pattern or description. */
const titleOf = (input: unknown): string => {
  const fields = fieldsOf(input);
  for (const name of ['description', 'command', 'path', 'pattern', 'query', 'url']) {
    const value = fields[name];
    if (typeof value === 'string' && value !== '') return value.slice(0, 200);
  }
  return '';
};

const isAborted = (text: string): boolean => text === 'Operation aborted' || text.endsWith('Command aborted');

/** Metadata of a result: its details, and the exit code of a command. */
const metadataOf = (result: PiToolResult): Record<string, unknown> => {
  const exit = fieldsOf(result.structuredContent)['exit_code'];
  return { ...fieldsOf(result.details), ...(typeof exit === 'number' ? { exit } : {}) };
};

/**
 * A mapper for one thread. `seed` makes its ids unlike those of every other mapper; ids sort by time within one mapper.
 */
export const createEventMapper = (threadId: string, seed: string): EventMapper => {
  const calls = new Map<string, Call>();
  let counter = 0;
  let speaker: Speaker = { messageId: '', agent: null, model: '' };
  let parentId = '';
  let answer: Answer | undefined;
  let compaction: Readonly<{ id: string; partId: string; parentId: string; createdAt: string }> | undefined;

  const newId = (prefix: string): string => {
    counter += 1;
    return `${prefix}_${seed}${counter.toString(36).padStart(5, '0')}`;
  };

  const event = <T extends TypedEvent['type']>(type: T, data: EventData<T>): HarnessEvent =>
    ({ type, threadId, data }) as unknown as HarnessEvent;

  const part = (messageId: string, id: string, fields: Record<string, unknown> & { type: MessagePart['type'] }) =>
    event('message.part.updated', { part: { id, messageId, ...present(fields) } as MessagePart });

  const assistantOf = (id: string, createdAt: string, more: Record<string, unknown>): HarnessEvent =>
    event('message.updated', {
      message: {
        id,
        role: 'assistant',
        ...present({ parentId, agent: speaker.agent ?? undefined, model: speaker.model, createdAt, ...more }),
      },
    });

  const onUser = (message: Extract<PiMessage, { role: 'user' }>): readonly HarnessEvent[] => {
    const id = speaker.messageId === '' ? newId('msg') : speaker.messageId;
    speaker = { ...speaker, messageId: '' };
    parentId = id;
    return [
      event('message.updated', {
        message: {
          id,
          role: 'user',
          ...present({ agent: speaker.agent ?? undefined, model: speaker.model, createdAt: iso(message.timestamp) }),
        },
      }),
      part(id, newId('prt'), { type: 'text', text: textOf(message.content) }),
    ];
  };

  const onAssistant = (message: PiAssistant, nowMs: number): readonly HarnessEvent[] => {
    // After an abort of its tools Pi asks the model once more, in vain: nothing to show.
    if (message.stopReason === 'aborted' && message.content.length === 0) return [];
    const id = newId('msg');
    answer = { id, createdAt: iso(nowMs), parts: new Map(), finish: undefined, aborted: false };
    const started = assistantOf(id, answer.createdAt, { tokens: tokensOf(undefined), cost: 0 });
    return FAILED.has(message.stopReason) ? [started] : [started, part(id, newId('prt'), { type: 'step-start' })];
  };

  /** The call of a block, told as pending the first time that it has an id. */
  const onCall = (current: Answer, block: PiContent | undefined): readonly HarnessEvent[] => {
    if (block?.type !== 'toolCall' || block.id === '' || block.name === '' || calls.has(block.id)) return [];
    const state: State = { status: 'pending', input: {} };
    const call: Call = { partId: newId('prt'), messageId: current.id, tool: block.name, state, open: true };
    calls.set(block.id, call);
    return [part(current.id, call.partId, { type: 'tool', tool: call.tool, callId: block.id, state })];
  };

  const onStep = (message: PiMessage, step: PiStep, nowMs: number): readonly HarnessEvent[] => {
    const { contentIndex: index, type } = step;
    if (answer === undefined || index === undefined || message.role !== 'assistant') return [];
    const [kind, phase] = type.split('_');
    if (kind === 'toolcall') return onCall(answer, message.content[index]);
    if (kind !== 'text' && kind !== 'thinking') return [];
    const partType = kind === 'text' ? 'text' : 'reasoning';
    if (phase === 'start') {
      const opened = { id: newId('prt'), startedAt: iso(nowMs) };
      answer.parts.set(index, opened);
      return [part(answer.id, opened.id, { type: partType, text: '', startedAt: opened.startedAt })];
    }
    const opened = answer.parts.get(index);
    if (opened === undefined) return [];
    if (phase === 'delta') {
      const data = { messageId: answer.id, partId: opened.id, field: 'text', delta: step.delta ?? '' };
      return [event('message.part.delta', data)];
    }
    answer.parts.delete(index);
    const ended = { text: step.content ?? '', startedAt: opened.startedAt, endedAt: iso(nowMs) };
    return [part(answer.id, opened.id, { type: partType, ...ended })];
  };

  /** Ends the texts that a cut stream left open. */
  const closeTexts = (current: Answer, message: PiAssistant, nowMs: number): readonly HarnessEvent[] => {
    const left = [...current.parts].flatMap(([index, opened]) => {
      const block = message.content[index];
      if (block?.type !== 'text' && block?.type !== 'thinking') return [];
      const [type, text] =
        block.type === 'text' ? ['text' as const, block.text] : ['reasoning' as const, block.thinking];
      return [part(current.id, opened.id, { type, text, startedAt: opened.startedAt, endedAt: iso(nowMs) })];
    });
    current.parts.clear();
    return left;
  };

  const toolPart = (callId: string, call: Call): HarnessEvent =>
    part(call.messageId, call.partId, { type: 'tool', tool: call.tool, callId, state: call.state });

  const end = (callId: string, call: Call, outcome: 'completed' | 'error' | 'aborted'): readonly HarnessEvent[] => {
    call.open = false;
    return [toolPart(callId, call), event('tool.terminal', { callId, tool: call.tool, outcome })];
  };

  const onCallEnd = (
    callId: string,
    result: PiToolResult,
    isError: boolean,
    nowMs: number,
  ): readonly HarnessEvent[] => {
    const call = calls.get(callId);
    if (call === undefined || !call.open) return [];
    const text = textOf(result.content);
    const metadata = metadataOf(result);
    // A command that ran to its end has an output, whatever its exit code says.
    const failed = isError && metadata['exit'] === undefined;
    const aborted = failed && isAborted(text);
    if (aborted && answer?.id === call.messageId) answer.aborted = true;
    call.state = present({
      status: failed ? 'error' : 'completed',
      input: call.state.input,
      ...(failed ? { error: text } : { output: text, title: titleOf(call.state.input) }),
      metadata: Object.keys(metadata).length === 0 ? undefined : metadata,
      startedAt: call.state.startedAt ?? iso(nowMs),
      endedAt: iso(nowMs),
    }) as State;
    return end(callId, call, aborted ? 'aborted' : failed ? 'error' : 'completed');
  };

  const onTurnEnd = (nowMs: number): readonly HarnessEvent[] => {
    const current = answer;
    const finish = current?.finish;
    if (current === undefined || finish === undefined) return [];
    answer = undefined;
    const events: HarnessEvent[] = [];
    for (const [callId, call] of calls) {
      if (!call.open || call.messageId !== current.id) continue;
      call.state = { ...call.state, status: 'error', error: 'the call was not run', endedAt: iso(nowMs) };
      events.push(...end(callId, call, 'aborted'));
    }
    calls.clear();
    const numbers = { tokens: tokensOf(finish.usage), cost: finish.usage.cost.total };
    const createdAt = current.createdAt;
    if (current.aborted || FAILED.has(finish.stopReason)) {
      const found = turnErrorOf(finish.errorMessage);
      const isAbort = current.aborted || finish.stopReason === 'aborted';
      const error = isAbort ? { code: 'aborted' as const, message: 'Aborted' } : found;
      // An overflow is mended by a compaction, or told as the error of the turn. Source: A136.
      const shown = error.code === 'context_length' ? undefined : error;
      events.push(assistantOf(current.id, createdAt, { ...numbers, completedAt: iso(nowMs), error: shown }));
      return events;
    }
    const reason = FINISH[finish.stopReason] ?? finish.stopReason;
    events.push(
      part(current.id, newId('prt'), { type: 'step-finish', reason, ...numbers }),
      assistantOf(current.id, createdAt, { ...numbers, finish: reason, completedAt: iso(nowMs) }),
    );
    return events;
  };

  const summaryOf = (open: NonNullable<typeof compaction>, more: Record<string, unknown>): HarnessEvent =>
    event('message.updated', {
      message: {
        id: open.id,
        role: 'assistant',
        summary: true,
        ...present({
          parentId: open.parentId,
          agent: 'compaction',
          model: speaker.model,
          createdAt: open.createdAt,
          ...more,
        }),
      },
    });

  const onCompaction = (
    piEvent: Extract<PiEvent, { type: 'compaction_start' }>,
    nowMs: number,
  ): readonly HarnessEvent[] => {
    const askId = newId('msg');
    const createdAt = iso(nowMs);
    compaction = { id: newId('msg'), partId: newId('prt'), parentId: askId, createdAt };
    const auto = piEvent.reason !== 'manual';
    const overflow = piEvent.reason === 'overflow' ? true : undefined;
    return [
      event('message.updated', {
        message: {
          id: askId,
          role: 'user',
          ...present({ agent: speaker.agent ?? undefined, model: speaker.model, createdAt }),
        },
      }),
      part(askId, newId('prt'), { type: 'compaction', auto, overflow }),
      summaryOf(compaction, { tokens: tokensOf(undefined), cost: 0 }),
      part(compaction.id, newId('prt'), { type: 'step-start' }),
    ];
  };

  const onCompacted = (
    piEvent: Extract<PiEvent, { type: 'compaction_end' }>,
    nowMs: number,
  ): readonly HarnessEvent[] => {
    const open = compaction;
    compaction = undefined;
    if (open === undefined) return [];
    const { result } = piEvent;
    const numbers = { tokens: tokensOf(result?.usage), cost: result?.usage?.cost.total ?? 0 };
    const completedAt = iso(nowMs);
    if (result === undefined && NOTHING_TO_DO.test(piEvent.errorMessage ?? '')) {
      return [event('message.removed', { messageId: open.id }), event('message.removed', { messageId: open.parentId })];
    }
    if (result === undefined) {
      const error = piEvent.aborted ? { code: 'aborted', message: 'Aborted' } : turnErrorOf(piEvent.errorMessage);
      return [summaryOf(open, { ...numbers, completedAt, error })];
    }
    const text = { text: result.summary, startedAt: open.createdAt, endedAt: completedAt };
    return [
      part(open.id, open.partId, { type: 'text', ...text }),
      part(open.id, newId('prt'), { type: 'step-finish', reason: 'stop', ...numbers }),
      summaryOf(open, { ...numbers, finish: 'stop', completedAt }),
      event('session.compacted', { auto: piEvent.reason !== 'manual' }),
    ];
  };

  const running = (callId: string, change: Partial<State>): readonly HarnessEvent[] => {
    const call = calls.get(callId);
    if (call === undefined || !call.open) return [];
    call.state = { ...call.state, ...change, status: 'running' };
    return [toolPart(callId, call)];
  };

  const map = (piEvent: PiEvent, nowMs: number): readonly HarnessEvent[] => {
    switch (piEvent.type) {
      case 'message_start':
        if (piEvent.message.role === 'user') return onUser(piEvent.message);
        return piEvent.message.role === 'assistant' ? onAssistant(piEvent.message, nowMs) : [];
      case 'message_update':
        return onStep(piEvent.message, piEvent.assistantMessageEvent, nowMs);
      case 'message_end': {
        const { message } = piEvent;
        const current = answer;
        if (message.role !== 'assistant' || current === undefined) return [];
        current.finish = message;
        const late = message.content.flatMap((block) => onCall(current, block));
        return [...closeTexts(current, message, nowMs), ...late];
      }
      case 'tool_execution_start':
        return running(piEvent.toolCallId, { input: piEvent.args, startedAt: iso(nowMs) });
      case 'tool_execution_update': {
        const { content, details } = piEvent.partialResult;
        const output = textOf(content).slice(-MAX_RUNNING_OUTPUT);
        return running(piEvent.toolCallId, { metadata: { ...fieldsOf(details), output } });
      }
      case 'tool_execution_end':
        return onCallEnd(piEvent.toolCallId, piEvent.result, piEvent.isError, nowMs);
      case 'turn_end':
        return onTurnEnd(nowMs);
      case 'compaction_start':
        return onCompaction(piEvent, nowMs);
      case 'compaction_end':
        return onCompacted(piEvent, nowMs);
      default:
        return [];
    }
  };

  return {
    begin: (next) => {
      speaker = next;
    },
    map,
    messageOf: (callId) => calls.get(callId)?.messageId,
  };
};
