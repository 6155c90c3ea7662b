// Finds the model name in the bytes of a model request, without parsing or copying the rest. Pure.
// It must not know models; whoever calls puts another name into the same place.
import { MAX_JSON_DEPTH } from '#base/json-bytes.ts';
import { type EffortSpan, effortIn, isEffortKey } from './effort.ts';
import { textAt, walkObject } from './json-span.ts';

/** Where the value of the top-level key `model` is, its text, and the other top-level values that the gateway reads. */
export type RequestSpan = Readonly<{
  ok: true;
  model: string;
  /** Bytes of the value with its quotes: from `start` up to but not including `end`. */
  start: number;
  end: number;
  stream: boolean;
  /** Most tokens that the answer may have, as the request says; undefined when it says nothing. */
  maxOutputTokens: number | undefined;
  /** The reasoning tiers that the request asks for, in the order of the body. */
  efforts: readonly EffortSpan[];
}>;

/** Why a body is refused. */
export type SpanProblem = Readonly<{ ok: false; message: string }>;

/** Longest model name that is read at all. */
const MAX_NAME_BYTES = 512;
const OUTPUT_LIMITS: ReadonlySet<string> = new Set(['max_tokens', 'max_completion_tokens', 'max_output_tokens']);
const NO_EFFORTS: readonly EffortSpan[] = [];
const WHOLE = /^\d{1,9}$/;

const refuse = (message: string): SpanProblem => ({ ok: false, message });

/**
 * The place of the model name. Refused: a body that is no JSON object as far as this reads it, a key that is there
 * twice, a model that is no text. What lies inside other values is the provider's to check.
 */
export const findModelSpan = (bytes: Uint8Array): RequestSpan | SpanProblem => {
  const seen = new Set<string>();
  let problem: string | undefined;
  let found: Readonly<{ model: string; start: number; end: number }> | undefined;
  let stream = false;
  let maxOutputTokens: number | undefined;
  let efforts: readonly EffortSpan[] = NO_EFFORTS;
  let previousEnd: number | undefined;
  const isWhole = walkObject(
    bytes,
    (key, start, end) => {
      if (seen.has(key)) {
        problem = 'a key of the body is there twice';
        return false;
      }
      seen.add(key);
      if (key === 'model') {
        const model = end - start > MAX_NAME_BYTES ? undefined : textAt(bytes, start, end);
        if (model === undefined) {
          problem = 'the model of the body is not a text';
          return false;
        }
        found = { model, start, end };
      } else if (key === 'stream') {
        stream = end - start === 4 && bytes[start] === 0x74;
      } else if (OUTPUT_LIMITS.has(key) && end - start <= 9) {
        const text = String.fromCharCode(...bytes.subarray(start, end));
        if (WHOLE.test(text)) maxOutputTokens = Number(text);
      } else if (isEffortKey(key)) {
        const effort = effortIn(bytes, { key, start, end, previousEnd });
        if (effort !== undefined) efforts = [...efforts, effort];
      }
      previousEnd = end;
      return true;
    },
    MAX_JSON_DEPTH,
  );
  if (problem !== undefined) return refuse(problem);
  if (!isWhole) return refuse('the body is not a JSON object, or is nested too deeply');
  if (found === undefined) return refuse('the body names no model');
  return {
    ok: true,
    ...(found as Readonly<{ model: string; start: number; end: number }>),
    stream,
    maxOutputTokens,
    efforts,
  };
};

const NOTHING = Buffer.alloc(0);

/**
 * The body with another model name, which is JSON, in the same place, and without the tiers that are to be dropped: in parts that follow one
 * another, of which the large ones are not copied.
 */
export const withModel = (
  bytes: Buffer,
  span: RequestSpan,
  name: Buffer,
  drop: (tier: string) => boolean = () => false,
): readonly Buffer[] => {
  const cuts = span.efforts.filter(({ tier }) => drop(tier));
  if (cuts.length === 0) return [bytes.subarray(0, span.start), name, bytes.subarray(span.end)];
  const edits = [
    ...cuts.map(({ from, to }) => ({ from, to, text: NOTHING })),
    { from: span.start, to: span.end, text: name },
  ];
  const parts: Buffer[] = [];
  let at = 0;
  for (const { from, to, text } of edits.sort((one, other) => one.from - other.from)) {
    parts.push(bytes.subarray(at, from), text);
    at = to;
  }
  return [...parts, bytes.subarray(at)];
};
