-- compatible
-- What was changed through the REST API, and answers that are given again for a repeated key. Owner: store/write-records.ts.
create table audit (
  id bigint generated always as identity primary key,
  at timestamptz not null default now(),
  request_id text not null,
  subject text not null,
  operation text not null,
  namespace text,
  name text,
  body_digest text not null,
  status integer,
  code text,
  ended_at timestamptz
);
create index audit_by_age on audit (at);
create index audit_by_object on audit (namespace, name, at);

create table idempotency_keys (
  subject text not null,
  key text not null,
  digest text not null,
  created_at timestamptz not null default now(),
  status integer,
  body json,
  primary key (subject, key)
);
create index idempotency_keys_by_age on idempotency_keys (created_at);
