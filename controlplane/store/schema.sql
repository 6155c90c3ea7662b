-- The database after all migrations, read from its catalogue. Written by: make schema

create sequence fact_versions;

CREATE OR REPLACE FUNCTION public.append_continuations(uids text[], generations integer[], first_ns integer[], last_ns integer[], places integer[], session_uids text[], ns integer[], ids text[], types text[], thread_ids text[], turn_ids text[], ats timestamp with time zone[], hiddens boolean[], caused_bys text[], datas json[])
 RETURNS bigint[]
 LANGUAGE plpgsql
AS $function$
declare
  heads bigint[] := array_fill(0::bigint, array[cardinality(generations)]);
  log record;
  told text := '';
begin
  for log in
    update sessions s set head_seq = s.head_seq + (c.last_n - c.first_n + 1), acknowledged_n = c.last_n
      from unnest(uids, generations, first_ns, last_ns) with ordinality as c(uid, generation, first_n, last_n, place)
      where s.uid = c.uid and s.generation = c.generation and s.acknowledged_n = c.first_n - 1 and s.closed_at is null
      returning s.uid, s.head_seq, c.place
  loop
    heads[log.place] := log.head_seq;
    told := told || ' ' || log.uid || ':' || log.head_seq;
    if length(told) > 7000 then
      perform pg_notify('beeuni_events', ltrim(told));
      told := '';
    end if;
  end loop;
  if told <> '' then
    perform pg_notify('beeuni_events', ltrim(told));
  end if;
  insert into events (session_uid, seq, generation, n, id, type, thread_id, turn_id, at, hidden, caused_by, data)
    select e.session_uid, heads[e.place] - (last_ns[e.place] - e.n), generations[e.place], e.n, e.id, e.type,
      e.thread_id, e.turn_id, e.at, e.hidden, e.caused_by, e.data
    from unnest(places, session_uids, ns, ids, types, thread_ids, turn_ids, ats, hiddens, caused_bys, datas)
      as e(place, session_uid, n, id, type, thread_id, turn_id, at, hidden, caused_by, data)
    where heads[e.place] > 0;
  return heads;
end $function$;

CREATE OR REPLACE FUNCTION public.refuse_older_generation()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  raise exception 'a generation only grows' using errcode = 'check_violation';
end $function$;

create table agent_policies (
  project_uid text not null,
  agent text not null,
  vision boolean,
  vision_describe boolean,
  vision_keep_images integer,
  revision bigint not null default 0,
  updated_at timestamp with time zone not null default now(),
  constraint agent_policies_project_uid_fkey FOREIGN KEY (project_uid) REFERENCES projects(uid) ON DELETE CASCADE,
  constraint agent_policies_pkey PRIMARY KEY (project_uid, agent)
);

create table audit (
  id bigint not null generated always as identity,
  at timestamp with time zone not null default now(),
  request_id text not null,
  subject text not null,
  operation text not null,
  namespace text,
  name text,
  body_digest text not null,
  status integer,
  code text,
  ended_at timestamp with time zone,
  before jsonb,
  after jsonb,
  before_digest text,
  after_digest text,
  constraint audit_pkey PRIMARY KEY (id)
);

create table budget_leases (
  scope text not null,
  uid text not null,
  period text not null,
  replica text not null,
  held_micro_usd bigint not null,
  expires_at timestamp with time zone not null,
  constraint budget_leases_pkey PRIMARY KEY (scope, uid, period, replica)
);

create table budget_spend (
  scope text not null,
  uid text not null,
  period text not null,
  spent_micro_usd bigint not null,
  reached_limit_micro_usd bigint,
  constraint budget_spend_pkey PRIMARY KEY (scope, uid, period)
);

create table credentials (
  prefix text not null,
  hash bytea not null,
  session_uid text not null,
  generation integer not null,
  pod_uid text not null,
  created_at timestamp with time zone not null default now(),
  constraint credentials_session_uid_fkey FOREIGN KEY (session_uid) REFERENCES sessions(uid) ON DELETE CASCADE,
  constraint credentials_pkey PRIMARY KEY (prefix)
);

create table event_blobs (
  session_uid text not null,
  seq bigint not null,
  data text not null,
  constraint event_blobs_pkey PRIMARY KEY (session_uid, seq)
);

create table events (
  session_uid text not null,
  seq bigint not null,
  generation integer not null,
  n integer,
  id text not null,
  type text not null,
  thread_id text not null,
  turn_id text,
  at timestamp with time zone not null,
  hidden boolean not null,
  caused_by text,
  data json not null,
  constraint events_pkey PRIMARY KEY (session_uid, seq)
);

create table fact_stream (
  single boolean not null default true,
  epoch text not null default (gen_random_uuid())::text,
  horizon bigint not null default 0,
  constraint fact_stream_single_check CHECK (single),
  constraint fact_stream_pkey PRIMARY KEY (single)
);

create table facts (
  uid text not null,
  kind text not null,
  version bigint not null,
  body jsonb,
  changed_at timestamp with time zone not null default now(),
  constraint facts_kind_check CHECK ((kind = ANY (ARRAY['project'::text, 'session'::text, 'registry'::text, 'gone'::text]))),
  constraint facts_pkey PRIMARY KEY (uid)
);

create table health_reports (
  session_uid text not null,
  generation integer not null,
  state text not null,
  reported_at timestamp with time zone not null,
  digest text not null,
  document json not null,
  constraint health_reports_state_check CHECK ((state = ANY (ARRAY['Answering'::text, 'Silent'::text]))),
  constraint health_reports_session_uid_fkey FOREIGN KEY (session_uid) REFERENCES sessions(uid) ON DELETE CASCADE,
  constraint health_reports_pkey PRIMARY KEY (session_uid)
);

create table human_requests (
  session_uid text not null,
  id text not null,
  kind text not null,
  generation integer not null,
  thread_id text not null,
  turn_id text,
  data json not null,
  asked_at timestamp with time zone not null,
  deadline_at timestamp with time zone,
  answer json,
  answered_by text,
  answered_at timestamp with time zone,
  ended_at timestamp with time zone,
  outcome text,
  constraint human_requests_check CHECK (((ended_at IS NULL) = (outcome IS NULL))),
  constraint human_requests_check1 CHECK (((answer IS NULL) = (answered_at IS NULL))),
  constraint human_requests_kind_check CHECK ((kind = ANY (ARRAY['permission'::text, 'question'::text]))),
  constraint human_requests_outcome_check CHECK ((outcome = ANY (ARRAY['once'::text, 'always'::text, 'reject'::text, 'answered'::text]))),
  constraint human_requests_session_uid_fkey FOREIGN KEY (session_uid) REFERENCES sessions(uid) ON DELETE CASCADE,
  constraint human_requests_pkey PRIMARY KEY (session_uid, id)
);

create table idempotency_keys (
  subject text not null,
  key text not null,
  digest text not null,
  created_at timestamp with time zone not null default now(),
  status integer,
  body json,
  constraint idempotency_keys_pkey PRIMARY KEY (subject, key)
);

create table message_parts (
  session_uid text not null,
  message_id text not null,
  id text not null,
  ordinal bigint not null,
  hidden boolean not null,
  call_id text,
  data json not null,
  words tsvector,
  constraint message_parts_session_uid_message_id_fkey FOREIGN KEY (session_uid, message_id) REFERENCES messages(session_uid, id) ON DELETE CASCADE,
  constraint message_parts_pkey PRIMARY KEY (session_uid, message_id, id)
);

create table messages (
  session_uid text not null,
  id text not null,
  thread_id text not null,
  ordinal bigint not null,
  turn_id text,
  hidden boolean not null,
  data json not null,
  constraint messages_session_uid_fkey FOREIGN KEY (session_uid) REFERENCES sessions(uid) ON DELETE CASCADE,
  constraint messages_pkey PRIMARY KEY (session_uid, id)
);

create table projects (
  uid text not null,
  namespace text not null,
  name text not null,
  request jsonb not null,
  fact jsonb,
  config jsonb,
  secrets_revision integer not null default 0,
  registry_generation bigint not null default 0,
  due_at timestamp with time zone,
  constraint projects_pkey PRIMARY KEY (uid)
);

create table prompts (
  id text not null,
  session_uid text not null,
  message_id text not null,
  ordinal bigint not null generated always as identity,
  state text not null default 'queued'::text,
  origin text not null,
  delivery text not null,
  parts json not null,
  agent text,
  model text,
  attempt integer not null default 0,
  turn_id text,
  outcome text,
  message text,
  created_at timestamp with time zone not null default now(),
  started_at timestamp with time zone,
  ended_at timestamp with time zone,
  delivery_reason text,
  sent_by text,
  constraint prompts_delivery_check CHECK ((delivery = ANY (ARRAY['queue'::text, 'interrupt'::text, 'steer'::text]))),
  constraint prompts_origin_check CHECK ((origin = ANY (ARRAY['spec'::text, 'rest'::text]))),
  constraint prompts_outcome_check CHECK ((outcome = ANY (ARRAY['Succeeded'::text, 'Failed'::text, 'Aborted'::text, 'Interrupted'::text]))),
  constraint prompts_state_check CHECK ((state = ANY (ARRAY['queued'::text, 'running'::text, 'ended'::text, 'withdrawn'::text]))),
  constraint prompts_session_uid_fkey FOREIGN KEY (session_uid) REFERENCES sessions(uid) ON DELETE CASCADE,
  constraint prompts_pkey PRIMARY KEY (id),
  constraint prompts_session_uid_message_id_key UNIQUE (session_uid, message_id)
);

create table provider_keys (
  provider_id text not null,
  id text not null,
  position integer not null,
  sealed bytea not null,
  last_four text,
  added_at timestamp with time zone not null,
  constraint provider_keys_provider_id_fkey FOREIGN KEY (provider_id) REFERENCES providers(id) ON DELETE CASCADE,
  constraint provider_keys_pkey PRIMARY KEY (provider_id, id)
);

create table provider_registry (
  single boolean not null default true,
  generation bigint not null,
  constraint provider_registry_single_check CHECK (single),
  constraint provider_registry_pkey PRIMARY KEY (single)
);

create table providers (
  id text not null,
  definition jsonb not null,
  api_key bytea,
  generation bigint not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint providers_generation_check CHECK ((generation >= 1)),
  constraint providers_pkey PRIMARY KEY (id)
);

create table schema_migrations (
  version integer not null,
  name text not null,
  kind text not null,
  applied_at timestamp with time zone not null default now(),
  constraint schema_migrations_pkey PRIMARY KEY (version)
);

create table session_titles (
  session_uid text not null,
  state text not null default 'due'::text,
  title text,
  model text,
  reason text,
  attempts integer not null default 0,
  due_at timestamp with time zone not null default now(),
  constraint session_titles_check CHECK (((state = 'made'::text) = (title IS NOT NULL))),
  constraint session_titles_state_check CHECK ((state = ANY (ARRAY['due'::text, 'made'::text, 'off'::text]))),
  constraint session_titles_session_uid_fkey FOREIGN KEY (session_uid) REFERENCES sessions(uid) ON DELETE CASCADE,
  constraint session_titles_pkey PRIMARY KEY (session_uid)
);

create table sessions (
  uid text not null,
  namespace text not null,
  name text not null,
  project_uid text not null,
  generation integer not null default 0,
  pod_uid text,
  fenced_pod_uid text,
  harness text,
  daemon_credential bytea,
  want_start boolean not null default false,
  budget_reached boolean not null default false,
  head_seq bigint not null default 0,
  first_seq bigint not null default 1,
  acknowledged_n integer not null default 0,
  last_turn_id text,
  created_at timestamp with time zone not null default now(),
  claimed_at timestamp with time zone,
  idle_since timestamp with time zone not null default now(),
  closed_at timestamp with time zone,
  capabilities json,
  agent_repoint json,
  constraint sessions_check CHECK ((head_seq >= (first_seq - 1))),
  constraint sessions_generation_check CHECK ((generation >= 0)),
  constraint sessions_pkey PRIMARY KEY (uid)
) with (fillfactor=50);

create table transcripts (
  session_uid text not null,
  folded_seq bigint not null default 0,
  reverted_from text,
  constraint transcripts_session_uid_fkey FOREIGN KEY (session_uid) REFERENCES sessions(uid) ON DELETE CASCADE,
  constraint transcripts_pkey PRIMARY KEY (session_uid)
);

create table turns (
  id text not null,
  session_uid text not null,
  prompt_id text not null,
  generation integer not null,
  attempt integer not null,
  abort_asked boolean not null default false,
  thread_id text,
  taken_at timestamp with time zone not null default now(),
  started_at timestamp with time zone,
  ended_at timestamp with time zone,
  outcome text,
  code text,
  message text,
  summary text,
  commit_sha text,
  final boolean not null default false,
  settings jsonb,
  start_seq bigint,
  end_seq bigint,
  constraint turns_check CHECK (((ended_at IS NULL) = (outcome IS NULL))),
  constraint turns_outcome_check CHECK ((outcome = ANY (ARRAY['Succeeded'::text, 'Failed'::text, 'Aborted'::text, 'Interrupted'::text]))),
  constraint turns_prompt_id_fkey FOREIGN KEY (prompt_id) REFERENCES prompts(id) ON DELETE CASCADE,
  constraint turns_session_uid_fkey FOREIGN KEY (session_uid) REFERENCES sessions(uid) ON DELETE CASCADE,
  constraint turns_pkey PRIMARY KEY (id)
);

create table usage (
  id uuid not null,
  at timestamp with time zone not null,
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
  estimated boolean not null,
  cost_micro_usd bigint not null,
  first_byte_ms integer,
  duration_ms integer not null,
  request_bytes bigint not null,
  response_bytes bigint not null,
  agent text,
  fallback_from text,
  constraint usage_pkey PRIMARY KEY (id)
);

create table workspace_settings (
  key text not null,
  value jsonb not null,
  updated_at timestamp with time zone not null default now(),
  constraint workspace_settings_pkey PRIMARY KEY (key)
);

create table workspace_settings_revision (
  single boolean not null default true,
  revision bigint not null,
  constraint workspace_settings_revision_single_check CHECK (single),
  constraint workspace_settings_revision_pkey PRIMARY KEY (single)
);

CREATE INDEX audit_by_age ON public.audit USING btree (at);
CREATE INDEX audit_by_object ON public.audit USING btree (namespace, name, at);
CREATE INDEX audit_by_subject ON public.audit USING btree (subject, id);
CREATE INDEX credentials_session ON public.credentials USING btree (session_uid);
CREATE INDEX events_of_plan ON public.events USING btree (session_uid, thread_id, seq) WHERE (type = 'todo.updated'::text);
CREATE UNIQUE INDEX events_one_terminal ON public.events USING btree (session_uid, turn_id) WHERE (type = 'turn.ended'::text);
CREATE UNIQUE INDEX events_resend ON public.events USING btree (session_uid, generation, n) WHERE (n IS NOT NULL);
CREATE UNIQUE INDEX facts_version ON public.facts USING btree (version);
CREATE INDEX health_reports_oldest ON public.health_reports USING btree (reported_at) WHERE (state = 'Answering'::text);
CREATE INDEX human_requests_by_age ON public.human_requests USING btree (asked_at, session_uid, id) WHERE (ended_at IS NULL);
CREATE INDEX human_requests_open ON public.human_requests USING btree (session_uid) WHERE (ended_at IS NULL);
CREATE INDEX idempotency_keys_by_age ON public.idempotency_keys USING btree (created_at);
CREATE INDEX message_parts_calls ON public.message_parts USING btree (session_uid, call_id) WHERE (call_id IS NOT NULL);
CREATE INDEX messages_by_place ON public.messages USING btree (session_uid, thread_id, ordinal);
CREATE INDEX projects_due ON public.projects USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX projects_registry_generation ON public.projects USING btree (registry_generation);
CREATE INDEX prompts_by_age ON public.prompts USING btree (session_uid, ordinal);
CREATE UNIQUE INDEX prompts_one_running ON public.prompts USING btree (session_uid) WHERE (state = 'running'::text);
CREATE INDEX prompts_waiting ON public.prompts USING btree (session_uid, ((delivery = 'interrupt'::text)) DESC, ordinal) WHERE (state = 'queued'::text);
CREATE INDEX session_titles_due ON public.session_titles USING btree (due_at) WHERE (state = 'due'::text);
CREATE INDEX sessions_closed ON public.sessions USING btree (closed_at) WHERE (closed_at IS NOT NULL);
CREATE INDEX sessions_pod ON public.sessions USING btree (pod_uid) WHERE (pod_uid IS NOT NULL);
CREATE INDEX sessions_project ON public.sessions USING btree (project_uid);
CREATE INDEX turns_by_session ON public.turns USING btree (session_uid, taken_at);
CREATE UNIQUE INDEX turns_one_open ON public.turns USING btree (session_uid) WHERE (ended_at IS NULL);
CREATE INDEX usage_at ON public.usage USING brin (at);
CREATE INDEX usage_by_age ON public.usage USING btree (at);
CREATE INDEX usage_project_at ON public.usage USING btree (project_uid, at);
CREATE INDEX usage_session_at ON public.usage USING btree (session_uid, at);
CREATE TRIGGER sessions_generation_grows BEFORE UPDATE OF generation ON public.sessions FOR EACH ROW WHEN ((new.generation < old.generation)) EXECUTE FUNCTION refuse_older_generation();
