-- compatible
-- The title of a session, made once from its first prompt. A row comes with the first prompt; `due_at` is when it is looked
-- at next, and the lease of whoever does. Owner: store/titles.ts.
create table session_titles (
  session_uid text primary key references sessions (uid) on delete cascade,
  state text not null default 'due' check (state in ('due', 'made', 'off')),
  title text,
  model text,
  -- Why there is none yet.
  reason text,
  attempts integer not null default 0,
  due_at timestamptz not null default now(),
  check ((state = 'made') = (title is not null))
);
create index session_titles_due on session_titles (due_at) where state = 'due';
