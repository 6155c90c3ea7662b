// Waiting for a state with a deadline; the only way in which a test waits. Must not know what is waited for.

/** How long a test waits before it says what it saw last; it only keeps a test from hanging. Units: milliseconds. */
const DEADLINE_MS = 240_000;
const EVERY_MS = 20;

/**
 * The first answer of `probe` that is neither undefined nor false. Rejects after the deadline with `what` and the last
 * state, which `describe` gives (the last answer or error otherwise).
 */
export const until = async <T>(
  what: string,
  probe: () => Promise<T | undefined | false> | T | undefined | false,
  options: Readonly<{ deadlineMs?: number; describe?: () => unknown }> = {},
): Promise<T> => {
  const deadline = performance.now() + (options.deadlineMs ?? DEADLINE_MS);
  let last: unknown;
  for (;;) {
    try {
      const answer = await probe();
      if (answer !== undefined && answer !== false) return answer;
      last = answer;
    } catch (error) {
      last = error;
    }
    if (performance.now() > deadline) {
      const state = options.describe === undefined ? last : options.describe();
      const text = state instanceof Error ? (state.stack ?? state.message) : JSON.stringify(state, undefined, 1);
      throw new Error(`waited in vain until ${what}; last state: ${text}`);
    }
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
  }
};
