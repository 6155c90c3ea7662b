// What a login keeps: where the control plane is and how a token is got, never a token. A file that only its owner may read.
// Must not know how a server is reached.
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { CommandError, EXIT } from '../failure.ts';
import type { Io } from '../io.ts';

/** Where the control plane is: an address, or a Service that kubectl forwards a port to. */
export const serverSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('url'), url: z.string().max(2_048) }),
  z.object({
    kind: z.literal('port-forward'),
    context: z.string().max(1_024),
    namespace: z.string().max(63),
    service: z.string().max(253),
    port: z.int().min(1).max(65_535),
  }),
]);

/** How a token is got: a new one of a service account, what the kube context itself uses, or a variable. */
export const tokenSourceSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('service-account'),
    context: z.string().max(1_024),
    namespace: z.string().max(63),
    name: z.string().max(253),
  }),
  z.object({ kind: z.literal('kube-context'), context: z.string().max(1_024) }),
  z.object({ kind: z.literal('environment'), name: z.string().max(128) }),
]);

const projectRef = z.object({ namespace: z.string().max(63), project: z.string().max(63) });

const configSchema = z.object({
  version: z.literal(1),
  server: serverSchema,
  token: tokenSourceSchema,
  namespace: z.string().max(63),
  /** The default project, and those of folders by absolute path. */
  project: projectRef.optional(),
  folders: z.record(z.string(), projectRef).default({}),
});

/** See serverSchema. */
export type Server = z.output<typeof serverSchema>;
/** See tokenSourceSchema. */
export type TokenSource = z.output<typeof tokenSourceSchema>;
/** A login. */
export type Config = z.output<typeof configSchema>;

/** Path of the file: `$XDG_CONFIG_HOME/beeuni/config.json`, `~/.config` where the variable is not set. */
export const configPath = (io: Pick<Io, 'env' | 'homeDir'>): string =>
  join(io.env['XDG_CONFIG_HOME'] ?? join(io.homeDir, '.config'), 'beeuni', 'config.json');

/** The login; undefined when there is none. Errors: CommandError for a file that cannot be read or understood. */
export const readConfig = (io: Pick<Io, 'env' | 'homeDir'>): Config | undefined => {
  const path = configPath(io);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new CommandError(EXIT.failed, `${path} cannot be read`, 'mend its rights, or remove it and log in again');
  }
  try {
    return configSchema.parse(JSON.parse(text));
  } catch {
    throw new CommandError(EXIT.failed, `${path} is not understood`, 'remove it and log in again: beeuni login');
  }
};

/** Stores the login: mode 0600 in a folder of mode 0700, whole or not at all. */
export const writeConfig = (io: Pick<Io, 'env' | 'homeDir'>, config: Config): string => {
  const path = configPath(io);
  const unfinished = `${path}.${process.pid}`;
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(unfinished, `${JSON.stringify(config, null, 2)}\n`, { mode: 0o600 });
  chmodSync(unfinished, 0o600);
  renameSync(unfinished, path);
  return path;
};

/** Forgets the login; true when there was one. */
export const removeConfig = (io: Pick<Io, 'env' | 'homeDir'>): boolean => {
  const known = readConfig(io) !== undefined;
  rmSync(configPath(io), { force: true });
  return known;
};
