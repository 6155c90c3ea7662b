-- compatible
-- The event log: dense per session. No foreign key: the session's row is locked by every append. Owner: store/events.ts.
create table events (
  session_uid text not null,
  seq bigint not null,
  generation integer not null,
  n integer,
  id text not null,
  type text not null,
  thread_id text not null,
  turn_id text,
  at timestamptz not null,
  hidden boolean not null,
  caused_by text,
  data json not null,
  primary key (session_uid, seq)
);
create unique index events_resend on events (session_uid, generation, n) where n is not null;
create unique index events_one_terminal on events (session_uid, turn_id) where type = 'turn.ended';

-- Data of events above 256 KiB; events.data then holds {"blob": {"bytes", "sha256"}}.
create table event_blobs (
  session_uid text not null,
  seq bigint not null,
  data text not null,
  primary key (session_uid, seq)
);
