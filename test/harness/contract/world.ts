// The world of the contract suite: one project whose manifest and agent files are compiled by the product's own code, one
// daemon with one real harness, and the words of a client. The cases are beside it; where the daemon runs comes from outside.
import assert from 'node:assert/strict';
import { parseYaml } from '#base/yaml.ts';
import { judgeManifestText } from '#controlplane/app/project-manifest.ts';
import type { HealthDocument } from '#schema/wire/health.ts';
import type { TurnPart } from '#schema/wire/turns.ts';
import type { DaemonProcess, Launch } from '#test/support/daemon-process.ts';
import type { ClaimOverrides, LoggedEvent } from '#test/support/scripted-control-plane.ts';
import { until } from '#test/support/until.ts';
import { CANARY, makeRig, type Rig } from '../rig.ts';
import { PROJECT_FILES } from './project-files.ts';

/** The harnesses of the contract. */
export type HarnessId = 'opencode' | 'pi';

/** Any JSON object. */
export type Fields = Readonly<Record<string, unknown>>;

/** The value as an object; empty for anything else. */
export const fields = (value: unknown): Fields =>
  typeof value === 'object' && value !== null ? (value as Fields) : {};

/** How a part of a tool call stands. */
export type ToolPart = Readonly<{
  tool: string;
  state: Readonly<{ status: string; output?: string; error?: string; metadata?: Fields }>;
}>;

/** What a model was asked. */
export type Asked = Readonly<{
  model: unknown;
  system: string;
  messages: readonly Fields[];
  tools: readonly string[];
  body: Fields;
  text: string;
}>;

/** A running session of the contract's project. */
export type World = Readonly<{
  harness: HarnessId;
  /** True where the daemon runs in a container of the sandbox image. */
  inContainer: boolean;
  rig: Rig;
  daemon: () => DaemonProcess;
  /** Path of the checkout as the daemon sees it. */
  workspace: string;
  health: () => Promise<HealthDocument>;
  details: () => Promise<Fields>;
  /** Stores a prompt and nudges; gives back its turn. */
  begin: (parts: string | readonly TurnPart[], agent?: string | null) => Promise<string>;
  /** Waits for the one end of a turn, and for an idle daemon. */
  endOf: (turnId: string) => Promise<Fields>;
  /** Both. */
  run: (parts: string | readonly TurnPart[], agent?: string | null) => Promise<Fields & { turnId: string }>;
  /** Calls one tool in a turn; gives back how its part ended. */
  call: (tool: string, args: unknown, agent?: string | null) => Promise<ToolPart>;
  bash: (command: string, agent?: string | null) => Promise<string>;
  dataOf: (turnId: string, type: string) => readonly Fields[];
  /** Waits until a tool of the turn runs. */
  toolRuns: (turnId: string) => Promise<void>;
  /** The newest request to the model. */
  asked: () => Asked;
  post: (path: string, body: unknown) => Promise<Readonly<{ status: number; body: unknown }>>;
  get: (path: string) => Promise<Readonly<{ status: number; body: unknown }>>;
  /** Kills the daemon, starts another one on the same folders, and waits for it. */
  killAndResume: () => Promise<void>;
  stop: () => Promise<void>;
}>;

/** What the product makes of the project for a claim. */
const claimOf = async (harness: HarnessId): Promise<ClaimOverrides> => {
  const readFiles = async (paths: readonly string[]) =>
    new Map(
      paths.map((path) => {
        const text = PROJECT_FILES[path];
        return [path, text === undefined ? { kind: 'missing' as const } : { kind: 'text' as const, text }] as const;
      }),
    );
  const manifest = PROJECT_FILES['beeuni.yaml'] ?? '';
  const { verdict, config } = await judgeManifestText('beeuni.yaml', manifest, 'c0ffee', readFiles, parseYaml);
  if (config === undefined) throw new Error(JSON.stringify(verdict.errors));
  const { defaultAgent: agent } = config;
  const model = (name: string) => ({
    name,
    contextWindowTokens: 200_000,
    maxOutputTokens: 16_000,
    input: ['text' as const],
    reasoning: true,
  });
  return {
    agent,
    agents: [...config.agents],
    ...(config.beeuniTools === undefined ? {} : { beeuniTools: [...config.beeuniTools] }),
    projectTools: [...(config.projectTools ?? [])],
    configDirs: config.configDirs ?? { opencode: null, pi: null },
    piPackages: harness === 'pi' ? [...(config.piPackages?.[agent] ?? [])] : [],
    model: model('scripted/large'),
    models: [model('scripted/large'), model('scripted/small')],
    env: { SHOP_KEY: CANARY.grantedSecret },
  };
};

const textOf = (content: unknown): string =>
  typeof content === 'string' ? content : JSON.stringify(content ?? '').replaceAll('\\n', '\n');

const askedOf = (body: Fields): Asked => {
  const messages = (body['messages'] ?? []) as readonly Fields[];
  const tools = (body['tools'] ?? []) as readonly { function: { name: string } }[];
  return {
    model: body['model'],
    system: messages
      .filter(({ role }) => role === 'system' || role === 'developer')
      .map(({ content }) => textOf(content))
      .join('\n'),
    messages,
    tools: tools.map((tool) => tool.function.name),
    body,
    text: JSON.stringify(body),
  };
};

/** Starts the session; resolves when the harness is ready. */
export const makeWorld = async (harness: HarnessId, launch: Launch | undefined): Promise<World> => {
  const rig = await makeRig({
    files: PROJECT_FILES,
    claim: await claimOf(harness),
    searchResults: [{ title: 'Bees', url: 'https://bees.example/', snippet: 'They dance.' }],
    launch,
  });
  const { controlPlane, provider } = rig;
  let daemon = rig.start({ BEEUNI_HARNESS: harness });
  const credential = controlPlane.daemonCredential;
  const health = () => daemon.health();
  const ready = () =>
    until(`${harness} is ready`, async () => (await health()).runtimeReady, {
      describe: () => daemon.output().slice(-4_000),
    });
  const begin: World['begin'] = async (given, agent = null) => {
    const parts = typeof given === 'string' ? undefined : [...given];
    const turn = parts === undefined ? { agent } : { agent, parts };
    const turnId = controlPlane.prompt(typeof given === 'string' ? given : '', turn);
    await daemon.call('POST', '/beeuni/nudge', credential, { reason: 'prompt' });
    return turnId;
  };
  const endOf: World['endOf'] = async (turnId) => {
    const end = await controlPlane.event('turn.ended', turnId);
    await until('the daemon is idle', async () => (await health()).activity.state === 'Idle');
    const ends = controlPlane.eventsOf(turnId).filter((event) => event.type === 'turn.ended');
    assert.equal(ends.length, 1, 'a turn ends once');
    return end.data;
  };
  const run: World['run'] = async (parts, agent = null) => {
    const turnId = await begin(parts, agent);
    return { ...(await endOf(turnId)), turnId };
  };
  const eventsOf = (turnId: string): readonly LoggedEvent[] => controlPlane.eventsOf(turnId);
  const call: World['call'] = async (tool, args, agent = null) => {
    const { turnId } = await run(`@@tool ${tool} ${JSON.stringify(args)}\n@@say done`, agent);
    const part = eventsOf(turnId)
      .filter(({ type }) => type === 'message.part.updated')
      .map(({ data }) => fields(data['part']))
      .findLast(({ type }) => type === 'tool');
    assert.ok(part !== undefined, `the call of ${tool} is told`);
    return part as unknown as ToolPart;
  };
  try {
    await ready();
  } catch (error) {
    await rig.stop();
    throw error;
  }
  return {
    harness,
    inContainer: launch !== undefined,
    rig,
    daemon: () => daemon,
    workspace: rig.inner.workspace,
    health,
    details: async () => (await health()).harness.details,
    begin,
    endOf,
    run,
    call,
    bash: async (command, agent) => {
      const { state } = await call('bash', { command, description: 'run' }, agent);
      return state.output ?? state.error ?? '';
    },
    dataOf: (turnId, type) =>
      eventsOf(turnId)
        .filter((event) => event.type === type)
        .map((event) => event.data),
    toolRuns: async (turnId) => {
      await until('a tool of the turn runs', () => JSON.stringify(eventsOf(turnId)).includes('"status":"running"'));
    },
    asked: () => askedOf(fields(provider.requests.at(-1)?.body)),
    post: (path, body) => daemon.call('POST', path, credential, body),
    get: (path) => daemon.call('GET', path, credential),
    killAndResume: async () => {
      daemon.signal('SIGKILL');
      await daemon.exited;
      daemon = rig.start({ BEEUNI_HARNESS: harness });
      await ready();
    },
    stop: rig.stop,
  };
};
