// The harness budgets and the limits of the process: every knob with its default, its bounds and its names.
// Source: 40-settings B12 to B18, B43, B44, B46. Must not know who reads a knob or where an override is kept.

const KIB = 1_024;
const MIB = 1_048_576;

/** One number that may be set. `variable` is the environment name without its prefix. */
export type Knob<V extends string = string> = Readonly<{
  default: number;
  least: number;
  most: number;
  unit: 'bytes' | 'pixels' | 'milliseconds' | 'groups';
  variable: V;
  meaning: string;
}>;

/** `least` is above 1 where a smaller value would leave a run nothing to work with. Source: docs/decisions/0046. */
const bytes = <const V extends string>(
  variable: V,
  fallback: number,
  most: number,
  meaning: string,
  least = 1,
): Knob<V> => ({
  default: fallback,
  least,
  most,
  unit: 'bytes',
  variable,
  meaning,
});
const groups = <const V extends string>(variable: V, fallback: number, meaning: string): Knob<V> => ({
  default: fallback,
  least: 1,
  most: 64,
  unit: 'groups',
  variable,
  meaning,
});

/** Budgets that the environment and the supervisor API may change; they are pinned for each run. Source: B13 to B16, B25, B44. */
export const BUDGET_KNOBS = {
  max_model_request_bytes: bytes(
    'MAX_MODEL_REQUEST_BYTES',
    2 * MIB - 32 * KIB,
    2 * MIB,
    'Largest model request of a run; above it the run fails with a named error',
    16 * KIB,
  ),
  compaction_trigger_bytes: bytes(
    'COMPACTION_TRIGGER_BYTES',
    1_258_291,
    64 * MIB,
    'Size of a context at which it is compacted',
    8 * KIB,
  ),
  compaction_card_max_bytes: bytes(
    'COMPACTION_CARD_MAX_BYTES',
    8 * KIB,
    64 * MIB,
    'Largest state card of a compaction',
    KIB / 4,
  ),
  compaction_tail_bytes: bytes('COMPACTION_TAIL_BYTES', 256 * KIB, 64 * MIB, 'What a compaction keeps of the end'),
  keep_groups_min: groups('COMPACTION_KEEP_GROUPS_MIN', 2, 'Message groups that a compaction keeps at least'),
  keep_groups_max: groups('COMPACTION_KEEP_GROUPS_MAX', 8, 'Message groups that a compaction keeps at most'),
  compaction_digest_head_bytes: bytes(
    'COMPACTION_DIGEST_HEAD_BYTES',
    3_584,
    64 * MIB,
    'What a digest of a compacted message keeps of its beginning',
  ),
  compaction_digest_tail_bytes: bytes(
    'COMPACTION_DIGEST_TAIL_BYTES',
    512,
    64 * MIB,
    'What a digest of a compacted message keeps of its end',
  ),
  tool_output_max_bytes: bytes('TOOL_OUTPUT_MAX_BYTES', 512 * KIB, 64 * MIB, 'Largest tool result in a history', KIB),
  tool_output_tail_bytes: bytes(
    'TOOL_OUTPUT_TAIL_BYTES',
    16 * KIB,
    64 * MIB,
    'What a cut tool result keeps of its end',
  ),
  continue_as_new_bytes: bytes(
    'CONTINUE_AS_NEW_BYTES',
    128 * MIB,
    512 * MIB,
    'Growth of a history after which its run continues as new',
    MIB,
  ),
} as const satisfies Readonly<Record<string, Knob>>;

/** Name of a budget; its saved key is `harness.budgets.<name>`. */
export type BudgetKnob = keyof typeof BUDGET_KNOBS;
/** Every budget name, in the order of the table. */
export const BUDGET_NAMES = Object.keys(BUDGET_KNOBS) as readonly BudgetKnob[];
/** A value for every budget. */
export type Budgets = Readonly<Record<BudgetKnob, number>>;

/** Pairs whose first must not be above the second. Source: B25. */
export const BUDGET_RULES = [
  ['keep_groups_min', 'keep_groups_max'],
  ['compaction_trigger_bytes', 'max_model_request_bytes'],
] as const satisfies readonly (readonly [BudgetKnob, BudgetKnob])[];

/** Image caps and time limits: from the environment only, read when the process starts. Source: B17, B18, B29, B46. */
export const PROCESS_LIMITS = {
  image_encoded_max_bytes: bytes(
    'IMAGE_ENCODED_MAX_BYTES',
    512 * KIB,
    64 * MIB,
    'Largest encoded image in a context; base64 adds a third on the wire',
  ),
  image_max_side: {
    default: 1_568,
    least: 1,
    most: 16_384,
    unit: 'pixels',
    variable: 'IMAGE_MAX_SIDE',
    meaning: 'Longest side of an image in a context',
  },
  image_source_max_bytes: bytes('IMAGE_SOURCE_MAX_BYTES', 5 * MIB, 64 * MIB, 'Largest image that is read at all'),
  model_activity_timeout: {
    default: 20 * 60_000,
    least: 1_000,
    most: 24 * 3_600_000,
    unit: 'milliseconds',
    variable: 'MODEL_ACTIVITY_TIMEOUT',
    meaning: 'Longest model call, as 20m, 90s or a number of seconds',
  },
  tool_activity_timeout: {
    default: 16 * 60_000,
    // The sandbox itself stops a command after 15 minutes; the outer limit must be the longer one.
    least: 15 * 60_000 + 1,
    most: 24 * 3_600_000,
    unit: 'milliseconds',
    variable: 'TOOL_ACTIVITY_TIMEOUT',
    meaning: 'Longest tool call, as 16m, 1000s or a number of seconds; above the 15 minutes of the sandbox',
  },
} as const satisfies Readonly<Record<string, Knob>>;

/** Name of a limit of the process. */
export type ProcessLimit = keyof typeof PROCESS_LIMITS;
/** Every limit name, in the order of the table. */
export const LIMIT_NAMES = Object.keys(PROCESS_LIMITS) as readonly ProcessLimit[];
/** A value for every limit, in the unit of its knob. */
export type ProcessLimits = Readonly<Record<ProcessLimit, number>>;

/** Prefixes of environment names; the first that is set wins. Source: B43. */
export const ENVIRONMENT_PREFIXES = ['BEEUNI_', 'TEMPORALITY_'] as const;

type VariableOf<T extends Readonly<Record<string, Knob>>> = T[keyof T]['variable'];
/** Name of an environment variable that sets a budget or a limit. */
export type KnobVariable =
  `${(typeof ENVIRONMENT_PREFIXES)[number]}${VariableOf<typeof BUDGET_KNOBS> | VariableOf<typeof PROCESS_LIMITS>}`;

const defaultsOf = <K extends string>(knobs: Readonly<Record<K, Knob>>): Readonly<Record<K, number>> =>
  Object.freeze(
    Object.fromEntries(Object.entries<Knob>(knobs).map(([name, knob]) => [name, knob.default])) as Record<K, number>,
  );

/** The compiled budgets; also those of a run that has no snapshot. Source: B20, B44. */
export const COMPILED_BUDGETS: Budgets = defaultsOf(BUDGET_KNOBS);
/** The compiled limits. */
export const COMPILED_LIMITS: ProcessLimits = defaultsOf(PROCESS_LIMITS);

/** Whether a text is the name of a budget. */
export const isBudgetKnob = (name: string): name is BudgetKnob => Object.hasOwn(BUDGET_KNOBS, name);
