// The model gateway on a listening server of ours, with everything behind it in memory: for tests of what passes through.
// A credential `bs_<name>` is the session of that name. Must not know any single test.
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { systemClock } from '#base/clock.ts';
import { ConflictError, UnauthenticatedError, UnavailableError } from '#base/errors.ts';
import { listen } from '#base/http/listen.ts';
import { createHttpServer } from '#base/http/server.ts';
import { createLogger } from '#base/log.ts';
import type { Caller } from '#controlplane/app/caller.ts';
import type { ProviderKey, RegisteredProvider } from '#controlplane/app/provider-ports.ts';
import { makeFindWithdrawn, makeRunningCalls, type RunningCalls } from '#controlplane/app/running-calls.ts';
import { gatewayErrorShape } from '#controlplane/gateway/error-shape.ts';
import { makeKeyPools } from '#controlplane/gateway/key-pool.ts';
import { makeGatewayModelsHandler } from '#controlplane/gateway/models.ts';
import type { CallEnded, GatewayPorts, UsageRow } from '#controlplane/gateway/ports.ts';
import { makeServeCall } from '#controlplane/gateway/serve.ts';
import { makeUpstreams, type Upstreams } from '#controlplane/gateway/upstream.ts';
import { WIRES } from '#controlplane/gateway/wires.ts';
import { mountGateway } from '#controlplane/http/gateway.ts';
import type { ProviderModel } from '#schema/settings/providers.ts';

/** A provider of the registry with its keys in clear. */
export type RigProvider = Omit<RegisteredProvider, 'generation' | 'keys'> &
  Readonly<{ secrets: readonly ProviderKey[] }>;

/** What a test may change while it runs; `generation` must grow when `providers` change. */
export type RigState = {
  providers: readonly RigProvider[];
  generation: number;
  allowed: readonly string[] | null;
  gatewayIsOn: boolean;
  registryIsDown: boolean;
  usageIsFull: boolean;
  roles: Readonly<Record<string, string>>;
  revoked: Set<string>;
};

/** One answer, read to its end or to where it broke. */
export type RigAnswer = Readonly<{
  status: number;
  headers: IncomingMessage['headers'];
  text: string;
  /** True when the connection broke before the answer was whole. */
  isCut: boolean;
}>;

/** A running gateway. `url` ends in `/gateway/v1`. */
export type GatewayRig = Readonly<{
  url: string;
  state: RigState;
  usage: UsageRow[];
  logs: string[];
  ended: CallEnded[];
  fellBack: string[];
  upstreams: Upstreams;
  /** Ends the calls of sessions that were revoked. */
  lookAtRunning: RunningCalls['look'];
  post: (path: string, body: string | Buffer, headers?: Readonly<Record<string, string>>) => Promise<RigAnswer>;
  close: () => Promise<void>;
}>;

/** A model with prices of one and two micro-USD a token. */
export const rigModel = (id: string, more: Partial<ProviderModel> = {}): ProviderModel => ({
  id,
  context_window: 1000,
  max_output: 100,
  input: ['text'],
  reasoning: false,
  price_input_micro_usd: 1_000_000,
  price_output_micro_usd: 2_000_000,
  enabled: true,
  ...more,
});

/** Time limits that no test reaches by chance. */
export const RIG_TIMEOUTS = { connect_ms: 1_000, first_byte_ms: 5_000, idle_ms: 5_000, total_ms: 20_000 };

/** A provider of the rig. */
export const rigProvider = (id: string, baseUrl: string, more: Partial<RigProvider> = {}): RigProvider => ({
  id,
  kind: 'openai-compatible',
  base_url: baseUrl,
  headers: {},
  timeouts: RIG_TIMEOUTS,
  models: [rigModel('scripted-large')],
  enabled: true,
  secrets: [],
  ...more,
});

/** Starts a gateway on a free loopback port. `ports` replace those of the rig. */
export const startGatewayRig = async (
  options: Readonly<{ maxConnections?: number; maxRequestBytes?: number; ports?: Partial<GatewayPorts> }> = {},
): Promise<GatewayRig> => {
  const usage: UsageRow[] = [];
  const logs: string[] = [];
  const ended: CallEnded[] = [];
  const fellBack: string[] = [];
  const log = createLogger({ level: 'debug', write: (line) => logs.push(line) });
  const upstreams = makeUpstreams({
    allowedAddresses: ['127.0.0.0/8'],
    maxConnections: options.maxConnections ?? 16,
  });
  const state: RigState = {
    providers: [],
    generation: 1,
    allowed: null,
    gatewayIsOn: true,
    registryIsDown: false,
    usageIsFull: false,
    roles: {},
    revoked: new Set(),
  };
  const running = makeRunningCalls(
    async (holders) =>
      holders
        .filter(({ sessionUid }) => state.revoked.has(sessionUid))
        .map((holder) => ({ ...holder, why: 'superseded' as const })),
    (use) => makeFindWithdrawn(ports)(use),
  );
  let read: Readonly<{ generation: number; providers: readonly RegisteredProvider[] }> | undefined;
  const ports: GatewayPorts & Readonly<{ keyPools: ReturnType<typeof makeKeyPools> }> = {
    readRegistry: async () => {
      if (state.registryIsDown)
        throw new UnavailableError('registry_unavailable', 'the provider registry cannot be read now');
      if (read?.generation !== state.generation) {
        const { generation } = state;
        const providers = state.providers.map(({ secrets: _secrets, ...rest }) => ({ ...rest, keys: [], generation }));
        read = { generation, providers };
      }
      return read;
    },
    findProjectPolicy: (uid) =>
      uid === 'project-1' ? { gateway: state.gatewayIsOn, allowed: state.allowed } : undefined,
    readKeys: async ({ id }) => state.providers.find((provider) => provider.id === id)?.secrets ?? [],
    resolveRole: async (role) => state.roles[role],
    findLimits: () => ({ budgets: [], runs: undefined }),
    budgets: {
      take: () => ({ settle: () => undefined }),
      stored: () => undefined,
      lowestRests: () => ({ all: 1, projects: new Map() }),
    },
    onBudgetReached: () => undefined,
    takeCall: () => undefined,
    upstreams,
    running,
    usage: { record: (row) => usage.push(row), isFull: () => state.usageIsFull },
    clock: systemClock,
    log,
    maxRequestBytes: options.maxRequestBytes ?? 200_000,
    observe: {
      ended: (call) => ended.push(call),
      fellBack: (reason) => fellBack.push(reason),
      rotated: () => undefined,
    },
    keyPools: makeKeyPools(systemClock),
    ...options.ports,
  };
  const server = createHttpServer({ listener: 'sandbox', log });
  mountGateway(
    server,
    {
      chat: makeServeCall(ports, WIRES.chat),
      responses: makeServeCall(ports, WIRES.responses),
      messages: makeServeCall(ports, WIRES.messages),
      embeddings: makeServeCall(ports, WIRES.embeddings),
      models: makeGatewayModelsHandler(ports),
      errorShapes: { openai: gatewayErrorShape('openai'), anthropic: gatewayErrorShape('anthropic') },
    },
    {
      authenticate: async (call): Promise<Caller> => {
        const sessionUid = /^Bearer bs_(\S+)$/.exec(call.header('authorization') ?? '')?.[1];
        if (sessionUid === undefined || state.revoked.has(sessionUid)) {
          throw new UnauthenticatedError('the session credential is not valid, or no longer');
        }
        if (sessionUid === 'old') throw new ConflictError('superseded', 'generation 2 is not the newest claim');
        return { kind: 'sandbox', sessionUid, generation: 3, podUid: 'p', namespace: 'n', projectUid: 'project-1' };
      },
      authorize: async () => undefined,
    },
  );
  const listening = await listen(server, { port: 0, host: '127.0.0.1' });
  const url = `${listening.url}/gateway/v1`;
  return {
    url,
    state,
    usage,
    logs,
    ended,
    fellBack,
    upstreams,
    lookAtRunning: running.look,
    post: (path, body, headers = {}) =>
      new Promise((resolve, reject) => {
        const request = httpRequest(`${url}${path}`, {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            'content-length': Buffer.byteLength(body),
            authorization: 'Bearer bs_s',
            ...headers,
          },
          agent: false,
        });
        request.on('error', reject);
        request.on('response', (response) => {
          const parts: Buffer[] = [];
          response.on('data', (part: Buffer) => parts.push(part));
          const done = (isCut: boolean) => () =>
            resolve({
              status: response.statusCode ?? 0,
              headers: response.headers,
              text: Buffer.concat(parts).toString('utf8'),
              isCut,
            });
          response.on('end', done(false));
          response.on('error', done(true));
        });
        request.end(body);
      }),
    close: async () => {
      await listening.stop(0);
      await upstreams.close();
    },
  };
};
