// Statements on the prompt inbox. The session's row is locked by the caller wherever a state changes.
// Must not know when a prompt is due.
import type { TurnOutcome } from '#schema/events/envelope.ts';
import type { DeliveryReason, NewPrompt, PromptState, PromptWithParts } from '../app/session-records.ts';
import type { Statement } from './statement.ts';

const COLUMNS = `id, session_uid, message_id, ordinal, state, origin, delivery, delivery_reason, agent, model, sent_by,
  attempt, turn_id, outcome, message, created_at, started_at, ended_at`;

/** Inserts prompts; no row comes back for a message id that the session already has, or a session that is not there. */
export const insertPrompts = (prompts: readonly NewPrompt[]): Statement<PromptState> => ({
  text: `insert into prompts (id, session_uid, message_id, origin, delivery, parts, agent, model, delivery_reason,
      sent_by)
    select p.* from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[]::json[], $7::text[], $8::text[],
      $9::text[], $10::text[]) as p(id, session_uid, message_id, origin, delivery, parts, agent, model, delivery_reason, sent_by)
      join sessions s on s.uid = p.session_uid and s.closed_at is null
    on conflict (session_uid, message_id) do nothing returning ${COLUMNS}`,
  values: [
    prompts.map((prompt) => prompt.id),
    prompts.map((prompt) => prompt.sessionUid),
    prompts.map((prompt) => prompt.messageId),
    prompts.map((prompt) => prompt.origin),
    prompts.map((prompt) => prompt.delivery),
    prompts.map((prompt) => JSON.stringify(prompt.parts)),
    prompts.map((prompt) => prompt.agent),
    prompts.map((prompt) => prompt.model),
    prompts.map((prompt) => prompt.deliveryReason ?? null),
    prompts.map((prompt) => prompt.sentBy),
  ],
});

/** One prompt of a session by id. */
export const getPrompt = (sessionUid: string, id: string): Statement<PromptState> => ({
  text: `select ${COLUMNS} from prompts where session_uid = $1 and id = $2`,
  values: [sessionUid, id],
});

/** One prompt of a session by the client's id, with its parts. */
export const getPromptByMessageId = (sessionUid: string, messageId: string): Statement<PromptWithParts> => ({
  text: `select ${COLUMNS}, parts from prompts where session_uid = $1 and message_id = $2`,
  values: [sessionUid, messageId],
});

/** Prompts below an ordinal, newest first. */
export const listPrompts = (sessionUid: string, below: number, limit: number): Statement<PromptState> => ({
  text: `select ${COLUMNS} from prompts where session_uid = $1 and ordinal < $2 order by ordinal desc limit $3`,
  values: [sessionUid, below, limit],
});

/** How many prompts wait. */
export const countQueued = (sessionUid: string): Statement<{ count: number }> => ({
  text: `select count(*)::int as count from prompts where session_uid = $1 and state = 'queued'`,
  values: [sessionUid],
});

/** The prompt that runs, with its parts. */
export const getRunningPrompt = (sessionUid: string): Statement<PromptWithParts> => ({
  text: `select ${COLUMNS}, parts from prompts where session_uid = $1 and state = 'running'`,
  values: [sessionUid],
});

/** The prompt that is due: interrupts first, then by age. */
export const getNextPrompt = (sessionUid: string): Statement<PromptWithParts> => ({
  text: `select ${COLUMNS}, parts from prompts where session_uid = $1 and state = 'queued'
    order by (delivery = 'interrupt') desc, ordinal limit 1`,
  values: [sessionUid],
});

/** Starts an attempt. */
export const startPrompt = (id: string, attempt: number, turnId: string): Statement => ({
  text: `update prompts set state = 'running', attempt = $2, turn_id = $3, started_at = coalesce(started_at, now()),
      delivery_reason = case when delivery = 'steer' then 'turn_ended' else delivery_reason end,
      delivery = case when delivery = 'steer' then 'queue' else delivery end
    where id = $1 and state = 'queued'`,
  values: [id, attempt, turnId],
});

/** What becomes of prompts whose turn ended. */
export type PromptEnd = Readonly<{
  id: string;
  requeue: boolean;
  outcome: TurnOutcome;
  message: string | null;
}>;

/** Ends running prompts, or puts them back where they were in the queue. */
export const endPrompts = (ends: readonly PromptEnd[]): Statement => ({
  text: `update prompts p set
      state = case when e.requeue then 'queued' else 'ended' end,
      outcome = case when e.requeue then null else e.outcome end,
      message = case when e.requeue then null else e.message end,
      ended_at = case when e.requeue then null else now() end
    from unnest($1::text[], $2::boolean[], $3::text[], $4::text[]) as e(id, requeue, outcome, message)
    where p.id = e.id and p.state = 'running'`,
  values: [
    ends.map((end) => end.id),
    ends.map((end) => end.requeue),
    ends.map((end) => end.outcome),
    ends.map((end) => end.message),
  ],
});

/** A prompt that waits and cannot join the running turn waits in the queue. */
export const queueSteered = (sessionUid: string, id: string, reason: DeliveryReason): Statement<PromptState> => ({
  text: `update prompts set delivery = 'queue', delivery_reason = $3
    where session_uid = $1 and id = $2 and state = 'queued' and delivery = 'steer' returning ${COLUMNS}`,
  values: [sessionUid, id, reason],
});

/** A prompt that joined a running turn. */
export type SteeredPrompt = Readonly<{ sessionUid: string; promptId: string; turnId: string }>;

/** Ends prompts that joined a running turn; they never run by themselves. */
export const endSteered = (prompts: readonly SteeredPrompt[]): Statement => ({
  text: `update prompts p set state = 'ended', outcome = 'Succeeded', turn_id = s.turn_id, started_at = now(),
      ended_at = now(), message = 'joined the running turn'
    from unnest($1::text[], $2::text[], $3::text[]) as s(session_uid, id, turn_id)
    where p.session_uid = s.session_uid and p.id = s.id and p.state = 'queued'`,
  values: [
    prompts.map((prompt) => prompt.sessionUid),
    prompts.map((prompt) => prompt.promptId),
    prompts.map((prompt) => prompt.turnId),
  ],
});

/** Withdraws a prompt that waits; no row when it does not. */
export const withdrawPrompt = (sessionUid: string, id: string): Statement<{ id: string }> => ({
  text: `update prompts set state = 'withdrawn', ended_at = now()
    where session_uid = $1 and id = $2 and state = 'queued' returning id`,
  values: [sessionUid, id],
});

/** Withdraws every prompt that waits. */
export const withdrawAllPrompts = (sessionUid: string): Statement => ({
  text: `update prompts set state = 'withdrawn', ended_at = now() where session_uid = $1 and state = 'queued'`,
  values: [sessionUid],
});
