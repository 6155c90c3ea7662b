// Listening to an AbortSignal that may have fired already. Must not know what is ended.

/** Calls `listener` once when `signal` fires, at once when it has fired already; gives back how to stop listening. */
export const onAbort = (signal: AbortSignal, listener: () => void): (() => void) => {
  if (signal.aborted) {
    listener();
    return () => {};
  }
  signal.addEventListener('abort', listener, { once: true });
  return () => signal.removeEventListener('abort', listener);
};
