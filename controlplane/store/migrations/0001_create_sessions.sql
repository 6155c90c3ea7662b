-- compatible
-- One row per Session uid: the claim, the fence, and the counters of its event log. Owner: store/sessions.ts.
create table sessions (
  uid text primary key,
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
  created_at timestamptz not null default now(),
  claimed_at timestamptz,
  idle_since timestamptz not null default now(),
  closed_at timestamptz,
  check (generation >= 0),
  check (head_seq >= first_seq - 1)
) with (fillfactor = 50);
create index sessions_project on sessions (project_uid);
create index sessions_pod on sessions (pod_uid) where pod_uid is not null;
create index sessions_closed on sessions (closed_at) where closed_at is not null;

create function refuse_older_generation() returns trigger language plpgsql as $$
begin
  raise exception 'a generation only grows' using errcode = 'check_violation';
end $$;
create trigger sessions_generation_grows before update of generation on sessions
  for each row when (new.generation < old.generation) execute function refuse_older_generation();

-- Credentials of claims: found by prefix, compared by hash. Those of older generations stay a while, so that an old
-- daemon is told that it is superseded.
create table credentials (
  prefix text primary key,
  hash bytea not null,
  session_uid text not null references sessions (uid) on delete cascade,
  generation integer not null,
  pod_uid text not null,
  created_at timestamptz not null default now()
);
create index credentials_session on credentials (session_uid);
