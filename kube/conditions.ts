// Conditions: how one is set, stamped and compared. Pure. Source: K10, K11, K27.

/** A condition as `status.conditions` holds it. */
export type Condition = Readonly<{
  type: string;
  status: 'True' | 'False' | 'Unknown';
  reason: string;
  message: string;
  observedGeneration?: number | undefined;
  lastTransitionTime: string;
}>;

/** What a check says; the times and generations are added by `setConditions`. */
export type ConditionNote = Readonly<{ type: string; status: Condition['status']; reason: string; message: string }>;

/** Longest message. Units: characters. Source: K11. */
const MAX_MESSAGE = 1_024;

const cut = (message: string): string =>
  message.length <= MAX_MESSAGE ? message : `${message.slice(0, MAX_MESSAGE - 1)}…`;

/** The condition of a type; undefined when absent. */
export const findCondition = (conditions: readonly Condition[], type: string): Condition | undefined =>
  conditions.find((condition) => condition.type === type);

/** True when the condition is there, True, and about this generation. */
export const isConditionTrue = (conditions: readonly Condition[], type: string, generation: number): boolean => {
  const condition = findCondition(conditions, type);
  return condition?.status === 'True' && condition.observedGeneration === generation;
};

/**
 * The conditions that the notes describe, in their order, all stamped with `generation`. `lastTransitionTime` is kept
 * while the status is the same and is `now` (RFC 3339, whole seconds) otherwise. Types without a note are dropped.
 */
export const setConditions = (
  before: readonly Condition[],
  notes: readonly ConditionNote[],
  generation: number,
  now: string,
): Condition[] =>
  notes.map((note) => {
    const old = findCondition(before, note.type);
    return {
      type: note.type,
      status: note.status,
      reason: note.reason,
      message: cut(note.message),
      observedGeneration: generation,
      lastTransitionTime: old?.status === note.status ? old.lastTransitionTime : now,
    };
  });

/** The conditions with one replaced or added; the others are as they were. */
export const withCondition = (
  before: readonly Condition[],
  note: ConditionNote,
  generation: number,
  now: string,
): Condition[] => {
  const [condition] = setConditions(before, [note], generation, now);
  if (condition === undefined) return [...before];
  const at = before.findIndex(({ type }) => type === note.type);
  return at < 0 ? [...before, condition] : before.with(at, condition);
};
