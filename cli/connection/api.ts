// The control plane as commands use it: found and reached on the first call, with the namespace and project that are meant.
// Must not know any command. Source: A240 (how a project is chosen).
import { dirname } from 'node:path';
import type { BeeuniError } from '#base/errors.ts';
import { type Client, createClient } from '#base/http/client.ts';
import { DnsLabel46, DnsLabel63 } from '#schema/primitives.ts';
import { CommandError, EXIT, usageError } from '../failure.ts';
import type { Io } from '../io.ts';
import { type Config, readConfig, type Server, type TokenSource } from './config-file.ts';
import { type GetToken, makeGetToken } from './credential.ts';
import { type Access, accessHint } from './hints.ts';
import { type Forward, makeKubectl } from './kubectl.ts';
import { makeRetryingFetch } from './retrying-fetch.ts';
import { serverUrl } from './server-url.ts';

/** Name of an object in its namespace. */
export type ObjectName = Readonly<{ namespace: string; name: string }>;

/** Where calls go now, for what is no route: a WebSocket. */
export type Reached = Readonly<{ baseUrl: string; token: string }>;

/** See the file. */
export type Api = Readonly<{
  /** A client; a forwarded port that has closed is opened again. Errors: CommandError. */
  client: () => Promise<Client>;
  reach: () => Promise<Reached>;
  /** What to do about an error of a call, by where server and token come from; undefined where they have no part in it. */
  hintOf: (error: BeeuniError) => string | undefined;
  /** Where the server is said to be, in words. */
  describeServer: () => string;
  namespace: () => string;
  /** `NAME` or `NAMESPACE/NAME` of a session or project. Errors: CommandError (usage). */
  nameOf: (text: string) => ObjectName;
  /** The project that is meant: what was given, else BEEUNI_PROJECT_ID, the folder's, the default one. */
  findProject: (given: string | undefined) => ObjectName | undefined;
  requireProject: (given: string | undefined) => ObjectName;
  close: () => void;
}>;

/** Refuses what is no name, with the rule that it breaks; `whole`: as it was given. Source: K3. */
const checkName = (label: typeof DnsLabel46, name: string, whole: string): void => {
  const most = label.maxLength ?? 0;
  if (name.length > most) {
    const hint = `${name} has ${name.length}`;
    throw usageError(`a ${label === DnsLabel46 ? 'name' : 'namespace'} has at most ${most} characters`, hint);
  }
  if (label.safeParse(name).success) return;
  throw usageError(`${whole} is no name`, 'a name is NAME or NAMESPACE/NAME, in lower-case letters, digits and dashes');
};

/** The login in force: the one of the variables wins over the stored one. Errors: CommandError where one is missing. */
const loginOf = (io: Io, given: Readonly<{ server: string | undefined }>, stored: Config | undefined): Access => {
  const variable = (name: string): string | undefined => io.env[name] || undefined;
  const address = given.server ?? variable('BEEUNI_SERVER');
  const token: TokenSource | undefined =
    variable('BEEUNI_TOKEN') === undefined ? stored?.token : { kind: 'environment', name: 'BEEUNI_TOKEN' };
  const allowHttp = io.env['BEEUNI_ALLOW_HTTP'] === '1';
  const server: Server | undefined =
    address === undefined
      ? stored?.server
      : { kind: 'url', url: serverUrl(address, allowHttp, 'set BEEUNI_ALLOW_HTTP=1') };
  if (server === undefined && token === undefined) {
    throw new CommandError(
      EXIT.denied,
      'you are not logged in',
      'run beeuni login, or set BEEUNI_SERVER and BEEUNI_TOKEN',
    );
  }
  if (server === undefined || token === undefined) {
    const [what, variableName] =
      token === undefined
        ? [`there is no token for ${address}`, 'BEEUNI_TOKEN']
        : ['no server is named', 'BEEUNI_SERVER'];
    throw new CommandError(
      EXIT.denied,
      `you are not logged in: ${what}`,
      `set ${variableName} too, or run beeuni login`,
    );
  }
  const serverFrom = given.server !== undefined ? 'option' : address !== undefined ? 'variable' : 'login';
  return { server, token, serverFrom, isStored: stored !== undefined };
};

/** The connection of one call of the command line. */
export const makeApi = (
  io: Io,
  given: Readonly<{ server: string | undefined; namespace: string | undefined }>,
): Api => {
  let stored: Readonly<{ config: Config | undefined }> | undefined;
  let getToken: GetToken | undefined;
  let forward: Promise<Forward> | undefined;
  const config = (): Config | undefined => {
    stored ??= { config: readConfig(io) };
    return stored.config;
  };
  const kubectl = makeKubectl(io);

  const login = (): Access => loginOf(io, given, config());

  const baseUrl = async (server: Server): Promise<string> => {
    if (server.kind === 'url') return server.url;
    if (forward !== undefined && !(await forward).isOpen()) forward = undefined;
    forward ??= kubectl.forward(server);
    return (await forward).url;
  };

  const reach = async (): Promise<Reached> => {
    const { server, token } = login();
    getToken ??= makeGetToken(token, kubectl, io);
    const [url, value] = await Promise.all([baseUrl(server), getToken()]);
    return { baseUrl: url, token: value };
  };

  /** Another token than the one that was refused; none where the source gives always the same. */
  const newToken = async (): Promise<string | undefined> => {
    const refused = (await reach()).token;
    const next = await getToken?.(true);
    return next === refused ? undefined : next;
  };

  const namespace = (): string => given.namespace ?? io.env['BEEUNI_NAMESPACE'] ?? config()?.namespace ?? 'default';

  const nameOf = (text: string): ObjectName => {
    const parts = text.split('/');
    const name = parts.at(-1) ?? '';
    const inside = parts.length === 2 ? (parts[0] ?? '') : namespace();
    checkName(DnsLabel46, parts.length > 2 ? '' : name, text);
    checkName(DnsLabel63, inside, text);
    return { namespace: inside, name };
  };

  const folderProject = (): ObjectName | undefined => {
    const folders = config()?.folders ?? {};
    for (let at = io.cwd; ; at = dirname(at)) {
      const found = Object.hasOwn(folders, at) ? folders[at] : undefined;
      if (found !== undefined) return { namespace: found.namespace, name: found.project };
      if (dirname(at) === at) return undefined;
    }
  };

  const findProject = (text: string | undefined): ObjectName | undefined => {
    const named = text ?? io.env['BEEUNI_PROJECT_ID'];
    if (named !== undefined) return nameOf(named);
    const usual = config()?.project;
    return folderProject() ?? (usual === undefined ? undefined : { namespace: usual.namespace, name: usual.project });
  };

  return {
    reach,
    client: async () => {
      const { baseUrl: url } = await reach();
      return createClient({
        baseUrl: url,
        token: async () => (await reach()).token,
        fetch: makeRetryingFetch({ fetch, newToken }),
        peer: 'the control plane',
        unreachable: 'control_plane_unavailable',
      });
    },
    hintOf: (error) => accessHint(login(), error),
    describeServer: () => {
      const { server } = login();
      return server.kind === 'url'
        ? server.url
        : `service ${server.namespace}/${server.service} of kube context ${server.context}`;
    },
    namespace,
    nameOf,
    findProject,
    requireProject: (text) => {
      const found = findProject(text);
      if (found !== undefined) return found;
      throw usageError('no project is chosen', 'give --project NAME, or choose one: beeuni projects use NAME');
    },
    close: kubectl.close,
  };
};
