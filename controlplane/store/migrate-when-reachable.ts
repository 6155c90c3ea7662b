// Migrates a database that may not be there yet: it is asked again until it answers. Must not know any migration.
import { backoffMs, WATCH_BACKOFF } from '#base/backoff.ts';
import { type Clock, sleep } from '#base/clock.ts';
import { errorChain, UnavailableError } from '#base/errors.ts';
import type { Logger } from '#base/log.ts';
import { migrate } from './migrate.ts';

/** What waiting needs. */
export type MigratePorts = Readonly<{ clock: Clock; random: () => number; log: Logger; signal: AbortSignal }>;

/** Applied versions. Errors: InvalidError `newer_database` at once; UnavailableError only when `signal` fired. */
export const migrateWhenReachable = async (databaseUrl: string, ports: MigratePorts): Promise<readonly number[]> => {
  for (let n = 1; ; n += 1) {
    try {
      return await migrate(databaseUrl);
    } catch (error) {
      if (!(error instanceof UnavailableError) || ports.signal.aborted) throw error;
      ports.log.warn('the database does not answer yet', { chain: errorChain(error) });
      // Timers of the clock do not keep the process alive, and before the database is there little else does.
      const hold = setInterval(() => undefined, 60_000);
      const waited = await sleep(ports.clock, backoffMs(WATCH_BACKOFF, n, ports.random), ports.signal);
      clearInterval(hold);
      if (!waited) throw error;
    }
  }
};
