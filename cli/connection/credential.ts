// A bearer token in the way that the login names: of a service account, of the kube context, of a variable. Tokens live in memory
// only. Must not know what they are sent to. Source: D5.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { CommandError, EXIT } from '../failure.ts';
import type { Io } from '../io.ts';
import type { TokenSource } from './config-file.ts';
import { TOKEN_WAYS } from './hints.ts';
import type { Kubectl } from './kubectl.ts';

/** Gives a token that is valid now; `renew` forgets the one before. Errors: CommandError that says how to get one. */
export type GetToken = (renew?: boolean) => Promise<string>;

/** How long tokens of service accounts are asked for, and used. */
const DURATION = '1h';
const USE_MS = 50 * 60_000;
const EXEC_LIMIT_MS = 60_000;

type KubeUser = Readonly<{
  token?: unknown;
  tokenFile?: unknown;
  'client-certificate-data'?: unknown;
  'client-certificate'?: unknown;
  exec?: Readonly<{ command?: unknown; args?: unknown; env?: unknown; apiVersion?: unknown }>;
}>;

const textList = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : [];

/** Runs a credential plug-in of a kubeconfig and gives back its token. */
const runPlugin = (exec: NonNullable<KubeUser['exec']>, io: Io): Promise<string> =>
  new Promise((resolve, reject) => {
    const command = typeof exec.command === 'string' ? exec.command : '';
    const extra = Array.isArray(exec.env)
      ? Object.fromEntries(
          exec.env.flatMap((entry: unknown) => {
            const { name, value } = (entry ?? {}) as Readonly<{ name?: unknown; value?: unknown }>;
            return typeof name === 'string' && typeof value === 'string' ? [[name, value]] : [];
          }),
        )
      : {};
    const info = { apiVersion: exec.apiVersion, kind: 'ExecCredential', spec: { interactive: io.isTerminal.stdin } };
    const child = spawn(command, textList(exec.args), {
      env: { ...io.env, ...extra, KUBERNETES_EXEC_INFO: JSON.stringify(info) },
      stdio: [io.isTerminal.stdin ? 'inherit' : 'ignore', 'pipe', 'inherit'],
    });
    let out = '';
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      if (out.length < 1_048_576) out += text;
    });
    const timer = setTimeout(() => child.kill('SIGKILL'), EXEC_LIMIT_MS);
    const fail = (why: string): void => {
      clearTimeout(timer);
      reject(new CommandError(EXIT.denied, `the credential plug-in ${command} of the kube context ${why}`, TOKEN_WAYS));
    };
    child.once('error', () => fail('cannot be started'));
    child.once('close', () => {
      let token: unknown;
      try {
        token = (JSON.parse(out) as { status?: { token?: unknown } }).status?.token;
      } catch {
        token = undefined;
      }
      if (typeof token !== 'string') return fail('gave no token');
      clearTimeout(timer);
      resolve(token);
    });
  });

/** The token of the user of a context. */
const contextToken = async (kubectl: Kubectl, context: string, io: Io): Promise<string> => {
  const text = await kubectl.run('--context', context, 'config', 'view', '--minify', '--raw', '--output', 'json');
  const user = (JSON.parse(text) as { users?: readonly { user?: KubeUser }[] }).users?.[0]?.user ?? {};
  if (typeof user.token === 'string' && user.token !== '') return user.token;
  if (typeof user.tokenFile === 'string') return readFileSync(user.tokenFile, 'utf8').trim();
  if (user.exec !== undefined) return runPlugin(user.exec, io);
  const certificate = user['client-certificate-data'] ?? user['client-certificate'];
  const why = certificate === undefined ? 'has no bearer token' : 'uses a client certificate, which is no bearer token';
  throw new CommandError(EXIT.denied, `the user of the kube context ${context} ${why}`, TOKEN_WAYS);
};

/** Tokens from one source, asked for once and kept for as long as they are good. */
export const makeGetToken = (source: TokenSource, kubectl: Kubectl, io: Io): GetToken => {
  if (source.kind === 'environment') {
    return async () => {
      const token = io.env[source.name];
      if (token !== undefined && token !== '') return token;
      throw new CommandError(
        EXIT.denied,
        `the variable ${source.name} holds no token`,
        'set it, or log in in another way: beeuni login',
      );
    };
  }
  const fetchToken = async (): Promise<string> => {
    if (source.kind === 'kube-context') return contextToken(kubectl, source.context, io);
    const { context, namespace, name } = source;
    const words = ['create', 'token', name, '--namespace', namespace, '--duration', DURATION];
    return (await kubectl.run('--context', context, ...words)).trim();
  };
  let held: Readonly<{ token: Promise<string>; atMs: number }> | undefined;
  return (renew = false) => {
    const nowMs = performance.now();
    if (renew || held === undefined || nowMs - held.atMs > USE_MS) {
      const token = fetchToken();
      token.catch(() => {
        held = undefined;
      });
      held = { token, atMs: nowMs };
    }
    return held.token;
  };
};
