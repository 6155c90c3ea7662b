// kubectl as a program: what it prints, and a forwarded port for as long as it is wanted. Credentials, proxies and plug-ins of a
// kubeconfig are its business. Must not know Beeuni's API.
import { type ChildProcess, spawn } from 'node:child_process';
import { CommandError, EXIT } from '../failure.ts';
import type { Io } from '../io.ts';

/** One open port; `isOpen` says whether it still is. */
export type Forward = Readonly<{ url: string; isOpen: () => boolean }>;

/** Calls of kubectl. */
export type Kubectl = Readonly<{
  /** What it prints. Errors: CommandError with what it said. */
  run: (...args: readonly string[]) => Promise<string>;
  /** Forwards a free loopback port to a port of a Service. Errors: CommandError. */
  forward: (
    target: Readonly<{ context: string; namespace: string; service: string; port: number }>,
  ) => Promise<Forward>;
  /** Ends every forwarded port. */
  close: () => void;
}>;

const RUN_LIMIT_MS = 30_000;
const FORWARD_LIMIT_MS = 20_000;

const missing = (): CommandError =>
  new CommandError(
    EXIT.failed,
    'kubectl is not found',
    'install kubectl, name it with BEEUNI_KUBECTL, or use none: BEEUNI_SERVER and BEEUNI_TOKEN',
  );

const lastLine = (text: string): string =>
  text
    .trim()
    .split('\n')
    .at(-1)
    ?.replace(/^error: /i, '') ?? '';

/** The exit code for what kubectl said: there is no such thing, it is not allowed, or it may pass. */
const exitCodeFor = (said: string): number => {
  if (/\(NotFound\)|"[^"]*" not found|does not exist/.test(said)) return EXIT.notFound;
  return /forbidden|unauthorized|must be logged in/i.test(said) ? EXIT.denied : EXIT.unavailable;
};

/** kubectl of this machine, with the kubeconfig that it finds by itself. */
export const makeKubectl = (io: Pick<Io, 'env' | 'onExit'>): Kubectl => {
  const program = io.env['BEEUNI_KUBECTL'] ?? 'kubectl';
  const forwards = new Set<ChildProcess>();
  const close = (): void => {
    for (const child of forwards) child.kill('SIGTERM');
  };
  io.onExit(close);
  /** Detached: Ctrl-C is for the agent's turn, it must not cut the connection. */
  const start = (args: readonly string[], detached = false): ChildProcess =>
    spawn(program, args, { env: { ...io.env }, stdio: ['ignore', 'pipe', 'pipe'], detached });

  const run: Kubectl['run'] = (...args) =>
    new Promise((resolve, reject) => {
      const child = start(args);
      let out = '';
      let err = '';
      child.stdout?.setEncoding('utf8').on('data', (text: string) => {
        if (out.length < 16_777_216) out += text;
      });
      child.stderr?.setEncoding('utf8').on('data', (text: string) => {
        err = (err + text).slice(-8_192);
      });
      const timer = setTimeout(() => child.kill('SIGKILL'), RUN_LIMIT_MS);
      child.once('error', () => {
        clearTimeout(timer);
        reject(missing());
      });
      child.once('close', (code, signal) => {
        clearTimeout(timer);
        if (code === 0) resolve(out);
        else {
          const why = signal === null ? lastLine(err) || `exit code ${code}` : 'it did not answer in time';
          const words = args.filter((word, at) => !word.startsWith('-') && args[at - 1] !== '--context');
          reject(new CommandError(exitCodeFor(why), `kubectl ${words[0]} failed: ${why}`));
        }
      });
    });

  const forward: Kubectl['forward'] = ({ context, namespace, service, port }) =>
    new Promise((resolve, reject) => {
      const words = ['--context', context, 'port-forward', '--namespace', namespace, `service/${service}`, `:${port}`];
      const child = start(words, true);
      forwards.add(child);
      let said = '';
      const timer = setTimeout(() => child.kill('SIGKILL'), FORWARD_LIMIT_MS);
      const onText = (text: string): void => {
        said = (said + text).slice(-8_192);
        const local = /Forwarding from 127\.0\.0\.1:(\d+)/.exec(said)?.[1];
        if (local === undefined) return;
        clearTimeout(timer);
        resolve({
          url: `http://127.0.0.1:${local}`,
          isOpen: () => child.exitCode === null && child.signalCode === null,
        });
      };
      for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', onText);
      child.once('error', () => {
        clearTimeout(timer);
        forwards.delete(child);
        reject(missing());
      });
      child.once('close', () => {
        clearTimeout(timer);
        forwards.delete(child);
        reject(
          new CommandError(
            EXIT.unavailable,
            `no port of service ${namespace}/${service} could be forwarded: ${lastLine(said) || 'no answer'}`,
            `see kubectl --context ${context} -n ${namespace} get pods; you need the right to create pods/portforward there, or an address: beeuni login --server URL`,
          ),
        );
      });
    });

  return { run, forward, close };
};
