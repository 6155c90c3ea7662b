// What counts as a number of tokens in the answer of a provider. Must not know how any API names it.

/** No context window is near it; what says more is broken or hostile, and would drown every sum that it is added to. */
export const MAX_TOKENS = 100_000_000;

/** The number, or undefined for what no call can have used: a text, a fraction, less than nothing, too much. Units: tokens. */
export const tokenCountOf = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_TOKENS ? value : undefined;
