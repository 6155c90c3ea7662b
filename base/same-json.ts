// Whether two JSON values mean the same: a database gives objects back with their keys in another order. Pure.

/** True when both values are equal; the order of keys does not count, that of lists does; an absent key is not null. */
export const sameJson = (a: unknown, b: unknown): boolean => {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [left, right] = [a as Readonly<Record<string, unknown>>, b as Readonly<Record<string, unknown>>];
  const keys = Object.keys(left).filter((key) => left[key] !== undefined);
  const others = Object.keys(right).filter((key) => right[key] !== undefined);
  return (
    keys.length === others.length && keys.every((key) => Object.hasOwn(right, key) && sameJson(left[key], right[key]))
  );
};
