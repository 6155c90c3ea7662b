-- compatible
-- What was spent of each budget, and what replicas have leased of it for calls that are not over.
-- scope: session (period empty), project_day (period YYYY-MM-DD in UTC), project_month (period YYYY-MM).
create table budget_spend (
  scope text not null,
  uid text not null,
  period text not null,
  spent_micro_usd bigint not null,
  -- Set when a call was refused for this budget; one event tells it, until the limit is another one.
  reached_limit_micro_usd bigint,
  primary key (scope, uid, period)
);

create table budget_leases (
  scope text not null,
  uid text not null,
  period text not null,
  replica text not null,
  held_micro_usd bigint not null,
  -- A lease of a replica that died counts no longer after this.
  expires_at timestamptz not null,
  primary key (scope, uid, period, replica)
);

-- Who called, and which model had been asked for when another one answered.
alter table usage add column agent text;
alter table usage add column fallback_from text;
