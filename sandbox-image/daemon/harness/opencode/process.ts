// One OpenCode process: started with an environment of its own and nothing else, ready when it says that it listens,
// ended with its group. Must not know sessions or turns. Source: D13, harness-runtimes §2.1, §2.8, §2.9.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { cpSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { type Clock, sleep } from '#base/clock.ts';
import { UnavailableError } from '#base/errors.ts';
import type { SandboxPaths } from '../contract/adapter.ts';
import { type ConfigFile, TOKEN_VARIABLE } from './config-files.ts';

/** What a process is started with. */
export type ProcessSettings = Readonly<{
  /** Program; found by `searchPath` when it is no path. */
  program: string;
  paths: SandboxPaths;
  /** JSON for OPENCODE_CONFIG_CONTENT. */
  configContent: string;
  token: string;
  /** Granted values that the project's configuration refers to; they never win over a name of ours. */
  granted: Readonly<Record<string, string>>;
  questions: boolean;
  searchPath: string;
  marker: Readonly<{ name: string; value: string }>;
  output: (line: string) => void;
  clock: Clock;
}>;

/** A process that listens. */
export type OpencodeProcess = Readonly<{
  origin: string;
  port: number;
  pid: number;
  password: string;
  /** Resolves when the process is gone, with a sentence about how. */
  exited: Promise<string>;
  /** SIGTERM to its group, SIGKILL after `deadlineMs`; resolves when it is gone. */
  end: (deadlineMs: number) => Promise<void>;
}>;

/** A start under a busy neighbour took 18 s (measured). Units: milliseconds. */
const LISTEN_LIMIT_MS = 120_000;
const LISTENING = /opencode server listening on (http:\/\/127\.0\.0\.1:(\d+))/;

/** Declarations and the like, of which libraries have more than of code. */
const NEVER_RUNS = /\.(d\.[cm]?ts|cjs|map)$/;

/** A file or folder that is copied into the configuration. `to`: a path below it. */
export type ConfigCopy = Readonly<{ from: string; to: string }>;

/** Puts the configuration in place as a whole: written beside, then renamed. Of two of one name the file wins. */
export const writeConfig = (
  directory: string,
  files: readonly ConfigFile[],
  copies: readonly ConfigCopy[] = [],
): void => {
  const next = `${directory}.next`;
  rmSync(next, { recursive: true, force: true });
  for (const { from, to } of copies)
    cpSync(from, join(next, to), { recursive: true, filter: (path) => !NEVER_RUNS.test(path) });
  for (const file of files) {
    const path = join(next, file.path);
    mkdirSync(dirname(path), { recursive: true });
    // A copy keeps the mode of what was copied, which may be read-only.
    rmSync(path, { force: true });
    writeFileSync(path, file.content, { mode: 0o600 });
  }
  rmSync(directory, { recursive: true, force: true });
  renameSync(next, directory);
};

/**
 * An empty catalogue of public models in place of the built-in one: every model is in our configuration, and reading the
 * built-in one takes 3 s of CPU at each start (measured, 1.18.33).
 */
const catalogueOf = (paths: SandboxPaths): string => join(paths.data, 'models.json');

/** The whole environment of the process. Source: harness-runtimes §2.1. */
export const opencodeEnvironment = (settings: ProcessSettings, password: string): Record<string, string> => {
  const { paths } = settings;
  return {
    ...settings.granted,
    PATH: settings.searchPath,
    LANG: 'C.UTF-8',
    TERM: 'xterm-256color',
    HOME: paths.home,
    TMPDIR: paths.temporary,
    XDG_DATA_HOME: join(paths.data, 'share'),
    XDG_CONFIG_HOME: join(paths.home, '.config'),
    XDG_STATE_HOME: join(paths.home, '.local', 'state'),
    XDG_CACHE_HOME: join(paths.home, '.cache'),
    OPENCODE_CONFIG_DIR: paths.config,
    OPENCODE_CONFIG_CONTENT: settings.configContent,
    OPENCODE_DISABLE_PROJECT_CONFIG: '1',
    OPENCODE_SERVER_PASSWORD: password,
    OPENCODE_DISABLE_MODELS_FETCH: '1',
    OPENCODE_MODELS_PATH: catalogueOf(paths),
    OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
    OPENCODE_DISABLE_EXTERNAL_SKILLS: '1',
    OPENCODE_DISABLE_CLAUDE_CODE: '1',
    OPENCODE_DISABLE_AUTOUPDATE: '1',
    OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
    OPENCODE_DISABLE_EMBEDDED_WEB_UI: '1',
    ...(settings.questions ? { OPENCODE_ENABLE_QUESTION_TOOL: '1' } : {}),
    npm_config_offline: 'true',
    // The workspace belongs to root in a pod, and an image of a user's own may lack this in its system configuration.
    GIT_CONFIG_COUNT: '1',
    GIT_CONFIG_KEY_0: 'safe.directory',
    GIT_CONFIG_VALUE_0: paths.workspace,
    [TOKEN_VARIABLE]: settings.token,
    [settings.marker.name]: settings.marker.value,
  };
};

const signalGroup = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(-pid, signal);
  } catch {
    // The group is gone.
  }
};

const spawnServer = (settings: ProcessSettings, password: string): ChildProcess =>
  spawn(settings.program, ['serve', '--hostname', '127.0.0.1', '--port', '0', '--print-logs', '--log-level', 'INFO'], {
    cwd: settings.paths.workspace,
    env: opencodeEnvironment(settings, password),
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });

/** Starts a process and waits until it listens. Rejects with UnavailableError `harness_failed` or `timed_out`; then nothing is left of it. */
export const startOpencode = async (settings: ProcessSettings, signal: AbortSignal): Promise<OpencodeProcess> => {
  mkdirSync(join(settings.paths.data, 'share'), { recursive: true });
  writeFileSync(catalogueOf(settings.paths), '{}');
  const password = randomBytes(24).toString('base64url');
  const child = spawnServer(settings, password);
  const listening = Promise.withResolvers<Readonly<{ origin: string; port: number }>>();
  const exit = Promise.withResolvers<string>();
  child.once('error', (error) => exit.resolve(`opencode cannot be started: ${error.message}`));
  child.once('exit', (code, name) => {
    exit.resolve(name === null ? `opencode exited with code ${code}` : `opencode was ended by ${name}`);
  });
  for (const stream of [child.stdout, child.stderr]) {
    if (stream === null) continue;
    createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY }).on('line', (line) => {
      settings.output(line);
      const found = LISTENING.exec(line);
      if (found !== null) listening.resolve({ origin: found[1] ?? '', port: Number(found[2]) });
    });
  }
  const end = async (deadlineMs: number): Promise<void> => {
    if (child.pid === undefined) return;
    signalGroup(child.pid, 'SIGTERM');
    // A stopped process takes no SIGTERM.
    signalGroup(child.pid, 'SIGCONT');
    const cancel = settings.clock.startTimer(deadlineMs, () => {
      if (child.pid !== undefined) signalGroup(child.pid, 'SIGKILL');
    });
    await exit.promise;
    cancel();
    signalGroup(child.pid, 'SIGKILL');
  };
  const late = new AbortController();
  try {
    const limit = sleep(settings.clock, LISTEN_LIMIT_MS, AbortSignal.any([signal, late.signal])).then((passed) => {
      if (passed) throw new UnavailableError('timed_out', 'opencode does not listen in time');
      signal.throwIfAborted();
      return undefined;
    });
    limit.catch(() => {});
    const died = exit.promise.then((how) => {
      throw new UnavailableError('harness_failed', how);
    });
    died.catch(() => {});
    const address = await Promise.race([listening.promise, died, limit]);
    if (address === undefined || child.pid === undefined)
      throw new UnavailableError('harness_failed', 'opencode has no address');
    return { ...address, pid: child.pid, password, exited: exit.promise, end };
  } catch (error) {
    await end(0);
    throw error;
  } finally {
    late.abort();
  }
};
