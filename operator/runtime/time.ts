// Times in status: RFC 3339 in whole seconds, to and from milliseconds. Pure. Must not know the present.

/** `2026-11-30T12:41:07Z`. Units: milliseconds since 1970; the rest of a second is dropped. Source: K5. */
export const timestamp = (epochMs: number): string => `${new Date(epochMs).toISOString().slice(0, 19)}Z`;

/** Milliseconds since 1970; undefined for an absent text or one that is no time. */
export const timeMs = (text: string | undefined | null): number | undefined => {
  if (text === undefined || text === null) return undefined;
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
};
