// Optional session features of a harness and their ids on the wire. A harness that has the member offers the feature.
// Must not know any single harness. Source: A30 to A34.

/** One subagent's conversation below the session. */
export type ChildThread = Readonly<{ threadId: string; title: string }>;

/** One entry of the plan that an agent keeps. */
export type TodoEntry = Readonly<{ content: string; status: string; priority: string }>;

/** Optional members of a harness. What is absent answers 501 `feature_not_supported`. */
export type OptionalMembers = Readonly<{
  /** The conversations of subagents. */
  children?: (signal: AbortSignal) => Promise<readonly ChildThread[]>;
  /** The plan as it stands. */
  todo?: (signal: AbortSignal) => Promise<readonly TodoEntry[]>;
  /** Shrinks the conversation now; resolves when that is done. Only while no turn runs. */
  compact?: (signal: AbortSignal) => Promise<void>;
}>;

/** Id on the wire of every optional member. Source: A31. */
export const CAPABILITY_OF = {
  children: 'session.subagents',
  todo: 'session.todo',
  compact: 'session.compact',
} as const satisfies Record<keyof OptionalMembers, string>;

/** The capability ids of a harness, computed from its members, so that list and behaviour cannot differ. Source: A33. */
export const capabilitiesOf = (optional: OptionalMembers): readonly string[] =>
  (Object.keys(CAPABILITY_OF) as (keyof OptionalMembers)[])
    .filter((member) => optional[member] !== undefined)
    .map((member) => CAPABILITY_OF[member]);
