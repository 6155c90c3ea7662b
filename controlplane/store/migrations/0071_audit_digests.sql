-- compatible
-- What an object was before and after a change, as digests: a row of the audit tells that something changed, never what.
alter table audit add column before_digest text;
alter table audit add column after_digest text;
create index audit_by_subject on audit (subject, id);

-- Reports over all projects.
create index usage_by_age on usage (at);
