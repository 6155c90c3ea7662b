// The sandbox listener of the control plane, served in process from the contracts of schema/wire: claims, prompts,
// events, health, the git proxy in front of a real repository, and the gateway in front of a model provider.
// It keeps everything in memory and can be told to be gone. Must not know the daemon's code.
import { randomBytes } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { ConflictError, InvalidError, UnauthenticatedError, UnavailableError, UnsupportedError } from '#base/errors.ts';
import { listen } from '#base/http/listen.ts';
import { type Guard, mount } from '#base/http/mount.ts';
import { mountRaw } from '#base/http/raw-route.ts';
import { createHttpServer } from '#base/http/server.ts';
import { createLogger } from '#base/log.ts';
import type { DaemonEvent, EventType } from '#schema/events/envelope.ts';
import { type ClaimAnswer, claimRoute } from '#schema/wire/claim.ts';
import { chatCompletionsRoute, GATEWAY_PATH, gatewayModelsRoute } from '#schema/wire/gateway.ts';
import { GIT_PATH, gitInfoRefsRoute, gitReceivePackRoute, gitUploadPackRoute } from '#schema/wire/git.ts';
import { type HealthDocument, healthReportRoute } from '#schema/wire/health.ts';
import type { DeliveredAnswer } from '#schema/wire/requests.ts';
import { appendEventsRoute, byeRoute, nextTurnRoute, type Turn } from '#schema/wire/turns.ts';
import { type SearchResult, webImagesRoute, webScrapeRoute, webSearchRoute } from '#schema/wire/web.ts';
import type { GitBackend } from './git-backend.ts';
import { until } from './until.ts';

/** An event as it was stored: in order, with the generation that sent it. */
export type LoggedEvent = DaemonEvent & Readonly<{ seq: number; generation: number }>;

/** What a claim answers besides what the double fills in by itself. */
export type ClaimOverrides = Partial<Omit<ClaimAnswer, 'state' | 'generation' | 'credential'>>;

/** Settings of the double. `token`: content of the pod's token file. */
export type ControlPlaneOptions = Readonly<{
  token: string;
  git: GitBackend;
  provider: Readonly<{ url: string; key: string }>;
  claim?: ClaimOverrides | undefined;
  /** What every web search finds; without it there is no back end. */
  searchResults?: readonly SearchResult[] | undefined;
}>;

/** A running double. */
export type ScriptedControlPlane = Readonly<{
  url: string;
  /** Stores a prompt; gives back its turn id. */
  prompt: (text: string, options?: Partial<Pick<Turn, 'agent' | 'model' | 'parts'>>) => string;
  events: readonly LoggedEvent[];
  eventsOf: (turnId: string) => readonly LoggedEvent[];
  /** Tells of each event from now on, at once when it is stored. */
  onStored: (told: (event: LoggedEvent) => void) => void;
  /** Waits for the first event of a type, of a turn if one is given. */
  event: (type: EventType, turnId?: string) => Promise<LoggedEvent>;
  health: () => HealthDocument | undefined;
  /** Waits until the newest report satisfies the test. */
  healthy: (what: string, test: (document: HealthDocument) => boolean) => Promise<HealthDocument>;
  byes: readonly string[];
  claims: () => number;
  /** While true every call but the claim is answered 503. */
  setGone: (gone: boolean) => void;
  /** While true the gateway lets the call pass and drops the answer to the append: it is stored, but nobody knows. */
  setDeaf: (deaf: boolean) => void;
  /** Answers to claims wait while this is set. */
  setUnassigned: (unassigned: boolean) => void;
  /** Makes the running daemon the one of an older generation. */
  supersede: () => void;
  /** Gives an answer of a person with every report from now on. */
  answerByReport: (answer: DeliveredAnswer) => void;
  /** Asks for the abort of a turn by the answer to the next report. */
  abortByReport: (turnId: string) => void;
  credentials: () => readonly string[];
  daemonCredential: string;
  /** Headers of the model calls, newest last. */
  modelCalls: readonly Readonly<Record<string, string>>[];
  stop: () => Promise<void>;
}>;

type Caller = Readonly<{ generation: number }>;

const bearer = (header: string | undefined): string => /^Bearer (.+)$/.exec(header ?? '')?.[1] ?? '';

/** Starts the double on a free loopback port. */
export const startScriptedControlPlane = async (options: ControlPlaneOptions): Promise<ScriptedControlPlane> => {
  const server = createHttpServer({ listener: 'sandbox', log: createLogger({ level: 'error', write: () => {} }) });
  const daemonCredential = `dc_${randomBytes(24).toString('base64url')}`;
  const credentials: string[] = [];
  const events: LoggedEvent[] = [];
  const waiting: Turn[] = [];
  const byes: string[] = [];
  const modelCalls: Record<string, string>[] = [];
  let running: Readonly<{ turn: Turn; generation: number }> | undefined;
  let generation = 0;
  let acknowledgedN = 0;
  let prompts = 0;
  let health: HealthDocument | undefined;
  let abortTurnId: string | null = null;
  const answers: DeliveredAnswer[] = [];
  let gone = false;
  let deaf = false;
  let tell: ((event: LoggedEvent) => void) | undefined;
  let unassigned = false;

  const guard: Guard<Caller> = {
    authenticate: async (call) => {
      const given = bearer(call.header('authorization'));
      if (call.route.auth.kind === 'pod') {
        if (given !== options.token) throw new UnauthenticatedError('the token of the pod is not valid');
        return { generation };
      }
      if (gone) throw new UnavailableError('database_unavailable', 'the control plane is told to be gone');
      const of = credentials.indexOf(given) + 1;
      if (of === 0) throw new UnauthenticatedError('the session credential is not valid');
      if (of !== generation) throw new ConflictError('superseded', 'a newer claim of this session exists');
      return { generation: of };
    },
    authorize: async () => {},
  };

  const store = (event: DaemonEvent, of: number): void => {
    const isSecondEnd =
      event.type === 'turn.ended' &&
      events.some((other) => other.type === 'turn.ended' && other.turnId === event.turnId);
    if (isSecondEnd) return;
    const logged = { ...event, seq: events.length + 1, generation: of };
    events.push(logged);
    tell?.(logged);
    if (event.type === 'turn.ended' && running?.turn.turnId === event.turnId) running = undefined;
  };

  mount(
    server,
    claimRoute,
    async ({ body }) => {
      if (unassigned)
        return { status: 202 as const, body: { state: 'wait' as const, reason: 'not_assigned' as const } };
      const previous = { generation, acknowledgedN };
      generation += 1;
      acknowledgedN = 0;
      health = undefined;
      const credential = `bs_${randomBytes(6).toString('hex')}_${randomBytes(32).toString('base64url')}`;
      credentials.push(credential);
      if (running !== undefined) {
        const { promptId, turnId } = running.turn;
        const data = {
          promptId,
          outcome: 'Interrupted',
          code: 'sandbox_lost',
          message: null,
          summary: null,
          commit: null,
        };
        const event = {
          id: `cp_${generation}`,
          n: 1,
          type: 'turn.ended',
          threadId: 'root',
          hidden: false,
          causedBy: null,
        };
        store({ ...event, at: new Date().toISOString(), turnId, data }, generation);
      }
      running = undefined;
      return {
        status: 200 as const,
        body: {
          state: 'claimed' as const,
          session: { namespace: 'team', name: 'fix-login', uid: '11111111-2222-3333-4444-555555555555' },
          project: { name: 'shop', uid: '99999999-2222-3333-4444-555555555555' },
          generation,
          credential,
          daemonCredential,
          harness: body.harness ?? 'opencode',
          branch: 'beeuni/fix-login-11111',
          baseBranch: 'main',
          baseCommit: options.git.baseCommit,
          gitPath: GIT_PATH,
          author: { name: 'Ada Agent', email: 'ada@example.com' },
          agent: 'dev',
          agents: [
            {
              name: 'dev',
              mode: 'primary' as const,
              prompt: 'You are the developer.',
              tools: 'all' as const,
              skills: 'all' as const,
            },
          ],
          model: aModel('scripted/large'),
          models: [aModel('scripted/large'), aModel('scripted/small')],
          gatewayPath: GATEWAY_PATH,
          maxModelRequestBytes: 2_064_384,
          env: {},
          envRevision: 1,
          headSeq: events.length,
          previous,
          unattended: false,
          ...options.claim,
        },
      };
    },
    guard,
  );
  mount(
    server,
    healthReportRoute,
    async ({ body }) => {
      health = body;
      const asked = abortTurnId;
      abortTurnId = null;
      return { status: 200 as const, body: { promptsWaiting: waiting.length > 0, abortTurnId: asked, answers } };
    },
    guard,
  );
  mount(
    server,
    nextTurnRoute,
    async ({ caller }) => {
      const turn = running?.turn ?? waiting.shift() ?? null;
      if (turn !== null) running = { turn, generation: caller.generation };
      return { status: 200 as const, body: { turn } };
    },
    guard,
  );
  mount(
    server,
    appendEventsRoute,
    async ({ body, caller }) => {
      for (const event of body.events) {
        if (event.n <= acknowledgedN) continue;
        if (event.n !== acknowledgedN + 1) throw new InvalidError('invalid_request', `event ${event.n} leaves a gap`);
        acknowledgedN = event.n;
        store(event, caller.generation);
      }
      if (deaf) throw new UnavailableError('database_unavailable', 'stored, but the answer is lost');
      return { status: 200 as const, body: { acknowledgedN, headSeq: events.length } };
    },
    guard,
  );
  mount(
    server,
    byeRoute,
    async ({ body }) => {
      byes.push(body.reason);
      return { status: 204 as const, body: null };
    },
    guard,
  );
  const { searchResults } = options;
  const noWeb = (): never => {
    throw new UnsupportedError('web_not_configured', 'this installation has no back end for this web tool');
  };
  mount(
    server,
    webSearchRoute,
    async () => ({ status: 200 as const, body: { results: searchResults?.slice() ?? noWeb() } }),
    guard,
  );
  mount(server, webImagesRoute, async () => noWeb(), guard);
  mount(server, webScrapeRoute, async () => noWeb(), guard);
  for (const route of [gitInfoRefsRoute, gitUploadPackRoute, gitReceivePackRoute]) {
    mountRaw(
      server,
      {
        route,
        handler: async ({ request, response }) =>
          options.git.serve(request, response, (request.url ?? '').slice(GIT_PATH.length)),
      },
      guard,
    );
  }
  for (const route of [chatCompletionsRoute, gatewayModelsRoute]) {
    mountRaw(
      server,
      {
        route,
        handler: ({ request, response, signal }) =>
          new Promise<void>((resolve, reject) => {
            modelCalls.push(
              Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)])),
            );
            const upstream = httpRequest(
              options.provider.url + (request.url ?? '').slice(GATEWAY_PATH.length),
              {
                method: request.method ?? 'POST',
                headers: { 'content-type': 'application/json', authorization: `Bearer ${options.provider.key}` },
              },
              (answer) => {
                const { 'retry-after': retryAfter, 'content-type': type } = answer.headers;
                response.writeHead(answer.statusCode ?? 502, {
                  'content-type': type ?? 'application/json',
                  'x-request-id': 'req-500-7f429',
                  ...(retryAfter === undefined ? {} : { 'retry-after': retryAfter }),
                });
                answer.on('error', () => response.destroy());
                answer.pipe(response);
                response.once('close', resolve);
              },
            );
            upstream.once('error', reject);
            signal.addEventListener('abort', () => upstream.destroy(), { once: true });
            request.pipe(upstream);
          }),
      },
      guard,
    );
  }

  const listening = await listen(server, { port: 0, host: '127.0.0.1' });
  const tail = () =>
    events
      .slice(-12)
      .map((event) => `${event.seq} g${event.generation} ${event.type} ${JSON.stringify(event.data).slice(0, 160)}`);
  return {
    url: listening.url,
    prompt: (text, turn = {}) => {
      prompts += 1;
      const id = `p${prompts}`;
      waiting.push({
        turnId: `t${prompts}`,
        promptId: id,
        messageId: `m${prompts}`,
        parts: [{ type: 'text', text }],
        agent: null,
        model: null,
        ...turn,
      });
      return `t${prompts}`;
    },
    events,
    eventsOf: (turnId) => events.filter((event) => event.turnId === turnId),
    onStored: (told) => {
      tell = told;
    },
    event: (type, turnId) =>
      until(
        `the event ${type} of ${turnId ?? 'any turn'} is stored`,
        () => events.find((event) => event.type === type && (turnId === undefined || event.turnId === turnId)),
        { deadlineMs: 60_000, describe: tail },
      ),
    health: () => health,
    healthy: (what, test) =>
      until(`health says ${what}`, () => (health !== undefined && test(health) ? health : undefined), {
        deadlineMs: 90_000,
        describe: () => health,
      }),
    byes,
    claims: () => generation,
    setGone: (value) => {
      gone = value;
    },
    setDeaf: (value) => {
      deaf = value;
    },
    setUnassigned: (value) => {
      unassigned = value;
    },
    supersede: () => {
      generation += 1;
      credentials.push('nobody');
    },
    answerByReport: (answer) => {
      answers.push(answer);
    },
    abortByReport: (turnId) => {
      abortTurnId = turnId;
    },
    credentials: () => credentials,
    daemonCredential,
    modelCalls,
    stop: async () => {
      await listening.stop(0);
    },
  };
};

/** A model as a claim names it. */
const aModel = (name: string) => ({
  name,
  contextWindowTokens: 200_000,
  maxOutputTokens: 16_000,
  input: ['text' as const],
  reasoning: false,
});
