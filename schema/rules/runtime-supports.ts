// Whether a control for a session feature is shown: the check of every client against the list of health.
// Must not know harnesses. Source: A30, A35.

/**
 * True when no health answer has arrived yet (`undefined`), and for a list without any `session.*` id, which is an old
 * daemon's; else whether the id is in the list.
 */
export const runtimeSupports = (capabilities: readonly string[] | undefined, id: string): boolean =>
  capabilities === undefined || !capabilities.some((each) => each.startsWith('session.')) || capabilities.includes(id);
