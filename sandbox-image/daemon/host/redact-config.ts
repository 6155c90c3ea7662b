// Takes secrets out of a configuration document: by the names of keys, and by the values that must not leave. Pure.
// Must not know whose document it is. Source: A62.

const SECRET_KEY = /key|token|secret|password|passwd|credential|authorization|cookie/i;
/** Shown in place of a value. */
export const REDACTED = '[redacted]';
/** A shorter text would match by accident. */
const MIN_SECRET_LENGTH = 6;
const MAX_DEPTH = 32;

const redactText = (text: string, secrets: readonly string[]): string =>
  secrets.reduce((result, secret) => result.replaceAll(secret, REDACTED), text);

const redactValue = (key: string, value: unknown, secrets: readonly string[], depth: number): unknown => {
  if (depth > MAX_DEPTH) return REDACTED;
  if (Array.isArray(value)) return value.map((item) => redactValue(key, item, secrets, depth + 1));
  if (typeof value === 'object' && value !== null) {
    const isEnvironment = /^(env|environment|headers)$/i.test(key);
    return Object.fromEntries(
      Object.entries(value).map(([name, inner]) => [
        name,
        isEnvironment && typeof inner === 'string' ? REDACTED : redactValue(name, inner, secrets, depth + 1),
      ]),
    );
  }
  if (typeof value !== 'string') return value;
  return SECRET_KEY.test(key) ? REDACTED : redactText(value, secrets);
};

/** The document without secrets; environments and headers lose their values altogether. */
export const redactConfig = (
  document: Readonly<Record<string, unknown>>,
  secrets: readonly string[],
): Readonly<Record<string, unknown>> => {
  const known = secrets.filter((secret) => secret.length >= MIN_SECRET_LENGTH);
  return redactValue('', document, known, 0) as Readonly<Record<string, unknown>>;
};
