// Statements of the table of model calls. Must not know how a call is made or metered.
import type { UsageRow } from '../gateway/ports.ts';
import type { Statement } from './statement.ts';

/** Version of Postgres' binary `jsonb`, which stands before the text. */
const JSONB_VERSION = '\u0001';

/** JSON as a binary parameter: a text of this size lies in V8's heap until the statement has ended, and is old by then. */
const jsonbOf = (value: unknown): Buffer => Buffer.from(JSONB_VERSION + JSON.stringify(value));

/**
 * Inserts rows and adds their cost to what was spent, in one statement. Rows whose id is there already are skipped and
 * cost nothing again.
 */
export const insertUsage = (rows: readonly UsageRow[]): Statement => ({
  text: `with stored as (
      insert into usage (id, at, namespace, project_uid, session_uid, generation, turn_id, agent, model, served_model,
        fallback_from, status, code, prompt_tokens, cached_tokens, completion_tokens, estimated, cost_micro_usd,
        first_byte_ms, duration_ms, request_bytes, response_bytes)
      select "id", "at", "namespace", "projectUid", "sessionUid", "generation", "turnId", "agent", "model",
        "servedModel", "fallbackFrom", "status", "code", "promptTokens", "cachedTokens", "completionTokens",
        "estimated", "costMicroUsd", "firstByteMs", "durationMs", "requestBytes", "responseBytes"
      from jsonb_to_recordset($1::jsonb) as r("id" uuid, "at" timestamptz, "namespace" text, "projectUid" text,
        "sessionUid" text, "generation" integer, "turnId" text, "agent" text, "model" text, "servedModel" text,
        "fallbackFrom" text, "status" integer, "code" text, "promptTokens" bigint, "cachedTokens" bigint,
        "completionTokens" bigint, "estimated" boolean, "costMicroUsd" bigint, "firstByteMs" integer,
        "durationMs" integer, "requestBytes" bigint, "responseBytes" bigint)
      on conflict (id) do nothing
      returning session_uid, project_uid, at at time zone 'utc' as at, cost_micro_usd
    ), costs as (
      select 'session' as scope, session_uid as uid, '' as period, cost_micro_usd as cost from stored
      union all select 'project_day', project_uid, to_char(at, 'YYYY-MM-DD'), cost_micro_usd from stored
      union all select 'project_month', project_uid, to_char(at, 'YYYY-MM'), cost_micro_usd from stored
    )
    insert into budget_spend as b (scope, uid, period, spent_micro_usd)
    select scope, uid, period, sum(cost) from costs where cost > 0 group by scope, uid, period
    order by scope, uid, period
    on conflict (scope, uid, period) do update set spent_micro_usd = b.spent_micro_usd + excluded.spent_micro_usd`,
  values: [jsonbOf(rows)],
});

/** Removes rows that are older than any answer reaches, at most so many; a row for each. */
export const forgetUsage = (days: number, most: number): Statement<Readonly<{ id: string }>> => ({
  text: `delete from usage where id in (
      select id from usage where at < now() - $1 * interval '1 day' limit $2) returning id`,
  values: [days, most],
});
