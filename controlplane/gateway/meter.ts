// Counts tokens of an answer from a bounded copy of it, and sees whether a stream ended as it should. Pure; the stream
// itself passes elsewhere, untouched. Source: 20-control-plane §5, FC1, FC6.

/** Tokens as the provider reported them. */
export type ReportedUsage = Readonly<{ promptTokens: number; cachedTokens: number; completionTokens: number }>;

/** What was seen of an answer. `isEnded`: it has its terminal marker. `events`: data events of a stream. */
export type Metered = Readonly<{
  isEnded: boolean;
  hasError: boolean;
  /** A stream that was cut inside a line. */
  isInLine: boolean;
  events: number;
  bytes: number;
  usage: ReportedUsage | undefined;
  servedModel: string | undefined;
}>;

/** Sees the chunks of one answer as they pass. */
export type Meter = Readonly<{ push: (chunk: Uint8Array) => void; result: () => Metered }>;

/** Longest line or body that is looked into. Longer ones pass unseen. Units: bytes. */
const MAX_LINE_BYTES = 65_536;
const MAX_BODY_BYTES = 1_048_576;

const count = (value: unknown): number =>
  typeof value === 'number' && Number.isFinite(value) && value > 0 ? Math.floor(value) : 0;

const objectOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};

const parse = (text: string): Readonly<Record<string, unknown>> => {
  try {
    return objectOf(JSON.parse(text));
  } catch {
    return {};
  }
};

/** Tokens of a `usage` object; undefined when there is none. */
const usageOf = (body: Readonly<Record<string, unknown>>): ReportedUsage | undefined => {
  const raw = body['usage'];
  if (typeof raw !== 'object' || raw === null) return undefined;
  const usage = objectOf(raw);
  return {
    promptTokens: count(usage['prompt_tokens']),
    cachedTokens: count(objectOf(usage['prompt_tokens_details'])['cached_tokens']),
    completionTokens: count(usage['completion_tokens']),
  };
};

const modelOf = (body: Readonly<Record<string, unknown>>): string | undefined =>
  typeof body['model'] === 'string' ? body['model'].replace(/[^\x20-\x7e]/g, '').slice(0, 256) : undefined;

const FINISHED = /"finish_reason"\s*:\s*"/;
const USAGE = /"usage"\s*:\s*\{/;
const ERROR = /^\{\s*"error"\s*:/;

/** Meter of a stream of server-sent events. Chunks may be cut anywhere. */
export const makeSseMeter = (): Meter => {
  let carry: Buffer = Buffer.alloc(0);
  let isSkipping = false;
  let isEnded = false;
  let hasError = false;
  let events = 0;
  let bytes = 0;
  let isInLine = false;
  let usage: ReportedUsage | undefined;
  let servedModel: string | undefined;

  const see = (line: string): void => {
    if (!line.startsWith('data:')) return;
    const data = line.slice(5).trim();
    if (data === '') return;
    if (data === '[DONE]') {
      isEnded = true;
      return;
    }
    events += 1;
    if (FINISHED.test(data)) isEnded = true;
    if (ERROR.test(data)) hasError = true;
    if (servedModel !== undefined && !USAGE.test(data)) return;
    const body = parse(data);
    servedModel ??= modelOf(body);
    usage = usageOf(body) ?? usage;
  };

  return {
    push: (chunk) => {
      bytes += chunk.length;
      if (chunk.length > 0) isInLine = chunk[chunk.length - 1] !== 0x0a;
      let from = 0;
      for (;;) {
        const newline = chunk.indexOf(0x0a, from);
        if (newline < 0) break;
        const rest = chunk.subarray(from, newline);
        const line = carry.length === 0 ? rest : Buffer.concat([carry, rest]);
        if (!isSkipping && line.length <= MAX_LINE_BYTES)
          see(Buffer.from(line.buffer, line.byteOffset, line.length).toString('utf8'));
        else events += 1;
        carry = Buffer.alloc(0);
        isSkipping = false;
        from = newline + 1;
      }
      const tail = chunk.subarray(from);
      if (isSkipping || carry.length + tail.length > MAX_LINE_BYTES) {
        isSkipping = true;
        carry = Buffer.alloc(0);
      } else if (tail.length > 0) {
        carry = Buffer.concat([carry, tail]);
      }
    },
    result: () => {
      if (carry.length > 0 && !isSkipping) see(carry.toString('utf8'));
      carry = Buffer.alloc(0);
      return { isEnded, hasError, isInLine, events, bytes, usage, servedModel };
    },
  };
};

/** Meter of one JSON body. It is ended when it parses; a body above 1 MiB is taken as ended and not looked into. */
export const makeJsonMeter = (): Meter => {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  return {
    push: (chunk) => {
      bytes += chunk.length;
      if (bytes <= MAX_BODY_BYTES) parts.push(chunk);
      else parts.length = 0;
    },
    result: () => {
      const body = bytes <= MAX_BODY_BYTES ? parse(Buffer.concat(parts).toString('utf8')) : {};
      return {
        isEnded: bytes > MAX_BODY_BYTES || Object.keys(body).length > 0,
        hasError: 'error' in body,
        isInLine: false,
        events: 0,
        bytes,
        usage: usageOf(body),
        servedModel: modelOf(body),
      };
    },
  };
};

/** Tokens of a call: as reported, or counted from bytes and events when the provider said nothing. */
export const tokensOf = (metered: Metered, requestBytes: number): ReportedUsage & Readonly<{ estimated: boolean }> => {
  if (metered.usage !== undefined) return { ...metered.usage, estimated: false };
  if (metered.bytes === 0) return { promptTokens: 0, cachedTokens: 0, completionTokens: 0, estimated: true };
  const completionTokens = metered.events > 0 ? metered.events : Math.ceil(metered.bytes / 4);
  return { promptTokens: Math.ceil(requestBytes / 4), cachedTokens: 0, completionTokens, estimated: true };
};

/** Cost of tokens, rounded up. Units: micro-USD; prices in micro-USD per million tokens. */
export const costMicroUsd = (
  tokens: Pick<ReportedUsage, 'promptTokens' | 'completionTokens'>,
  prices: Readonly<{ price_input_micro_usd: number; price_output_micro_usd: number }>,
): number =>
  Math.ceil(
    (tokens.promptTokens * prices.price_input_micro_usd + tokens.completionTokens * prices.price_output_micro_usd) /
      1_000_000,
  );
