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

-- Appends what continues its log exactly, in one round trip: moves the counters of each session, places its events
-- behind the old head, tells every replica with few notifications. Gives back the new heads in the
-- order of the sessions; 0 for one of another generation, a closed one, a gap or a resend, which stays untouched.
-- Sessions come in the order of their uids, so that two appends cannot wait for each other.
create function append_continuations(
  uids text[], generations integer[], first_ns integer[], last_ns integer[],
  places integer[], session_uids text[], ns integer[], ids text[], types text[], thread_ids text[], turn_ids text[],
  ats timestamptz[], hiddens boolean[], caused_bys text[], datas json[]
) returns bigint[] language plpgsql as $$
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
end $$;
