// The reasoning tier that a request asks for: where it stands in the body, and whether the model has it. Pure.
// Must not know calls, nor what a provider makes of a tier. Source: A216.
import { COMMA, OPEN_OBJECT } from '#base/json-bytes.ts';
import { textAt, walkObject } from './json-span.ts';

/** A tier of a request. Without the bytes from `from` up to but not including `to` the body asks for none. */
export type EffortSpan = Readonly<{ tier: string; from: number; to: number }>;

/** Members of a body that are a tier, and those that hold it as `effort`: chat, responses, messages. */
const TIER_KEY = 'reasoning_effort';
const HOLDER_KEYS: ReadonlySet<string> = new Set(['reasoning', 'output_config']);
/** Longest value that is looked into; what is longer names no tier. Units: bytes. */
const MAX_BYTES = 1_024;

/** Whether a top-level key may give a tier. */
export const isEffortKey = (key: string): boolean => key === TIER_KEY || HOLDER_KEYS.has(key);

const isSpace = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;

/** What goes with a member: the comma before it or, for the first one of its object, the one behind it. */
const cutOf = (bytes: Uint8Array, previousEnd: number | undefined, end: number): Pick<EffortSpan, 'from' | 'to'> => {
  if (previousEnd !== undefined) return { from: previousEnd, to: end };
  let to = end;
  while (isSpace(bytes[to])) to += 1;
  return { from: bytes.indexOf(OPEN_OBJECT) + 1, to: bytes[to] === COMMA ? to + 1 : end };
};

const insideHolder = (holder: Uint8Array): EffortSpan | undefined => {
  let found: EffortSpan | undefined;
  let previousEnd: number | undefined;
  walkObject(holder, (key, start, end) => {
    const tier = key === 'effort' ? textAt(holder, start, end) : undefined;
    if (tier !== undefined) found = { tier, ...cutOf(holder, previousEnd, end) };
    previousEnd = end;
    return true;
  });
  return found;
};

/**
 * The tier that a top-level member of such a key gives; undefined when it gives none. `previousEnd`: where the value before it ends,
 * undefined for the first member.
 */
export const effortIn = (
  bytes: Uint8Array,
  member: Readonly<{ key: string; start: number; end: number; previousEnd: number | undefined }>,
): EffortSpan | undefined => {
  const { key, start, end, previousEnd } = member;
  if (end - start > MAX_BYTES) return undefined;
  if (key === TIER_KEY) {
    const tier = textAt(bytes, start, end);
    return tier === undefined ? undefined : { tier, ...cutOf(bytes, previousEnd, end) };
  }
  if (bytes[start] !== OPEN_OBJECT) return undefined;
  const inside = insideHolder(bytes.subarray(start, end));
  return inside && { tier: inside.tier, from: start + inside.from, to: start + inside.to };
};

/**
 * Whether a model takes a tier: one of its own or, when the registry lists none, any if it reasons. `auto` is no tier, it
 * says that none is wished.
 */
export const takesTier = (
  tier: string,
  model: Readonly<{ reasoning: boolean; variants?: readonly string[] | undefined }>,
): boolean => (model.variants === undefined ? model.reasoning && tier !== 'auto' : model.variants.includes(tier));
