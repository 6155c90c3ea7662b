-- compatible
-- The settings that a turn was given when it was taken, as schema/settings/run-settings.ts has them; null for turns of before.
alter table turns add column settings jsonb;
