// Does an observed object hold everything that we want of it? Pure; defaults that the server added never count.

const QUANTITY = /^([+-]?)(\d*)(?:\.(\d*))?(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E|[eE][+-]?\d+)?$/;
const BINARY: Readonly<Record<string, bigint>> = {
  Ki: 2n ** 10n,
  Mi: 2n ** 20n,
  Gi: 2n ** 30n,
  Ti: 2n ** 40n,
  Pi: 2n ** 50n,
  Ei: 2n ** 60n,
};
const DECIMAL_EXPONENT: Readonly<Record<string, number>> = {
  n: -9,
  u: -6,
  m: -3,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
};
const NANO_EXPONENT = 9;
const MAX_EXPONENT = 30;

/** A quantity in billionths, rounded up as Kubernetes does; undefined for text that is none. */
export const quantityNanos = (text: string): bigint | undefined => {
  const match = QUANTITY.exec(text);
  const [, sign = '', whole = '', fraction = '', suffix = ''] = match ?? [];
  if (match === null || (whole === '' && fraction === '')) return undefined;
  const factor = BINARY[suffix] ?? 1n;
  const exponent = /^[eE][+-]?\d/.test(suffix) ? Number(suffix.slice(1)) : (DECIMAL_EXPONENT[suffix] ?? 0);
  if (Math.abs(exponent) > MAX_EXPONENT) return undefined;
  const digits = BigInt(`${whole}${fraction}`) * factor;
  const shift = NANO_EXPONENT + exponent - fraction.length;
  const nanos = shift >= 0 ? digits * 10n ** BigInt(shift) : ceilDivide(digits, 10n ** BigInt(-shift));
  return sign === '-' ? -nanos : nanos;
};

const ceilDivide = (value: bigint, by: bigint): bigint => (value + by - 1n) / by;

const BINARY_SUFFIXES = ['Ei', 'Pi', 'Ti', 'Gi', 'Mi', 'Ki'] as const;
const DECIMAL_SUFFIXES = [
  ['E', 18],
  ['P', 15],
  ['T', 12],
  ['G', 9],
  ['M', 6],
  ['k', 3],
  ['', 0],
  ['m', -3],
  ['u', -6],
  ['n', -9],
] as const;

/**
 * The quantity as the API server writes it back: the largest suffix of its family without a fraction (`1000m` is `1`,
 * `1024Mi` is `1Gi`, `1.5Gi` is `1536Mi`). Throws RangeError for text that is no quantity.
 */
export const canonicalQuantity = (text: string): string => {
  const nanos = quantityNanos(text);
  if (nanos === undefined) throw new RangeError(`${text} is not a quantity`);
  if (nanos === 0n) return '0';
  const one = 10n ** BigInt(NANO_EXPONENT);
  if (/[KMGTPE]i$/.test(text)) {
    for (const suffix of BINARY_SUFFIXES) {
      const unit = (BINARY[suffix] ?? 1n) * one;
      if (nanos % unit === 0n) return `${nanos / unit}${suffix}`;
    }
  }
  for (const [suffix, exponent] of DECIMAL_SUFFIXES) {
    const unit = 10n ** BigInt(NANO_EXPONENT + exponent);
    if (nanos % unit === 0n) return `${nanos / unit}${suffix}`;
  }
  return text;
};

/** Fields whose strings (or those right below them) are quantities. */
const QUANTITY_FIELDS: ReadonlySet<string> = new Set(['limits', 'requests', 'capacity', 'hard', 'sizeLimit']);

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Maps that the server drops when they are empty; an empty object elsewhere says something, as in `emptyDir: {}`. */
const MAP_FIELDS: ReadonlySet<string> = new Set([
  'labels',
  'annotations',
  'matchLabels',
  'nodeSelector',
  'limits',
  'requests',
]);

/** True for a value that the server does not keep: an empty list, or an empty map. */
const isDropped = (field: string, value: unknown): boolean =>
  value === null ||
  (Array.isArray(value)
    ? value.length === 0
    : isRecord(value) && MAP_FIELDS.has(field) && Object.keys(value).length === 0);

const sameQuantity = (observed: unknown, desired: unknown): boolean => {
  const [a, b] = [quantityNanos(String(observed)), quantityNanos(String(desired))];
  return a !== undefined && a === b;
};

const coversAt = (observed: unknown, desired: unknown, field: string, quantities: boolean): boolean => {
  if (desired === undefined) return true;
  if (observed === undefined && isDropped(field, desired)) return true;
  if (Array.isArray(desired)) {
    if (!Array.isArray(observed) || observed.length !== desired.length) return false;
    return desired.every((item, at) => coversAt(observed[at], item, '', false));
  }
  if (isRecord(desired)) {
    if (!isRecord(observed)) return false;
    return Object.entries(desired).every(([name, value]) =>
      coversAt(observed[name], value, name, QUANTITY_FIELDS.has(name) || quantities),
    );
  }
  return observed === desired || (quantities && sameQuantity(observed, desired));
};

/**
 * True when every field of `desired` is in `observed` with the same value: lists whole and in order, quantities by
 * amount; an empty list or map of strings is the same as an absent one. Fields that only `observed` has do not count.
 */
export const covers = (observed: unknown, desired: unknown): boolean => coversAt(observed, desired, '', false);
