// Pi's adapter with everything around it but the daemon: folders, a repository, the scripted provider in the relay's place,
// and a person who answers as told. Must not know what is tested.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { systemClock } from '#base/clock.ts';
import { createLogger } from '#base/log.ts';
import type {
  Harness,
  HarnessHost,
  HarnessSession,
  HumanAnswer,
  HumanRequest,
  TurnEnd,
} from '#daemon/harness/contract/adapter.ts';
import type { HarnessEvent } from '#daemon/harness/contract/events.ts';
import type { ToolHost } from '#daemon/harness/contract/tools.ts';
import { type PiLimits, piModule, startHarness } from '#daemon/harness/pi/adapter.ts';
import { endLeftovers } from '#daemon/host/process/leftovers.ts';
import { findSkills } from '#daemon/host/project/skills.ts';
import { findRulesFile } from '#daemon/host/rules-file.ts';
import { type ScriptedProvider, startScriptedProvider } from './scripted-provider.ts';
import { noTools } from './tool-host.ts';
import { until } from './until.ts';

const TOKEN = 'loopback-token';

/** Why tests with Pi cannot run here; undefined when they can. For the `skip` option of a test. */
export const whyNoPi = (): string | undefined => {
  if (process.platform !== 'linux') return 'the harness programs are for Linux';
  if (piModule() === undefined) return 'Pi is not installed; run tools/bootstrap.sh harness';
  for (const program of ['git', 'rg']) {
    if (spawnSync(program, ['--version'], { stdio: 'ignore' }).error !== undefined) return `${program} is not on PATH`;
  }
  return undefined;
};

/** What a rig is made with. Paths of files are relative to the folder they are put in. */
export type PiRigOptions = Readonly<{
  files?: Readonly<Record<string, string>>;
  /** Files of the project's folder for Pi, as the host would have copied them. */
  project?: Readonly<Record<string, string>>;
  /** Files of the copy of the project's skills. */
  skills?: Readonly<Record<string, string>>;
  session?: Partial<HarnessSession>;
  tools?: ToolHost;
  limits?: Partial<PiLimits>;
  granted?: () => Readonly<Record<string, string>>;
  entry?: URL;
  /** Called right before the adapter is asked to start. */
  starting?: () => void;
  healthChanged?: () => void;
}>;

/** A running adapter. `restart` ends it and starts another on the same folders. */
export type PiRig = Readonly<{
  root: string;
  workspace: string;
  data: string;
  provider: ScriptedProvider;
  harness: () => Harness;
  host: () => HarnessHost;
  events: HarnessEvent[];
  asked: HumanRequest[];
  output: string[];
  logged: string[];
  gaveUp: string[];
  answerWith: (answer: (request: HumanRequest, signal: AbortSignal) => Promise<HumanAnswer>) => void;
  submit: (
    text: string,
    options?: Readonly<{ signal?: AbortSignal; agent?: string; model?: string }>,
  ) => Promise<TurnEnd>;
  turn: () => { turnId: string; promptId: string; messageId: string; agent: null; model: null };
  ready: () => Promise<void>;
  restart: () => Promise<void>;
  stop: () => Promise<void>;
}>;

const write = (folder: string, files: Readonly<Record<string, string>>): void => {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
};

/** Starts a rig; resolves before the harness is ready. */
export const makePiRig = async (options: PiRigOptions = {}): Promise<PiRig> => {
  const root = mkdtempSync(join(tmpdir(), 'beeuni-pi-'));
  const folder = (name: string): string => {
    mkdirSync(join(root, name), { recursive: true });
    return join(root, name);
  };
  const workspace = folder('workspace');
  write(workspace, options.files ?? { 'a.txt': 'a\n' });
  execFileSync('git', ['init', '--quiet', workspace]);
  if (options.project !== undefined) write(folder('project'), options.project);
  write(folder('skills'), options.skills ?? {});
  const provider = await startScriptedProvider({ key: TOKEN });
  const environment = createServer((_request, response) => {
    response.end(JSON.stringify(options.granted?.() ?? { GRANTED: 'yes' }));
  });
  await new Promise<void>((resolve) => environment.listen(0, '127.0.0.1', resolve));
  const address = environment.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  const marker = { name: 'BEEUNI_RUN', value: `pi-test-${process.pid}-${root.slice(-6)}` };
  const events: HarnessEvent[] = [];
  const asked: HumanRequest[] = [];
  const output: string[] = [];
  const logged: string[] = [];
  const gaveUp: string[] = [];
  const log = createLogger({ level: 'debug', write: (line) => logged.push(line) });
  let answer = async (request: HumanRequest, _signal: AbortSignal): Promise<HumanAnswer> =>
    request.kind === 'permission'
      ? { kind: 'permission', reply: 'reject', message: null }
      : { kind: 'question', answers: null };
  let turns = 0;
  const model = {
    name: 'scripted/large',
    contextWindowTokens: 100_000,
    maxOutputTokens: 8_000,
    input: ['text' as const, 'image' as const],
    reasoning: true,
  };
  const makeHost = async (): Promise<HarnessHost> => ({
    session: {
      uid: 'u',
      title: 't',
      agent: 'dev',
      agents: [{ name: 'dev', mode: 'primary', prompt: 'You are dev.', tools: 'all', skills: 'all' }],
      model,
      models: [model, { ...model, name: 'scripted/small' }],
      unattended: false,
      ...options.session,
    },
    relay: {
      modelBaseUrl: provider.url,
      environmentUrl: `http://127.0.0.1:${port}/env`,
      toolsUrl: 'http://127.0.0.1:9',
      judgeUrl: 'http://127.0.0.1:9',
      token: TOKEN,
    },
    paths: {
      workspace,
      data: join(root, 'data'),
      config: join(root, 'config'),
      home: folder('home'),
      temporary: folder('tmp'),
    },
    rules: await findRulesFile(workspace, log),
    tools: options.tools ?? noTools,
    skills: findSkills('/nonexistent', join(root, 'skills'), log),
    configDirectory: options.project === undefined ? null : join(root, 'project'),
    marker,
    searchPath: process.env['PATH'] ?? '',
    emit: (event) => events.push(event),
    ask: (request, signal) => {
      asked.push(request);
      return answer(request, signal);
    },
    output: (line) => output.push(line),
    healthChanged: () => options.healthChanged?.(),
    endLeftovers: () => endLeftovers(marker, new Set(), log),
    giveUp: (reason) => gaveUp.push(reason),
    log,
    clock: systemClock,
  });
  const begin = (host: HarnessHost) => startHarness(host, { limits: options.limits, entry: options.entry });
  let host = await makeHost();
  options.starting?.();
  let harness = await begin(host);

  const turn = () => {
    turns += 1;
    return { turnId: `t${turns}`, promptId: `p${turns}`, messageId: `m${turns}`, agent: null, model: null };
  };
  const ready = async (): Promise<void> => {
    await until('Pi is ready', () => harness.health().state === 'ok', {
      deadlineMs: 60_000,
      describe: () => ({ health: harness.health(), output, logged: logged.slice(-5) }),
    });
  };
  return {
    root,
    workspace,
    data: join(root, 'data'),
    provider,
    harness: () => harness,
    host: () => host,
    events,
    asked,
    output,
    logged,
    gaveUp,
    answerWith: (given) => {
      answer = given;
    },
    submit: (text, { signal = new AbortController().signal, agent = null, model: named = null } = {}) =>
      harness.submit({ ...turn(), parts: [{ type: 'text', text }], agent, model: named } as never, signal),
    turn,
    ready,
    restart: async () => {
      await harness.stop(0);
      host = await makeHost();
      harness = await begin(host);
      await ready();
    },
    stop: async () => {
      await harness.stop(0);
      await provider.close();
      environment.close();
      rmSync(root, { recursive: true, force: true });
    },
  };
};
