// The table of workspace settings as the app's port: a change, its audit rows and the revision in one transaction.
// Must not know what a key means. Source: 40-settings B3, B25.
import type { SettingWrite, StoredSettings } from '../app/saved-settings.ts';
import type { SettingsAuthor, SettingsStore } from '../app/settings-ports.ts';
import { type Database, firstRow, type Query, type Statement } from './statement.ts';

/** The number of changes so far. */
export const settingsRevision = (): Statement<{ revision: number }> => ({
  name: 'settings_revision',
  text: 'select revision from workspace_settings_revision',
  values: [],
});

const lockRevision = (): Statement<{ revision: number }> => ({
  text: 'select revision from workspace_settings_revision for update',
  values: [],
});

const raiseRevision = (): Statement<{ revision: number }> => ({
  text: 'update workspace_settings_revision set revision = revision + 1 returning revision',
  values: [],
});

const saveSettings = (writes: readonly SettingWrite[]): Statement => ({
  text: `insert into workspace_settings (key, value) select * from unnest($1::text[], $2::jsonb[])
    on conflict (key) do update set value = excluded.value, updated_at = now()`,
  values: [writes.map(({ key }) => key), writes.map(({ after }) => JSON.stringify(after))],
});

const resetSettings = (keys: readonly string[]): Statement => ({
  text: 'delete from workspace_settings where key = any($1::text[])',
  values: [keys],
});

/** One finished audit row per changed key; `before` and `after` are JSON, null for no saved value. */
const auditSettings = (author: SettingsAuthor, writes: readonly SettingWrite[]): Statement => ({
  text: `insert into audit (request_id, subject, operation, name, body_digest, status, ended_at, before, after)
    select $1, $2, case when after = 'null' then 'resetSetting' else 'saveSetting' end, key,
      encode(sha256(convert_to(key || ' ' || after, 'UTF8')), 'hex'), 200, now(), before::jsonb, after::jsonb
    from unnest($3::text[], $4::text[], $5::text[]) as w(key, before, after)`,
  values: [
    author.requestId,
    author.subject,
    writes.map(({ key }) => key),
    writes.map(({ before }) => JSON.stringify(before)),
    writes.map(({ after }) => JSON.stringify(after)),
  ],
});

/** One statement for both, so that it needs no transaction: every row repeats the revision. */
const revisionAndSettings = (): Statement<{ revision: number; key: string | null; value: unknown }> => ({
  name: 'revision_and_settings',
  text: `select r.revision, s.key, s.value from workspace_settings_revision r left join workspace_settings s on true`,
  values: [],
});

/** Every setting with its revision, as one statement sees them. */
export const readSettings = async (query: Query): Promise<StoredSettings> => {
  const rows = await query(revisionAndSettings());
  return {
    revision: rows[0]?.revision ?? 0,
    values: new Map(rows.flatMap(({ key, value }) => (key === null ? [] : [[key, value] as const]))),
  };
};

/** The store over a database. */
export const makeSettingsStore = (database: Database): SettingsStore => ({
  read: () => readSettings(database.query),
  revision: async () => (await firstRow(database.query, settingsRevision()))?.revision ?? 0,
  change: (author, decide) =>
    database.withTransaction(async (query) => {
      await query(lockRevision());
      const before = await readSettings(query);
      const writes = decide(before);
      if (writes.length === 0) return before;
      const saved = writes.filter(({ after }) => after !== null);
      const reset = writes.filter(({ after }) => after === null);
      if (saved.length > 0) await query(saveSettings(saved));
      if (reset.length > 0) await query(resetSettings(reset.map(({ key }) => key)));
      await query(auditSettings(author, writes));
      await query(raiseRevision());
      return readSettings(query);
    }),
});
