-- compatible
-- Saved workspace settings, one row a key; a key that nothing is saved for has none. Owner: store/settings-store.ts.
create table workspace_settings (
  key text primary key,
  value jsonb not null,
  updated_at timestamptz not null default now()
);

-- The lock of every change, and the number of changes so far.
create table workspace_settings_revision (
  single boolean primary key default true check (single),
  revision bigint not null
);
insert into workspace_settings_revision (revision) values (0);

-- What a changed setting was and became, as JSON; null for every other change.
alter table audit add column if not exists before jsonb;
alter table audit add column if not exists after jsonb;
