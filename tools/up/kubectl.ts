// kubectl and port forwards of one cluster, for the tools.
import { type ChildProcess, spawn } from 'node:child_process';
import { runProgram } from './run-program.ts';

/** Calls of kubectl against one cluster. */
export type Kubectl = Readonly<{
  run: (...args: string[]) => Promise<string>;
  /** Server-side apply of objects; gives kubectl's lines back. */
  apply: (objects: readonly object[], fieldManager?: string) => Promise<string>;
  /** The object, or undefined when it does not exist. */
  get: <T>(kind: string, name: string, namespace: string) => Promise<T | undefined>;
  /** Forwards a free loopback port to a port of a service until `stop`. */
  forward: (service: string, namespace: string, port: number) => Promise<PortForward>;
}>;

/** One open port forward. */
export type PortForward = Readonly<{ url: string; stop: () => void }>;

/** kubectl with the given program and kubeconfig (undefined: the current context). */
export const makeKubectl = (program: string, kubeconfigPath: string | undefined): Kubectl => {
  const env: Record<string, string> = kubeconfigPath === undefined ? {} : { KUBECONFIG: kubeconfigPath };
  const run = (...args: string[]): Promise<string> => runProgram(program, args, { env });
  return {
    run,
    apply: (objects, fieldManager = 'beeuni-up') =>
      runProgram(
        program,
        ['apply', '--server-side', '--force-conflicts', `--field-manager=${fieldManager}`, '-f', '-'],
        {
          env,
          input: JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }),
        },
      ),
    get: async (kind, name, namespace) => {
      const text = await run('get', kind, name, '-n', namespace, '--ignore-not-found', '-o', 'json');
      return text.trim() === '' ? undefined : JSON.parse(text);
    },
    forward: (service, namespace, port) => openForward(program, env, service, namespace, port),
  };
};

const openForward = (
  program: string,
  env: Record<string, string>,
  service: string,
  namespace: string,
  port: number,
): Promise<PortForward> =>
  new Promise((resolve, reject) => {
    const child: ChildProcess = spawn(program, ['port-forward', '-n', namespace, `service/${service}`, `:${port}`], {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let seen = '';
    const stop = (): void => {
      child.kill('SIGTERM');
    };
    const onText = (text: Buffer): void => {
      seen += text.toString();
      const match = /127\.0\.0\.1:(\d+)/.exec(seen);
      if (match) resolve({ url: `http://127.0.0.1:${match[1]}`, stop });
    };
    child.stdout?.on('data', onText);
    child.stderr?.on('data', onText);
    child.on('error', reject);
    child.on('close', () => reject(new Error(`port-forward to ${service} ended: ${seen.trim()}`)));
  });
