// Model roles: the jobs that a setting assigns a model to, and the names under which they are saved and shown.
// Source: 40-settings B2, B6, B45. Roles are global: no project has its own. Must not know how a role is resolved.

/** Every role. */
export const MODEL_ROLES = ['judge', 'vision', 'compaction', 'title', 'extraction'] as const;
/** One role. */
export type ModelRole = (typeof MODEL_ROLES)[number];

/** Whether a text is the name of a role. */
export const isModelRole = (name: string): name is ModelRole => (MODEL_ROLES as readonly string[]).includes(name);

/** Names of a role: the saved key, the field of the supervisor API, and its job. Source: B2, B45. */
export type RoleNames = Readonly<{ key: string; field: `${ModelRole}_model`; job: string }>;

/** The names of every role. */
export const ROLE_NAMES = {
  judge: {
    key: 'eval.judge.model',
    field: 'judge_model',
    job: 'evaluations, knowledge conflicts and area summaries',
  },
  vision: {
    key: 'supervisor.vision.model',
    field: 'vision_model',
    job: 'looks at images for a description or an answer',
  },
  compaction: { key: 'harness.compaction.model', field: 'compaction_model', job: 'the state card of a compaction' },
  title: { key: 'harness.title.model', field: 'title_model', job: 'the title of a session' },
  extraction: {
    key: 'harness.extraction.model',
    field: 'extraction_model',
    job: 'the knowledge that is taken from a run at its end',
  },
} as const satisfies Readonly<Record<ModelRole, RoleNames>>;

/** Model name of each role; empty where nothing is assigned. */
export type RoleSlots = Readonly<Record<ModelRole, string>>;

/** No role is assigned. */
export const NO_ROLES: RoleSlots = { judge: '', vision: '', compaction: '', title: '', extraction: '' };
