// A real Postgres of its own folder for tests. Must not know databases, or a test runner.
import { existsSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '#base/clock.ts';
import { createEmbeddedPostgres, type EmbeddedPostgres } from '#controlplane/store/embedded.ts';

const PREFIX = 'beeuni-test-pg-';

/** Settings of a server whose data nobody needs after its tests. */
export const THROWAWAY: readonly string[] = [
  'fsync=off',
  'synchronous_commit=off',
  'full_page_writes=off',
  'shared_buffers=64MB',
];

/** A running server. `directory` and its files vanish with `stop`. */
export type OwnServer = Readonly<{
  databaseUrl: string;
  embedded: EmbeddedPostgres;
  directory: string;
  stop: () => Promise<void>;
}>;

/** Ends servers whose test process was killed, and removes their folders. */
const sweepOrphans = (): void => {
  for (const name of readdirSync(tmpdir()).filter((entry) => entry.startsWith(PREFIX))) {
    const owner = name.slice(PREFIX.length).split('-')[0] ?? '';
    if (existsSync(`/proc/${owner}`)) continue;
    const directory = join(tmpdir(), name);
    for (const pid of readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))) {
      try {
        if (readlinkSync(`/proc/${pid}/cwd`) === join(directory, 'data')) process.kill(Number(pid), 'SIGQUIT');
      } catch {
        // Not ours to read, or gone.
      }
    }
    rmSync(directory, { recursive: true, force: true });
  }
};

/** Starts one with more `name=value` settings, in a folder named for this process. */
export const ownServer = async (settings: readonly string[] = []): Promise<OwnServer> => {
  sweepOrphans();
  const directory = await mkdtemp(join(tmpdir(), `${PREFIX}${process.pid}-`));
  const embedded = createEmbeddedPostgres({ directory, settings, log: () => undefined, clock: systemClock });
  const databaseUrl = await embedded.start();
  return {
    databaseUrl,
    embedded,
    directory,
    stop: async () => {
      await embedded.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
};
