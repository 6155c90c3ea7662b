-- compatible
-- The prompt inbox and the turns that ran them. Owner: store/prompts.ts, store/turns.ts.
create table prompts (
  id text primary key,
  session_uid text not null references sessions (uid) on delete cascade,
  message_id text not null,
  ordinal bigint generated always as identity,
  state text not null default 'queued' check (state in ('queued', 'running', 'ended', 'withdrawn')),
  origin text not null check (origin in ('spec', 'rest')),
  delivery text not null check (delivery in ('queue', 'interrupt')),
  parts json not null,
  agent text,
  model text,
  attempt integer not null default 0,
  turn_id text,
  outcome text check (outcome in ('Succeeded', 'Failed', 'Aborted', 'Interrupted')),
  message text,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  ended_at timestamptz,
  unique (session_uid, message_id)
);
create index prompts_by_age on prompts (session_uid, ordinal);
create index prompts_waiting on prompts (session_uid, (delivery = 'interrupt') desc, ordinal) where state = 'queued';
create unique index prompts_one_running on prompts (session_uid) where state = 'running';

create table turns (
  id text primary key,
  session_uid text not null references sessions (uid) on delete cascade,
  prompt_id text not null references prompts (id) on delete cascade,
  generation integer not null,
  attempt integer not null,
  abort_asked boolean not null default false,
  thread_id text,
  taken_at timestamptz not null default now(),
  started_at timestamptz,
  ended_at timestamptz,
  outcome text check (outcome in ('Succeeded', 'Failed', 'Aborted', 'Interrupted')),
  code text,
  message text,
  summary text,
  commit_sha text,
  final boolean not null default false,
  check ((ended_at is null) = (outcome is null))
);
create unique index turns_one_open on turns (session_uid) where ended_at is null;
create index turns_by_session on turns (session_uid, taken_at);
