-- compatible
-- The pools of keys. Owner: store/provider-store.ts. providers.api_key repeats the first key for the version before.
create table provider_keys (
  provider_id text not null references providers on delete cascade,
  id text not null,
  position integer not null,
  -- Sealed by store/seal.ts.
  sealed bytea not null,
  -- Last characters in clear, for people; null for short keys.
  last_four text,
  added_at timestamptz not null,
  primary key (provider_id, id)
);

insert into provider_keys (provider_id, id, position, sealed, last_four, added_at)
  select id, 'default', 0, api_key, null, updated_at from providers where api_key is not null;
