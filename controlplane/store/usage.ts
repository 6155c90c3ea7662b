// Statements of the table of model calls. Must not know how a call is made or metered.
import type { UsageRow } from '../gateway/ports.ts';
import type { Statement } from './statement.ts';

/** Inserts rows in one statement; rows whose id is there already are skipped. */
export const insertUsage = (rows: readonly UsageRow[]): Statement => ({
  text: `insert into usage (id, at, namespace, project_uid, session_uid, generation, turn_id, model, served_model, status,
      code, prompt_tokens, cached_tokens, completion_tokens, estimated, cost_micro_usd, first_byte_ms, duration_ms,
      request_bytes, response_bytes)
    select "id", "at", "namespace", "projectUid", "sessionUid", "generation", "turnId", "model", "servedModel", "status",
      "code", "promptTokens", "cachedTokens", "completionTokens", "estimated", "costMicroUsd", "firstByteMs",
      "durationMs", "requestBytes", "responseBytes"
    from jsonb_to_recordset($1::jsonb) as r("id" uuid, "at" timestamptz, "namespace" text, "projectUid" text,
      "sessionUid" text, "generation" integer, "turnId" text, "model" text, "servedModel" text, "status" integer,
      "code" text, "promptTokens" bigint, "cachedTokens" bigint, "completionTokens" bigint, "estimated" boolean,
      "costMicroUsd" bigint, "firstByteMs" integer, "durationMs" integer, "requestBytes" bigint, "responseBytes" bigint)
    on conflict (id) do nothing`,
  values: [JSON.stringify(rows)],
});
