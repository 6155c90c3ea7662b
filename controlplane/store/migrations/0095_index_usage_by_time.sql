-- compatible
-- Rows are written in the order of time, so a few pages of index find the old ones. Owner: store/usage.ts.
create index usage_at on usage using brin (at);
