-- compatible
-- What the operator must hear about: one row per object, with the version of its last change. `body` is null for a
-- session, whose fact is joined when it is read. Versions are given under an advisory lock that lasts until commit,
-- so that a reader who saw version v has seen everything below v. Owner: store/facts.ts.
create sequence fact_versions;
create table facts (
  uid text primary key,
  kind text not null check (kind in ('project', 'session', 'registry', 'gone')),
  version bigint not null,
  body jsonb,
  changed_at timestamptz not null default now()
);
create unique index facts_version on facts (version);

-- One row. `epoch` names this database, so that a cursor of another one is recognised; `horizon` is the highest
-- version of a "gone" that was forgotten.
create table fact_stream (
  single boolean primary key default true check (single),
  epoch text not null default gen_random_uuid()::text,
  horizon bigint not null default 0
);
insert into fact_stream default values;
