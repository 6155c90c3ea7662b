-- compatible
-- The move of a session to another agent that was told last, so that it is told once. Owner: store/claim-session.ts.
alter table sessions add column agent_repoint json;
