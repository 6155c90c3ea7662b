-- compatible
-- What harnesses asked people, and what people answered. Written by the events of the daemon. Owner: store/human-requests.ts.
create table human_requests (
  session_uid text not null references sessions (uid) on delete cascade,
  id text not null,
  kind text not null check (kind in ('permission', 'question')),
  generation integer not null,
  thread_id text not null,
  turn_id text,
  data json not null,
  asked_at timestamptz not null,
  deadline_at timestamptz,
  -- What a person said, stored before anybody is told.
  answer json,
  answered_by text,
  answered_at timestamptz,
  -- Once the daemon has taken an answer, its deadline passed or its turn is over.
  ended_at timestamptz,
  outcome text check (outcome in ('once', 'always', 'reject', 'answered')),
  primary key (session_uid, id),
  check ((ended_at is null) = (outcome is null)),
  check ((answer is null) = (answered_at is null))
);
create index human_requests_open on human_requests (session_uid) where ended_at is null;
create index human_requests_by_age on human_requests (asked_at, session_uid, id) where ended_at is null;

-- Where in the log a turn begins and ends, so that its events are found without reading the whole log.
alter table turns add column start_seq bigint, add column end_seq bigint;

-- What the newest harness offered; it outlives the report of its daemon.
alter table sessions add column capabilities json;
