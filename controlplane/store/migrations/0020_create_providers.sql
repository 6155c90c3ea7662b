-- compatible
-- The provider registry. One counter grows with every change of it, so that a cache knows when it is old.
create table providers (
  id text primary key,
  -- Everything of the definition but id and key, as schema/settings/providers.ts has it.
  definition jsonb not null,
  -- Sealed by store/seal.ts; null without a key.
  api_key bytea,
  generation bigint not null check (generation >= 1),
  created_at timestamptz not null,
  updated_at timestamptz not null
);

create table provider_registry (
  single boolean primary key default true check (single),
  generation bigint not null
);

insert into provider_registry (generation) values (0);
