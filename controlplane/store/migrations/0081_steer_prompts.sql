-- compatible
-- Prompts that join a running turn, and why one that should have joined waits in the queue instead. Owner: store/prompts.ts.
alter table prompts add column delivery_reason text;
alter table prompts drop constraint prompts_delivery_check,
  add constraint prompts_delivery_check check (delivery in ('queue', 'interrupt', 'steer'));
