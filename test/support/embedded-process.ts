// A process that only runs an embedded Postgres in the folder of its first argument, and prints its URL.
import { systemClock } from '#base/clock.ts';
import { createEmbeddedPostgres } from '#controlplane/store/embedded.ts';

const directory = process.argv[2] ?? '';
const postgres = createEmbeddedPostgres({
  directory,
  settings: ['fsync=off'],
  log: (line) => process.stderr.write(`${line}\n`),
  clock: systemClock,
});
process.stdout.write(`${await postgres.start()}\n`);
process.on('SIGTERM', () => void postgres.stop().then(() => process.exit(0)));
setInterval(() => undefined, 60_000);
