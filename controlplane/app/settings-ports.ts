// What the workspace settings need from outside. Must not know SQL or HTTP.
import type { EmbeddingStatus } from '#schema/rest/workspace-settings.ts';
import type { SettingWrite, StoredSettings } from './saved-settings.ts';

/** Who changes settings, for the audit. */
export type SettingsAuthor = Readonly<{ subject: string; requestId: string }>;

/** The table of settings. Errors of all: UnavailableError `database_unavailable`. */
export type SettingsStore = Readonly<{
  read: () => Promise<StoredSettings>;
  /** The number of changes so far. */
  revision: () => Promise<number>;
  /**
   * Changes rows under a lock that no two changes share, with one audit row each, and gives back the state after.
   * What `decide` throws changes nothing; without writes the revision stays.
   */
  change: (
    author: SettingsAuthor,
    decide: (stored: StoredSettings) => readonly SettingWrite[],
  ) => Promise<StoredSettings>;
}>;

/** State of the embedding model; never rejects. */
export type ReadEmbeddingStatus = () => Promise<EmbeddingStatus>;
