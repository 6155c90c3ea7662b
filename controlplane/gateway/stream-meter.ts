// Looks at a copy of an answer as it passes: lines of a stream, or a bounded body. The answer itself goes elsewhere,
// untouched. Must not know what any line means; reported.ts does. Source: 20-control-plane §5, FC1, FC6.
import type { Meter, ReportedUsage } from './meter.ts';
import type { ReadReported, Said } from './reported.ts';

/** Longest line and body that are looked into; longer ones pass unseen. Units: bytes. */
const MAX_LINE_BYTES = 1_048_576;
const MAX_BODY_BYTES = 4_194_304;

const NEWLINE = 0x0a;
const RETURN = 0x0d;
const SPACE = 0x20;
const DATA = Buffer.from('data:');
const EVENT = Buffer.from('event:');
/** Longest name of an event that is read. */
const MAX_NAME_BYTES = 128;
/** An event up to this size carries one token, or few, in what its API wraps around it. Units: bytes. */
const ENVELOPE_BYTES = 512;

/** Tokens that a data event comes to by its size, when its provider reports none: four bytes to one. */
const tokensOfEvent = (bytes: number): number => 1 + Math.floor(Math.max(0, bytes - ENVELOPE_BYTES) / 4);

const startsWith = (line: Buffer, head: Buffer): boolean =>
  line.length >= head.length &&
  line[0] === head[0] &&
  line[3] === head[3] &&
  line.compare(head, 0, head.length, 0, head.length) === 0;

/** Meter of a stream of server-sent events. Chunks may be cut anywhere. */
export const makeStreamMeter = (reported: ReadReported): Meter => {
  let carry: Buffer[] = [];
  let carried = 0;
  let isSkipping = false;
  let isEnded = false;
  let hasError = false;
  let eventTokens = 0;
  let bytes = 0;
  let isInLine = false;
  let event = '';
  let usage: ReportedUsage | undefined;
  let isUsageInvalid = false;
  let servedModel: string | undefined;

  const hear = (said: Said | undefined): void => {
    if (said === undefined) return;
    isEnded ||= said.isEnd === true;
    hasError ||= said.isError === true;
    servedModel ??= said.servedModel;
    if (said.usage === undefined) return;
    if (said.usage === 'invalid') {
      isUsageInvalid = true;
      return;
    }
    usage = { promptTokens: 0, cachedTokens: 0, completionTokens: 0, ...usage, ...said.usage };
  };

  const see = (line: Buffer): void => {
    const last = line.length - 1;
    const text = line[last] === RETURN ? line.subarray(0, last) : line;
    if (text.length === 0) {
      event = '';
    } else if (startsWith(text, DATA)) {
      const data = text.subarray(text[5] === SPACE ? 6 : 5);
      if (data.length === 0) return;
      const said = reported.line(data, event, servedModel !== undefined);
      hear(said);
      if (data[0] !== 0x5b) eventTokens += tokensOfEvent(data.length);
    } else if (text.length <= MAX_NAME_BYTES && startsWith(text, EVENT)) {
      event = text.toString('latin1', 6).trim();
      hear(reported.named(event));
    }
  };

  const finishLine = (rest: Buffer): void => {
    if (isSkipping || carried + rest.length > MAX_LINE_BYTES) eventTokens += tokensOfEvent(carried + rest.length);
    else see(carried === 0 ? rest : Buffer.concat([...carry, rest], carried + rest.length));
    carry = [];
    carried = 0;
    isSkipping = false;
  };

  return {
    push: (chunk) => {
      if (chunk.length === 0) return;
      bytes += chunk.length;
      isInLine = chunk[chunk.length - 1] !== NEWLINE;
      let from = 0;
      for (;;) {
        const newline = chunk.indexOf(NEWLINE, from);
        if (newline < 0) break;
        finishLine(chunk.subarray(from, newline));
        from = newline + 1;
      }
      if (from === chunk.length) return;
      carried += chunk.length - from;
      if (isSkipping) return;
      if (carried > MAX_LINE_BYTES) {
        isSkipping = true;
        carry = [];
        return;
      }
      carry.push(chunk.subarray(from));
    },
    result: () => {
      if (carried > 0) finishLine(Buffer.alloc(0));
      return {
        isEnded,
        hasError,
        isInLine,
        eventTokens,
        bytes,
        usage: isUsageInvalid ? undefined : usage,
        servedModel,
      };
    },
  };
};

/** Meter of one JSON body. It is ended when it is one object; a body above 4 MiB is taken as ended and not looked into. */
export const makeBodyMeter = (reported: ReadReported): Meter => {
  const parts: Buffer[] = [];
  let bytes = 0;
  return {
    push: (chunk) => {
      bytes += chunk.length;
      if (bytes <= MAX_BODY_BYTES) parts.push(chunk);
      else parts.length = 0;
    },
    result: () => {
      const empty = { isEnded: true, hasError: false, isInLine: false, eventTokens: 0, bytes };
      if (bytes > MAX_BODY_BYTES) return { ...empty, usage: undefined, servedModel: undefined };
      const [first] = parts;
      const body = parts.length === 1 && first !== undefined ? first : Buffer.concat(parts, bytes);
      const said = reported.body(body);
      const usage =
        said.usage === undefined || said.usage === 'invalid'
          ? undefined
          : { promptTokens: 0, cachedTokens: 0, completionTokens: 0, ...said.usage };
      return {
        ...empty,
        isEnded: said.isEnd === true,
        hasError: said.isError === true,
        usage,
        servedModel: said.servedModel,
      };
    },
  };
};
