// Writes controlplane/store/schema.sql: the shape of a database that ran all migrations. With --check it only compares.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '#base/clock.ts';
import { describeDatabase } from '#controlplane/store/catalogue.ts';
import { createEmbeddedPostgres } from '#controlplane/store/embedded.ts';
import { migrate } from '#controlplane/store/migrate.ts';
import { createPool, POOL_DEFAULTS } from '#controlplane/store/pool.ts';

const file = new URL('../controlplane/store/schema.sql', import.meta.url);

const dump = async (): Promise<string> => {
  const directory = await mkdtemp(join(tmpdir(), 'beeuni-schema-'));
  const settings = ['fsync=off'];
  const postgres = createEmbeddedPostgres({ directory, settings, log: () => undefined, clock: systemClock });
  try {
    const databaseUrl = await postgres.start();
    await migrate(databaseUrl);
    const onIdleError = () => undefined;
    const pool = createPool({ ...POOL_DEFAULTS, databaseUrl, applicationName: 'beeuni-dump-schema', onIdleError });
    const text = await describeDatabase(pool.query);
    await pool.close();
    return text;
  } finally {
    await postgres.stop();
    await rm(directory, { recursive: true, force: true });
  }
};

const text = await dump();
if (process.argv.includes('--check')) {
  const isCurrent = text === (await readFile(file, 'utf8').catch(() => ''));
  if (!isCurrent) console.error('controlplane/store/schema.sql is not what the migrations make; run: make schema');
  process.exitCode = isCurrent ? 0 : 1;
} else {
  await writeFile(file, text);
}
