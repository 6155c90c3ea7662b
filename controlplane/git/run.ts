// Runs git with a clean environment, fixed settings, a time limit and an output limit; its whole process group ends with it.
// Nothing of the machine's or a repository's configuration is obeyed: no hooks, no fsmonitor, no helpers, no ext::.
// Must not know mirrors, projects or credentials. Source: 20-control-plane §6, FF8.
import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import type { Clock } from '#base/clock.ts';
import { onAbort } from '#base/on-abort.ts';

/** What every git process of ours is started with. `home`: an empty folder of ours. */
export type GitSettings = Readonly<{
  home: string;
  /** Where programs are looked for. */
  path: string;
  /** Bundle of certificate authorities; the machine's own when absent. */
  caFile?: string | undefined;
}>;

/** One run. `env` is added to the clean environment. Units: milliseconds, bytes. */
export type GitRun = Readonly<{
  args: readonly string[];
  env?: Readonly<Record<string, string>> | undefined;
  input?: Readable | string | undefined;
  timeoutMs: number;
  /** Most of standard output that is kept; more ends the run. */
  maxOutputBytes?: number | undefined;
  signal?: AbortSignal | undefined;
  /** Looked at every 500 ms: true ends the run as too large. */
  isTooLarge?: (() => Promise<boolean>) | undefined;
}>;

/** Why a run was ended from this side. */
export type GitCut = 'timed_out' | 'too_large' | 'aborted';

/** How a run ended. `stderr` is cut to its last 16 KB. */
export type GitResult = Readonly<{ ok: boolean; stdout: Buffer; stderr: string; cut: GitCut | undefined }>;

/** A git process whose streams the caller moves. `done` never rejects. */
export type GitStream = Readonly<{ stdin: Writable; stdout: Readable; done: Promise<GitResult>; kill: () => void }>;

/** Runs git. */
export type Git = Readonly<{
  run: (run: GitRun) => Promise<GitResult>;
  open: (run: Omit<GitRun, 'input' | 'maxOutputBytes' | 'isTooLarge'>) => GitStream;
}>;

const MAX_STDERR = 16_384;
const DEFAULT_MAX_OUTPUT_BYTES = 8_388_608;
const SIZE_CHECK_MS = 500;

/** Settings that no repository may change: they are given on the command line, which wins over every file. */
const FIXED_CONFIG = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'core.untrackedCache=false',
  'core.pager=cat',
  'protocol.allow=never',
  'protocol.https.allow=always',
  'protocol.http.allow=always',
  'protocol.ssh.allow=always',
  'protocol.version=2',
  'submodule.recurse=false',
  'fetch.recurseSubmodules=false',
  'push.recurseSubmodules=no',
  'credential.helper=',
  'http.followRedirects=false',
  'http.lowSpeedLimit=100',
  'http.lowSpeedTime=60',
  'gc.autoDetach=false',
  'maintenance.autoDetach=false',
  'safe.directory=*',
  'uploadpack.allowFilter=true',
  'advice.detachedHead=false',
];

/** The whole environment of a git process. */
export const gitEnvironment = (
  settings: GitSettings,
  more: Readonly<Record<string, string>> = {},
): Record<string, string> => ({
  PATH: settings.path,
  HOME: settings.home,
  XDG_CONFIG_HOME: settings.home,
  LC_ALL: 'C',
  TZ: 'UTC',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_SYSTEM: '/dev/null',
  GIT_ATTR_NOSYSTEM: '1',
  GIT_NO_REPLACE_OBJECTS: '1',
  GIT_LITERAL_PATHSPECS: '1',
  GIT_TERMINAL_PROMPT: '0',
  GIT_ASKPASS: '/bin/false',
  GIT_SSH_COMMAND: '/bin/false',
  ...(settings.caFile === undefined ? {} : { GIT_SSL_CAINFO: settings.caFile }),
  ...more,
});

const killGroup = (child: ChildProcess): void => {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // The group is gone already.
  }
};

/** Git with the given settings. */
export const makeGit = (settings: GitSettings, clock: Clock): Git => {
  const start = (run: Pick<GitRun, 'args' | 'env'>): ChildProcess =>
    spawn('git', [...FIXED_CONFIG.flatMap((entry) => ['-c', entry]), ...run.args], {
      cwd: settings.home,
      env: gitEnvironment(settings, run.env),
      stdio: 'pipe',
      detached: true,
    });

  /** Follows a process to its end; `collect` keeps its standard output. */
  const follow = (child: ChildProcess, run: Omit<GitRun, 'input'>, collect: boolean): Promise<GitResult> =>
    new Promise((resolve) => {
      const parts: Buffer[] = [];
      let bytes = 0;
      let stderr = '';
      let cut: GitCut | undefined;
      const end = (why: GitCut): void => {
        cut ??= why;
        killGroup(child);
      };
      const cancelTimeout = clock.startTimer(run.timeoutMs, () => end('timed_out'));
      const forget = run.signal && onAbort(run.signal, () => end('aborted'));
      let stopped = false;
      const checkSize = (): void => {
        if (run.isTooLarge === undefined || stopped) return;
        run.isTooLarge().then(
          (isTooLarge) => {
            if (isTooLarge) end('too_large');
            else clock.startTimer(SIZE_CHECK_MS, checkSize);
          },
          () => clock.startTimer(SIZE_CHECK_MS, checkSize),
        );
      };
      clock.startTimer(SIZE_CHECK_MS, checkSize);
      if (collect) {
        child.stdout?.on('data', (part: Buffer) => {
          bytes += part.length;
          if (bytes > (run.maxOutputBytes ?? DEFAULT_MAX_OUTPUT_BYTES)) end('too_large');
          else parts.push(part);
        });
      }
      child.stderr?.on('data', (part: Buffer) => {
        stderr = (stderr + part.toString('utf8')).slice(-MAX_STDERR);
      });
      const finish = (code: number | null): void => {
        if (stopped) return;
        stopped = true;
        cancelTimeout();
        forget?.();
        killGroup(child);
        resolve({ ok: code === 0 && cut === undefined, stdout: Buffer.concat(parts), stderr, cut });
      };
      child.once('error', (error) => {
        stderr += error.message;
        finish(null);
      });
      child.once('close', finish);
    });

  return {
    run: (run) => {
      const child = start(run);
      const { stdin } = child;
      // A process that ends before it has read all its input is told by its exit code.
      stdin?.on('error', () => undefined);
      if (run.input === undefined || typeof run.input === 'string') stdin?.end(run.input ?? '');
      else {
        run.input.once('error', () => killGroup(child));
        if (stdin !== null) run.input.pipe(stdin);
      }
      return follow(child, run, true);
    },
    open: (run) => {
      const child = start(run);
      const { stdin, stdout } = child;
      if (stdin === null || stdout === null) throw new Error('git was started without pipes');
      stdin.on('error', () => undefined);
      return { stdin, stdout, done: follow(child, run, false), kill: () => killGroup(child) };
    },
  };
};
