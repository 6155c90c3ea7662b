// Runs git as a program with an environment and configuration of our own: no hook, monitor, helper or foreign transport
// of the repository ever runs for the daemon. Must not know branches. Source: FF8, CVE-2026-71963.
import { spawn } from 'node:child_process';
import { UnavailableError } from '#base/errors.ts';

/** Result of one run. Output is cut at 1 MiB. */
export type GitResult = Readonly<{ code: number | null; stdout: string; stderr: string }>;

/** Runs git in a folder. Rejects with UnavailableError `timed_out` at the time limit, or with the signal's reason. */
export type RunGit = (
  args: readonly string[],
  options?: Readonly<{ timeoutMs?: number; signal?: AbortSignal | undefined }>,
) => Promise<GitResult>;

const MAX_OUTPUT = 1_048_576;
const DEFAULT_TIMEOUT_MS = 60_000;

/** Configuration that wins over system, user and repository, as pairs of key and value. */
export const CLEAN_CONFIGURATION = (workspace: string): readonly (readonly [string, string])[] => [
  ['safe.directory', workspace],
  ['core.hooksPath', '/dev/null'],
  ['core.fsmonitor', 'false'],
  ['core.untrackedCache', 'false'],
  ['core.askPass', ''],
  ['credential.helper', ''],
  ['credential.interactive', 'false'],
  ['protocol.allow', 'never'],
  ['protocol.http.allow', 'always'],
  ['submodule.recurse', 'false'],
  ['fetch.recurseSubmodules', 'false'],
  ['push.recurseSubmodules', 'no'],
  ['push.gpgSign', 'false'],
  ['commit.gpgSign', 'false'],
  ['gc.auto', '0'],
  ['maintenance.auto', 'false'],
  ['http.followRedirects', 'false'],
  ['http.proxy', ''],
  ['transfer.bundleURI', 'false'],
  ['advice.detachedHead', 'false'],
];

/** The whole environment of a run: nothing is inherited. */
export const gitEnvironment = (workspace: string, searchPath: string): Record<string, string> => {
  const settings = CLEAN_CONFIGURATION(workspace);
  const environment: Record<string, string> = {
    PATH: searchPath,
    LANG: 'C.UTF-8',
    HOME: '/nonexistent',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_TERMINAL_PROMPT: '0',
    GIT_OPTIONAL_LOCKS: '0',
    GIT_NO_LAZY_FETCH: '1',
    GIT_CONFIG_COUNT: String(settings.length),
  };
  settings.forEach(([key, value], at) => {
    environment[`GIT_CONFIG_KEY_${at}`] = key;
    environment[`GIT_CONFIG_VALUE_${at}`] = value;
  });
  return environment;
};

/** A runner for one workspace. */
export const makeRunGit = (workspace: string, searchPath: string): RunGit => {
  const environment = gitEnvironment(workspace, searchPath);
  return (args, options = {}) =>
    new Promise((resolve, reject) => {
      options.signal?.throwIfAborted();
      const child = spawn('git', args, {
        cwd: workspace,
        env: environment,
        stdio: ['ignore', 'pipe', 'pipe'],
        detached: true,
      });
      const output = { stdout: '', stderr: '' };
      for (const name of ['stdout', 'stderr'] as const) {
        child[name].setEncoding('utf8').on('data', (text: string) => {
          if (output[name].length < MAX_OUTPUT) output[name] += text.slice(0, MAX_OUTPUT - output[name].length);
        });
      }
      let failure: unknown;
      const end = (reason: unknown): void => {
        failure ??= reason;
        // The whole group: git's transport helpers are children of their own.
        if (child.pid !== undefined) {
          try {
            process.kill(-child.pid, 'SIGKILL');
          } catch {
            // It is gone already.
          }
        }
      };
      const limitMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
      const timer = setTimeout(
        () => end(new UnavailableError('timed_out', `git ${args[0]} took longer than ${limitMs} ms`)),
        limitMs,
      );
      const onAbort = (): void => end(options.signal?.reason);
      options.signal?.addEventListener('abort', onAbort, { once: true });
      const finish = (): void => {
        clearTimeout(timer);
        options.signal?.removeEventListener('abort', onAbort);
      };
      child.once('error', (error) => {
        finish();
        reject(new UnavailableError('not_ready', 'git cannot be started', { cause: error }));
      });
      child.once('close', (code) => {
        finish();
        if (failure === undefined) resolve({ code, ...output });
        else reject(failure);
      });
    });
};
