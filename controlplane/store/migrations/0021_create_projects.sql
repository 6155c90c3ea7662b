-- compatible
-- What was asked for and found out about each project. The mirror itself is a cache on disk and has no row.
create table projects (
  uid text primary key,
  namespace text not null,
  name text not null,
  -- The newest sync request, as schema/wire/sync.ts has it.
  request jsonb not null,
  -- The newest answer; null before the first.
  fact jsonb,
  -- Compiled agents of the last commit with a valid manifest; null before there was one.
  config jsonb,
  -- Grows when a referenced Secret changes.
  secrets_revision integer not null default 0,
  registry_generation bigint not null default 0,
  -- When to look at the remote next; null while polling is off.
  due_at timestamptz
);

create index projects_due on projects (due_at) where due_at is not null;
create index projects_registry_generation on projects (registry_generation);
