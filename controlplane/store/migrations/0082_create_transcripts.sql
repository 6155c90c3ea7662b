-- compatible
-- The conversation as messages and parts, folded from the event log when somebody reads it. Owner: store/transcript.ts.
create table transcripts (
  session_uid text primary key references sessions (uid) on delete cascade,
  folded_seq bigint not null default 0,
  reverted_from text
);

create table messages (
  session_uid text not null references sessions (uid) on delete cascade,
  id text not null,
  thread_id text not null,
  -- Place of the first event about it.
  ordinal bigint not null,
  turn_id text,
  hidden boolean not null,
  data json not null,
  primary key (session_uid, id)
);
create index messages_by_place on messages (session_uid, thread_id, ordinal);

create table message_parts (
  session_uid text not null,
  message_id text not null,
  id text not null,
  ordinal bigint not null,
  hidden boolean not null,
  call_id text,
  data json not null,
  -- Visible text only; null for everything else.
  words tsvector,
  primary key (session_uid, message_id, id),
  foreign key (session_uid, message_id) references messages (session_uid, id) on delete cascade
);
create index message_parts_calls on message_parts (session_uid, call_id) where call_id is not null;

-- The plan as it stands is the newest of these.
create index events_of_plan on events (session_uid, thread_id, seq) where type = 'todo.updated';
