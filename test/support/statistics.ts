// What the programs of `bench/` say of many figures. Pure. Must not know what was measured.

/** The value below which `part` (0 to 1) of the values lies, between two of them where it falls there; NaN of none. */
export const quantile = (values: readonly number[], part: number): number => {
  const sorted = [...values].sort((a, b) => a - b);
  const place = (sorted.length - 1) * part;
  const below = sorted[Math.floor(place)] ?? Number.NaN;
  const above = sorted[Math.ceil(place)] ?? Number.NaN;
  return below + (above - below) * (place - Math.floor(place));
};

/** The middle value; of an even number the mean of the middle two. */
export const median = (values: readonly number[]): number => quantile(values, 0.5);
