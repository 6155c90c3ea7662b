// When a model call that failed is made again, and after how long. Pure. Must not know sockets or harnesses.
import { MAX_RETRY_AFTER_SECONDS, type WordedError } from './error-wording.ts';

/** How often a model call is made at most, the first time included; as often as OpenCode makes it. */
export const MOST_TRIES = 6;
const FIRST_WAIT_MS = 2_000;

/**
 * How long to wait before a call is made again that failed for the `tries`-th time; undefined when it is final. Units:
 * milliseconds. What the answer asks for, and no less than 2 s, doubled with each failure, up to 30 s.
 */
export const waitBeforeTry = (error: WordedError, tries: number): number | undefined => {
  if (error.retryAfterSeconds === undefined || tries >= MOST_TRIES) return undefined;
  const growing = FIRST_WAIT_MS * 2 ** (tries - 1);
  return Math.min(Math.max(growing, error.retryAfterSeconds * 1_000), MAX_RETRY_AFTER_SECONDS * 1_000);
};
