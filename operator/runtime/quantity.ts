// Amounts of resources: read, compare, add and print in the form that the API server stores. Pure.
// Must not know which resource they measure.
import { quantityNanos } from '#kube/covers.ts';
import type { Quantity } from '#schema/primitives.ts';

/** An amount in billionths of the base unit (cores, bytes). Exact. */
export type Amount = bigint;

const NANO = 1_000_000_000n;
const MILLI = 1_000_000n;
const BINARY = [
  ['Ti', 2n ** 40n],
  ['Gi', 2n ** 30n],
  ['Mi', 2n ** 20n],
  ['Ki', 2n ** 10n],
] as const;

/** The amount that a quantity means; undefined for a text that is none. */
export const parseQuantity = (quantity: Quantity): Amount | undefined => quantityNanos(String(quantity));

/** Cores in Kubernetes' own form: `2`, `500m`. Below one thousandth it is rounded up. */
export const cpuQuantity = (amount: Amount): string => {
  if (amount % NANO === 0n) return String(amount / NANO);
  return `${(amount + MILLI - 1n) / MILLI}m`;
};

/** Bytes in Kubernetes' own form: the largest binary unit that keeps the number whole, as in `1280Mi`. Rounded up to bytes. */
export const bytesQuantity = (amount: Amount): string => {
  const bytes = (amount + NANO - 1n) / NANO;
  if (bytes === 0n) return '0';
  const unit = BINARY.find(([, size]) => bytes % size === 0n);
  return unit === undefined ? String(bytes) : `${bytes / unit[1]}${unit[0]}`;
};
