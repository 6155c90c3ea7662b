// Finds what a person wrote that a schema does not know: our kinds and bodies drop unknown keys when they are read,
// so the difference between input and result names them. Must not know any schema.

type Walk = Readonly<{ found: string[]; limit: number }>;

const isPlainObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const walk = (input: unknown, parsed: unknown, path: string, state: Walk): void => {
  if (state.found.length >= state.limit) return;
  if (Array.isArray(input) && Array.isArray(parsed)) {
    input.forEach((item, index) => {
      walk(item, parsed[index], `${path}[${index}]`, state);
    });
    return;
  }
  if (!isPlainObject(input) || !isPlainObject(parsed)) return;
  for (const [key, value] of Object.entries(input)) {
    if (state.found.length >= state.limit) return;
    const at = path === '' ? key : `${path}.${key}`;
    if (Object.hasOwn(parsed, key)) walk(value, parsed[key], at, state);
    else if (value !== undefined) state.found.push(at);
  }
};

/**
 * Paths of `input` that `parsed` (the result of reading it with a schema) dropped, in order of writing, for example
 * `spec.sandbox.colour` or `parts[0].kind`. Bounds: at most `limit` paths, 20 when absent. Empty: all was known.
 */
export const unknownPaths = (input: unknown, parsed: unknown, limit = 20): readonly string[] => {
  const found: string[] = [];
  walk(input, parsed, '', { found, limit });
  return found;
};
