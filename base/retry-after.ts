// The header `retry-after` in the one reading of ours. Pure. Must not know who asks to wait.

/** Longest wait that is believed. Units: milliseconds. */
const MAX_MS = 86_400_000;

/**
 * The wait that a header asks for; undefined when it says nothing that counts. Units: milliseconds, 0 to one day. Seconds, whole or
 * not; a date counts only where `nowMs` (since 1970) is given.
 */
export const retryAfterMs = (header: string | null | undefined, nowMs?: number): number | undefined => {
  if (header === null || header === undefined) return undefined;
  const text = header.trim();
  if (/^\d{1,300}(\.\d{1,300})?(e\d{1,3})?$/i.test(text)) return Math.min(Number(text) * 1_000, MAX_MS);
  const at = nowMs === undefined || !/[A-Za-z]/.test(text) ? Number.NaN : Date.parse(text);
  return Number.isNaN(at) || nowMs === undefined ? undefined : Math.min(Math.max(0, at - nowMs), MAX_MS);
};
