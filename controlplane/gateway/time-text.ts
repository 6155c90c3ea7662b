// Writes times as text where many calls begin in the same millisecond. Pure. Must not know what the times are of.

/** Makes the writer: RFC 3339 in UTC. The last text is kept, so times of one millisecond share it. Units: milliseconds since 1970. */
export const makeTimeText = (): ((atMs: number) => string) => {
  let last = { atMs: Number.NaN, text: '' };
  return (atMs) => {
    if (atMs !== last.atMs) last = { atMs, text: new Date(atMs).toISOString() };
    return last.text;
  };
};
