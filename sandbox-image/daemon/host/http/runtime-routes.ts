// The part of port 8000 that asks the harness: verbs of the session and answers of people. Must not know what the verbs do.
// Source: A143, A144.
import { NotFoundError, UnavailableError } from '#base/errors.ts';
import { type Guard, mount } from '#base/http/mount.ts';
import type { HttpServer } from '#base/http/server.ts';
import { answerRequestRoute, type HumanAnswerWire } from '#schema/wire/requests.ts';
import * as routes from '#schema/wire/runtime.ts';
import type { Answering } from '../broker.ts';
import type { RuntimeVerbs } from '../runtime-verbs.ts';

/** Who calls port 8000. */
export type DaemonCaller = Readonly<{ kind: 'anyone' | 'control-plane' }>;

/** What a claimed session can be asked. */
export type RuntimeSession = Readonly<{
  verbs: RuntimeVerbs;
  answer: (id: string, answer: HumanAnswerWire) => Answering;
}>;

/** The verb of a path of these routes; undefined for any other path. */
const verbOf = (url: string): string | undefined => /^\/beeuni\/(?:runtime\/)?([a-z]+)/.exec(url)?.[1];

/**
 * Mounts the routes. Before the claim all answer 503 `runtime_not_ready`. Each answer names its verb, and one that says
 * "not yet" how far the boot is.
 */
export const mountRuntime = (
  server: HttpServer,
  session: () => RuntimeSession | undefined,
  bootPhase: () => string,
  guard: Guard<DaemonCaller>,
): void => {
  server.app.addHook('onSend', async (request, reply) => {
    const isOurs = request.url.startsWith('/beeuni/runtime/') || request.url.startsWith('/beeuni/requests/');
    const verb = isOurs ? verbOf(request.url) : undefined;
    if (verb === undefined) return;
    reply.header('x-beeuni-turn-verb', verb);
    if (reply.statusCode === 503) reply.header('x-beeuni-boot-phase', bootPhase());
  });
  const claimed = (): RuntimeSession => {
    const found = session();
    if (found !== undefined) return found;
    throw new UnavailableError('runtime_not_ready', 'the sandbox has no session yet', { retryAfterMs: 1_000 });
  };
  const ok = <B>(body: B) => ({ status: 200 as const, body });

  mount(
    server,
    routes.readChildrenRoute,
    async ({ signal }) => ok({ children: [...(await claimed().verbs.children(signal))] }),
    guard,
  );
  mount(
    server,
    routes.readTodoRoute,
    async ({ signal }) => ok({ todos: [...(await claimed().verbs.todo(signal))] }),
    guard,
  );
  mount(
    server,
    routes.readCommandsRoute,
    async ({ signal }) => ok({ commands: [...(await claimed().verbs.commands(signal))] }),
    guard,
  );
  mount(
    server,
    routes.readMcpRoute,
    async ({ signal }) => ok({ servers: [...(await claimed().verbs.mcp(signal))] }),
    guard,
  );
  mount(
    server,
    routes.readAttachRoute,
    async ({ signal }) => ok({ command: [...(await claimed().verbs.attach(signal))] }),
    guard,
  );
  mount(
    server,
    routes.readConfigRoute,
    async ({ signal }) => ok({ config: { ...(await claimed().verbs.config(signal)) } }),
    guard,
  );
  mount(
    server,
    routes.revertMessageRoute,
    async ({ body, signal }) => {
      await claimed().verbs.revert(body.messageId, signal);
      return ok({});
    },
    guard,
  );
  mount(
    server,
    routes.unrevertMessageRoute,
    async ({ signal }) => {
      await claimed().verbs.unrevert(signal);
      return ok({});
    },
    guard,
  );
  mount(
    server,
    routes.forkConversationRoute,
    async ({ body, signal }) => ok({ ...(await claimed().verbs.fork(body.messageId ?? null, signal)) }),
    guard,
  );
  mount(
    server,
    routes.steerTurnRoute,
    async ({ body, signal }) => ok({ turnId: await claimed().verbs.steer(body, signal) }),
    guard,
  );
  mount(
    server,
    answerRequestRoute,
    async ({ params, body }) => {
      const state = claimed().answer(params.id, body);
      if (state !== 'unknown') return ok({ state });
      throw new NotFoundError('request_not_found', `nothing is asked under the id ${params.id}`);
    },
    guard,
  );
};
