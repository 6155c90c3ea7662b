-- compatible
-- Who sent a prompt, so that only they join its turn; null where nobody is known. Owner: store/prompts.ts.
alter table prompts add column sent_by text;
