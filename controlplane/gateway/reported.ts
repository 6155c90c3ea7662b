// How each wire says what an answer cost, which model gave it, and that it is over: from lines of a stream and from whole
// bodies. Pure. It must not know how bytes arrive. Source: 20-control-plane §5, FC1, FC4, FC7.
import { tokenCountOf } from '#base/model/token-count.ts';
import { membersOf, textAt } from './json-span.ts';
import type { ReportedUsage } from './meter.ts';

/** What one event or one body says. */
export type Said = Readonly<{
  isEnd?: boolean;
  isError?: boolean;
  servedModel?: string | undefined;
  /** `invalid`: it is no number of tokens that a call can have; then nothing that was reported counts. */
  usage?: Partial<ReportedUsage> | 'invalid' | undefined;
}>;

/** Reads one wire. `event`: the name of the event, where the wire has names; `isKnown`: the served model was seen. */
export type ReadReported = Readonly<{
  /** One data line, without `data:`. */
  line: (data: Buffer, event: string, isKnown: boolean) => Said | undefined;
  /** What the name of an event alone says, also for data that is too long to be looked into. */
  named: (event: string) => Said | undefined;
  /** One whole body; `isEnd` when it is one JSON object. */
  body: (body: Buffer) => Said;
}>;

const NOTHING: Said = {};

/** What a field says; an absent one is 0, and one that cannot be is NaN. Units: tokens. */
const count = (value: unknown): number => tokenCountOf(value ?? 0) ?? Number.NaN;

const checked = <U extends Partial<ReportedUsage>>(usage: U): U | 'invalid' =>
  Object.values(usage).some(Number.isNaN) ? 'invalid' : usage;

type Fields = Readonly<Record<string, unknown>>;

const fieldsOf = (bytes: Uint8Array | undefined): Fields | undefined => {
  if (bytes === undefined || bytes.length > 65_536) return undefined;
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8'));
    return typeof value === 'object' && value !== null ? (value as Fields) : undefined;
  } catch {
    return undefined;
  }
};

const modelOf = (bytes: Uint8Array | undefined): string | undefined =>
  bytes === undefined
    ? undefined
    : textAt(bytes, 0, bytes.length)
        ?.replace(/[^\x20-\x7e]/g, '')
        .slice(0, 256);

const inner = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {});

/** Reads usage as OpenAI writes it; its two APIs name the sides differently. */
const usageNamed =
  (input: string, output: string) =>
  (bytes: Uint8Array | undefined): Said['usage'] => {
    const usage = fieldsOf(bytes);
    return (
      usage &&
      checked({
        promptTokens: count(usage[`${input}_tokens`]),
        cachedTokens: count(inner(usage[`${input}_tokens_details`])['cached_tokens']),
        completionTokens: count(usage[`${output}_tokens`]),
      })
    );
  };
const chatUsage = usageNamed('prompt', 'completion');
const responsesUsage = usageNamed('input', 'output');

/** Anthropic counts what came from the cache, or went into it, apart from the rest of the input. */
const messagesUsage = (bytes: Uint8Array | undefined): Said['usage'] => {
  const usage = fieldsOf(bytes);
  if (usage === undefined) return undefined;
  const cachedTokens = count(usage['cache_read_input_tokens']);
  const output = usage['output_tokens'] === undefined ? {} : { completionTokens: count(usage['output_tokens']) };
  if (usage['input_tokens'] === undefined || usage['input_tokens'] === null) return checked(output);
  const promptTokens = count(usage['input_tokens']) + cachedTokens + count(usage['cache_creation_input_tokens']);
  return checked({ promptTokens, cachedTokens, ...output });
};

const isValue = (bytes: Uint8Array | undefined): boolean => bytes !== undefined && bytes[0] !== 0x6e;

const FINISHED = /"finish_reason"\s*:\s*"/;
const USAGE = /"usage"\s*:\s*\{/;
const ERROR = /^\s*\{\s*"error"\s*:\s*[^n\s]/;
const DONE = '[DONE]';

/** OpenAI's chat completions; embeddings have the same body. */
export const chatReported: ReadReported = {
  line: (data, _event, isKnown) => {
    const text = data.toString('latin1').trim();
    if (text === DONE) return { isEnd: true };
    const hasUsage = USAGE.test(text);
    const isEnd = FINISHED.test(text);
    const isError = ERROR.test(text);
    if (isKnown && !hasUsage) return isEnd || isError ? { isEnd, isError } : undefined;
    const members = membersOf(data, ['model', 'usage']);
    return { isEnd, isError, servedModel: modelOf(members.get('model')), usage: chatUsage(members.get('usage')) };
  },
  named: () => undefined,
  body: (body) => {
    const members = membersOf(body, ['model', 'usage', 'error']);
    return {
      isEnd: members.isWhole,
      isError: isValue(members.get('error')),
      servedModel: modelOf(members.get('model')),
      usage: chatUsage(members.get('usage')),
    };
  },
};

const RESPONSE_ENDS: Readonly<Record<string, Said>> = {
  'response.completed': { isEnd: true },
  'response.incomplete': { isEnd: true },
  'response.failed': { isEnd: true, isError: true },
  error: { isError: true },
};

/** OpenAI's responses. */
export const responsesReported: ReadReported = {
  line: (data, event, isKnown) => {
    const isOver = Object.hasOwn(RESPONSE_ENDS, event);
    if (event !== '' && isKnown && !isOver) return undefined;
    const members = membersOf(data, ['type', 'response']);
    const type = members.get('type');
    const name = event === '' && type !== undefined ? (textAt(type, 0, type.length) ?? '') : event;
    const response = members.get('response');
    const parts = response === undefined ? undefined : membersOf(response, ['model', 'usage']);
    return {
      ...(RESPONSE_ENDS[name] ?? NOTHING),
      servedModel: modelOf(parts?.get('model')),
      usage: responsesUsage(parts?.get('usage')),
    };
  },
  named: (event) => RESPONSE_ENDS[event],
  body: (body) => {
    const members = membersOf(body, ['model', 'usage', 'error']);
    return {
      isEnd: members.isWhole,
      isError: isValue(members.get('error')),
      servedModel: modelOf(members.get('model')),
      usage: responsesUsage(members.get('usage')),
    };
  },
};

/** Anthropic's messages. */
export const messagesReported: ReadReported = {
  line: (data, event) => {
    if (event === 'message_start') {
      const message = membersOf(data, ['message']).get('message');
      const parts = message === undefined ? undefined : membersOf(message, ['model', 'usage']);
      return { servedModel: modelOf(parts?.get('model')), usage: messagesUsage(parts?.get('usage')) };
    }
    return event === 'message_delta' ? { usage: messagesUsage(membersOf(data, ['usage']).get('usage')) } : undefined;
  },
  named: (event) => (event === 'message_stop' ? { isEnd: true } : event === 'error' ? { isError: true } : undefined),
  body: (body) => {
    const members = membersOf(body, ['type', 'model', 'usage', 'error']);
    return {
      isEnd: members.isWhole,
      isError: isValue(members.get('error')),
      servedModel: modelOf(members.get('model')),
      usage: messagesUsage(members.get('usage')),
    };
  },
};
