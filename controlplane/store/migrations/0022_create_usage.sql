-- compatible
-- One row per model call. Rows are written in batches after the answer; the id makes a repeated batch harmless.
create table usage (
  id uuid primary key,
  at timestamptz not null,
  namespace text not null,
  project_uid text not null,
  session_uid text not null,
  generation integer not null,
  turn_id text,
  model text not null,
  served_model text,
  status integer not null,
  code text,
  prompt_tokens bigint not null,
  cached_tokens bigint not null,
  completion_tokens bigint not null,
  -- True when the provider reported no tokens and they were counted from the stream.
  estimated boolean not null,
  cost_micro_usd bigint not null,
  first_byte_ms integer,
  duration_ms integer not null,
  request_bytes bigint not null,
  response_bytes bigint not null
);

create index usage_project_at on usage (project_uid, at);
create index usage_session_at on usage (session_uid, at);
