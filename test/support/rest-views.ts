// A session and a prompt as the public API shows them, for answers that a test makes up. Must not know what is tested.
import type { PromptView } from '#schema/rest/prompts.ts';
import type { SessionView } from '#schema/rest/sessions.ts';

/** When everything here was made. */
export const MADE_AT = '2026-11-30T12:00:00Z';

/** The session `team/fix` of project `shop`, which sleeps since it was idle. */
export const aSessionView: SessionView = {
  namespace: 'team',
  name: 'fix',
  uid: 'u',
  title: null,
  project: 'shop',
  createdAt: MADE_AT,
  phase: 'Suspended',
  ready: 'False',
  readyReason: 'Suspended',
  message: null,
  harness: null,
  agent: null,
  model: null,
  branch: null,
  commit: null,
  activity: null,
  spec: {},
  status: { suspension: { reason: 'Idle' } },
};

/** A prompt that waits in its queue. */
export const aPromptView: PromptView = {
  id: 'prm_1',
  messageId: 'm',
  state: 'queued',
  origin: 'rest',
  turnId: null,
  outcome: null,
  delivery: 'queue',
  deliveryReason: null,
  createdAt: MADE_AT,
  startedAt: null,
  endedAt: null,
  deduplicated: false,
  note: null,
};
