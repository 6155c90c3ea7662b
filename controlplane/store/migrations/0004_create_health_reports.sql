-- compatible
-- The newest health document of each sandbox. Owner: store/health.ts.
create table health_reports (
  session_uid text primary key references sessions (uid) on delete cascade,
  generation integer not null,
  state text not null check (state in ('Answering', 'Silent')),
  reported_at timestamptz not null,
  -- Of what matters in the document, so that every replica sees whether a report changes it.
  digest text not null,
  document json not null
);
create index health_reports_oldest on health_reports (reported_at) where state = 'Answering';
