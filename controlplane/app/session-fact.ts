// The fact of a session, from its rows. Pure. Must not know how rows are read or facts sent. Source: 10-kubernetes §6.
import { headOfBytes } from '#base/head-of-text.ts';
import type { TurnOutcome } from '#schema/events/envelope.ts';
import type { HealthDocument } from '#schema/wire/health.ts';
import type { FactsFrame, ProjectFact, RegistryFact, SessionFact } from '#schema/wire/sync.ts';
import { specMessageId } from './prompts.ts';

/** One fact with everything that a session's fact is made from. Times in RFC 3339. */
export type FactRow = Readonly<{
  uid: string;
  kind: 'project' | 'session' | 'registry' | 'gone';
  version: number;
  body: ProjectFact | RegistryFact | null;
  exists: boolean;
  pod_uid: string | null;
  generation: number | null;
  fenced_pod_uid: string | null;
  want_start: boolean | null;
  budget_reached: boolean | null;
  idle_since: string | null;
  health_state: 'Answering' | 'Silent' | null;
  reported_at: string | null;
  document: HealthDocument | null;
  open_turn_id: string | null;
  open_since: string | null;
  queued: boolean;
  turn_id: string | null;
  turn_prompt_id: string | null;
  turn_message_id: string | null;
  turn_outcome: TurnOutcome | null;
  turn_final: boolean | null;
  turn_message: string | null;
  turn_started_at: string | null;
  turn_ended_at: string | null;
  turn_summary: string | null;
  spec_outcome: TurnOutcome | null;
  spec_message: string | null;
}>;

/** One fact as the operator reads it. */
export type Fact = Extract<FactsFrame, { type: 'fact' }>['fact'];

const MAX_SUMMARY_BYTES = 1_024;

const healthOf = (row: FactRow): SessionFact['health'] => {
  const { document, reported_at: lastAnswerAt, health_state: state } = row;
  if (document === null || lastAnswerAt === null || state === null) return null;
  const { id, version, state: harness, ready, error } = document.harness;
  return {
    state,
    lastAnswerAt,
    runtimeReady: document.runtimeReady,
    repoReady: document.repo_ready,
    branch: document.branch,
    commit: document.commit_sha,
    pushError: document.push_error ?? null,
    bootError: document.boot_error,
    bootErrorCategory: document.boot_error_category,
    harness: { id, version, state: harness, ready, error },
    capabilities: document.capabilities,
    config: document.config,
    isolation: document.isolation,
  };
};

/** Activity is what the inbox says; the report only adds that the turn waits for a person. */
const activityOf = (row: FactRow): SessionFact['activity'] => {
  if (row.pod_uid === null || row.idle_since === null) return null;
  if (row.open_turn_id === null || row.open_since === null) {
    return { state: 'Idle', since: row.idle_since, turnId: null };
  }
  const reported = row.document?.activity;
  if (reported?.state === 'WaitingForInput' && reported.turnId === row.open_turn_id) return reported;
  return { state: 'Working', since: row.open_since, turnId: row.open_turn_id };
};

const lastTurnOf = (row: FactRow): SessionFact['lastTurn'] => {
  const { turn_id: id, turn_outcome: outcome, turn_started_at: startedAt, turn_ended_at: finishedAt } = row;
  if (id === null || outcome === null || startedAt === null || finishedAt === null) return null;
  return {
    id,
    promptId: row.turn_prompt_id,
    isSpecPrompt: row.turn_message_id === specMessageId(row.uid),
    outcome,
    final: row.turn_final === true,
    message: row.turn_message,
    startedAt,
    finishedAt,
    summary: row.turn_summary === null ? null : headOfBytes(row.turn_summary, MAX_SUMMARY_BYTES),
  };
};

/** The fact that a row stands for; a session without a row is gone. */
export const factOf = (row: FactRow): Fact => {
  if (row.body !== null && (row.kind === 'project' || row.kind === 'registry')) return row.body;
  if (row.kind !== 'session' || !row.exists) return { kind: 'gone', uid: row.uid };
  return {
    kind: 'session',
    uid: row.uid,
    podUid: row.pod_uid,
    generation: row.generation ?? 0,
    health: row.pod_uid === null ? null : healthOf(row),
    activity: activityOf(row),
    idleSince: row.queued || row.open_turn_id !== null ? null : row.idle_since,
    lastTurn: lastTurnOf(row),
    specPromptFinal: row.spec_outcome === null ? null : { outcome: row.spec_outcome, message: row.spec_message },
    wanted: row.queued || row.want_start === true,
    fencedPodUid: row.fenced_pod_uid,
    budgetReached: row.budget_reached === true,
  };
};
