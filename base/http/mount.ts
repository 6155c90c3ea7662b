// Serves a route value: who calls, may they, what do they say, then the handler, then its answer against the contract.
// Must not know how a caller is recognised or what a route does. Source: 20-control-plane §2.
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { type BeeuniError, errorChain, ForbiddenError, InvalidError } from '#base/errors.ts';
import type { Route, RouteAnswer, RouteRequest } from '#schema/define-route.ts';
import { beeuniErrorShape, errorAnswer } from './error-response.ts';
import { parseJsonBody } from './json-body.ts';
import { NDJSON_HEADERS, type NdjsonWriter, ndjsonHeartbeat, ndjsonWriter } from './ndjson.ts';
import { parseInput } from './parse-input.ts';
import { type HttpServer, isMutating, sendError } from './server.ts';
import { formatSseFrame, SSE_HEADERS, type SseWriter, sseHeartbeat, sseWriter } from './sse.ts';
import { type OpenStream, openStream } from './stream-writer.ts';
import { watchRights } from './watch-rights.ts';

/** What is known of a request besides its parsed parts. */
export type RequestContext<C> = Readonly<{
  caller: C;
  /** Fires when the caller leaves before the answer, or the server stops while a stream is open. */
  signal: AbortSignal;
  requestId: string;
  /** A request header by its lower-case name; undefined when absent. */
  header: (name: string) => string | undefined;
}>;

/** What a handler is given. */
export type HandlerRequest<R extends Route, C> = RouteRequest<R> & RequestContext<C>;

/** Answers a call with one of the declared answers; errors are thrown as BeeuniError. */
export type Handler<R extends Route, C> = (request: HandlerRequest<R, C>) => Promise<RouteAnswer<R>>;

/** One answer with its literal status; needed where a handler is written in the call of `mount` itself. */
export const answer = <S extends number, B>(status: S, body: B): Readonly<{ status: S; body: B }> => ({ status, body });

/** Writes server-sent events until it resolves; an error before the first frame is answered as for any route. */
export type SseHandler<R extends Route, C> = (request: HandlerRequest<R, C>, writer: SseWriter) => Promise<void>;

/** Frame of an NDJSON route: the shape of its response 200. */
export type NdjsonFrame<R extends Route> = R['responses'] extends { 200: infer S extends z.ZodType }
  ? z.input<S>
  : never;

/** Writes NDJSON frames until it resolves; an error before the first frame is answered as for any route. */
export type NdjsonHandler<R extends Route, C> = (
  request: HandlerRequest<R, C>,
  writer: NdjsonWriter<NdjsonFrame<R>>,
) => Promise<void>;

/** What the guard is told of a call before its body is read. */
export type GuardedCall = Readonly<{
  route: Route;
  params: Readonly<Record<string, string>>;
  /** The query as it was sent, without the question mark; absent for raw routes. */
  query?: string | undefined;
  requestId: string;
  header: (name: string) => string | undefined;
  signal: AbortSignal;
}>;

/** Any route's answer, as a guard sees it. */
export type AnyAnswer = Readonly<{ status: number; body: unknown }>;

/** Who decides about callers. Errors are thrown: 401, 403, 429, 503. */
export type Guard<C> = Readonly<{
  /** Who calls; at once where nobody has to be asked. */
  authenticate: (call: GuardedCall) => Promise<C> | C;
  /** Whether the caller may; resolves or throws. */
  authorize: (call: GuardedCall, caller: C) => Promise<void> | void;
  /**
   * Whether the call of an open stream would still be let in, from an answer that is not older than half a second; absent:
   * by the two functions above. It counts as no call.
   */
  recheck?: ((call: GuardedCall) => Promise<void>) | undefined;
  /** Runs around the handler of a route that is no stream: audit, idempotency. `body` is the parsed body. */
  around?:
    | ((call: GuardedCall, caller: C, body: unknown, run: () => Promise<AnyAnswer>) => Promise<AnyAnswer>)
    | undefined;
}>;

const JSON_TYPE = /^application\/json(?:; ?charset=utf-8)?$/i;
const SINGLE_HEADERS = ['content-type', 'content-length', 'authorization', 'idempotency-key', 'host'];

const countHeader = (request: FastifyRequest, name: string): number => {
  let count = 0;
  for (let at = 0; at < request.raw.rawHeaders.length; at += 2) {
    if (request.raw.rawHeaders[at]?.toLowerCase() === name) count += 1;
  }
  return count;
};

const headerOf =
  (request: FastifyRequest) =>
  (name: string): string | undefined => {
    const value = request.headers[name];
    return Array.isArray(value) ? value.join(', ') : value;
  };

/** Refuses a head that two readers could understand differently. Source: FC10, CVE-2026-25223. */
const checkHead = (request: FastifyRequest, takesBody: boolean): void => {
  for (const name of SINGLE_HEADERS) {
    if (countHeader(request, name) > 1) {
      const code = name === 'content-type' ? 'unsupported_media_type' : 'invalid_request';
      throw new InvalidError(code, `the header ${name} was sent more than once`);
    }
  }
  const type = request.headers['content-type'];
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity') {
    throw new InvalidError('unsupported_media_type', 'a body must not be compressed');
  }
  const hasBody =
    request.headers['transfer-encoding'] !== undefined || (request.headers['content-length'] ?? '0') !== '0';
  if (!takesBody) {
    if (hasBody) throw new InvalidError('invalid_request', 'this route takes no body');
  } else if (type === undefined ? hasBody : !JSON_TYPE.test(type)) {
    throw new InvalidError('unsupported_media_type', 'the content type must be application/json');
  }
};

/**
 * Refuses a change that a page of another site asks a browser for. Nothing here lives by cookies, so such a call would
 * carry no credential; this is the second bar. Source: FF12.
 */
const checkOrigin = (request: FastifyRequest): void => {
  const { origin, host } = request.headers;
  if (origin === undefined) return;
  const from = URL.canParse(origin) ? new URL(origin).host : undefined;
  if (from === undefined || from !== host) {
    throw new ForbiddenError('forbidden', 'a page of another origin may not call this');
  }
};

type Admitted<C> = Readonly<{ call: GuardedCall; caller: C; params: unknown }>;

const EMPTY = z.object({});

/** Signal of one call: fires when the response closes before it was finished. */
const signalOf = (reply: FastifyReply): AbortSignal => {
  const controller = new AbortController();
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) controller.abort();
  });
  return controller.signal;
};

type Run<C> = (request: FastifyRequest, reply: FastifyReply, admitted: Admitted<C>) => Promise<unknown>;

/**
 * Registers a route: whoever calls is known, allowed, and its path parsed, before `run` is called. For the kinds of routes of this
 * folder. Throws TypeError when the route belongs to another listener.
 */
export const serveRoute = <C>(server: HttpServer, route: Route, guard: Guard<C>, run: Run<C>): void => {
  if (route.listener !== server.listener) {
    throw new TypeError(`route ${route.operationId} belongs to listener ${route.listener}, not ${server.listener}`);
  }
  const admittedOf = new WeakMap<FastifyRequest, Admitted<C>>();
  server.app.route({
    method: route.method,
    url: route.path,
    config: { operation: route.operationId },
    ...(route.bodyLimitBytes === undefined ? {} : { bodyLimit: route.bodyLimitBytes }),
    onRequest: async (request, reply) => {
      const call: GuardedCall = {
        route,
        params: request.params as Readonly<Record<string, string>>,
        query: request.url.split('?').slice(1).join('?'),
        requestId: request.id,
        header: headerOf(request),
        signal: signalOf(reply),
      };
      checkHead(request, route.body !== undefined);
      if (isMutating(route.method) || route.stream === 'websocket') checkOrigin(request);
      const caller = await guard.authenticate(call);
      if (route.auth.kind !== 'anyone') server.budget.admit(request.raw.socket);
      const params = route.params === undefined ? undefined : parseInput('path', route.params, call.params);
      await guard.authorize(call, caller);
      admittedOf.set(request, { call, caller, params });
    },
    handler: async (request, reply) => {
      const admitted = admittedOf.get(request);
      if (admitted === undefined) throw new Error(`route ${route.operationId} was reached without its guard`);
      return run(request, reply, admitted);
    },
  });
};

const bodyOf = (route: Route, request: FastifyRequest): unknown => {
  if (route.body === undefined) return undefined;
  const bytes = request.body;
  if (bytes instanceof Uint8Array && bytes.length > 0) return parseInput('body', route.body, parseJsonBody(bytes));
  // A verb may need nothing; a change that says nothing is a body that was lost on its way.
  if (route.method === 'PUT' || route.method === 'PATCH') {
    throw new InvalidError('invalid_request', 'the body is empty; send a JSON object');
  }
  return parseInput('body', route.body, {});
};

/** What a handler is given, with query and body parsed. Errors: InvalidError. */
export const requestOf = <R extends Route, C>(
  route: R,
  request: FastifyRequest,
  admitted: Admitted<C>,
): HandlerRequest<R, C> => {
  const query = parseInput('query', route.query ?? EMPTY, request.query);
  const parts = {
    params: admitted.params,
    query: route.query === undefined ? undefined : query,
    body: bodyOf(route, request),
    caller: admitted.caller,
    signal: admitted.call.signal,
    requestId: request.id,
    header: admitted.call.header,
  };
  return parts as unknown as HandlerRequest<R, C>;
};

const checkedBody = (route: Route, answer: AnyAnswer): unknown => {
  const schema = route.responses[answer.status];
  if (schema === undefined)
    throw new Error(`route ${route.operationId} answered the undeclared status ${answer.status}`);
  const result = schema.safeParse(answer.body);
  if (!result.success) {
    throw new Error(`route ${route.operationId} answered ${answer.status} with a body that it does not declare`, {
      cause: result.error,
    });
  }
  return result.data;
};

/** A value as an ETag: the strong validator of an answer. */
export const etagOf = (value: unknown): string => `"${String(value)}"`;

/** Serves a route. Throws TypeError when the route belongs to another listener or is a stream. */
export const mount = <R extends Route, C>(
  server: HttpServer,
  route: R,
  handler: Handler<NoInfer<R>, NoInfer<C>>,
  guard: Guard<C>,
): void => {
  if (route.stream !== undefined) throw new TypeError(`route ${route.operationId} is a stream`);
  serveRoute(server, route, guard, async (request, reply, admitted) => {
    const parsed = requestOf(route, request, admitted);
    const run = (): Promise<AnyAnswer> => handler(parsed);
    const { around } = guard;
    const answer = await (around === undefined ? run() : around(admitted.call, admitted.caller, parsed.body, run));
    const body = checkedBody(route, answer);
    reply.code(answer.status);
    if (answer.status === 204) return reply.send();
    if (route.etag !== undefined) reply.header('etag', etagOf((body as Record<string, unknown>)[route.etag]));
    return reply.type('application/json; charset=utf-8').send(JSON.stringify(body));
  });
};

/** How one stream is run. `lastWords`: what its reader is told when it may no longer read. */
type StreamRun = Readonly<{
  stream: OpenStream;
  watch: (onLost: (error: BeeuniError) => void) => () => void;
  lastWords: (error: BeeuniError) => string;
  run: () => Promise<void>;
}>;

const runStream = async (
  server: HttpServer,
  request: FastifyRequest,
  reply: FastifyReply,
  { stream, watch, lastWords, run }: StreamRun,
): Promise<unknown> => {
  const forget = server.onStop(() => stream.end('stopped'));
  const stopWatching = watch((error) => {
    stream.writer.write(lastWords(error));
    stream.end('revoked');
  });
  try {
    await run();
    if (!stream.started() && stream.writer.ended() === undefined) stream.writer.write('');
    stream.end('finished');
    reply.hijack();
    return reply;
  } catch (error) {
    if (!stream.started() && stream.writer.ended() === undefined) return sendError(server, request, reply, error);
    const left = stream.writer.ended();
    if (left === undefined) {
      server.log.error('a stream broke', { requestId: request.id, chain: errorChain(error), err: error });
    }
    reply.hijack();
    reply.raw.destroy();
    return reply;
  } finally {
    stopWatching();
    forget();
  }
};

type StreamSettings = Readonly<{ heartbeatMs?: number | undefined; capBytes?: number | undefined }>;

const streamOf = (
  server: HttpServer,
  reply: FastifyReply,
  headers: Readonly<Record<string, string>>,
  heartbeat: () => string,
  settings: StreamSettings,
): OpenStream =>
  openStream({
    response: reply.raw,
    clock: server.clock,
    headers: { ...headers, 'x-request-id': reply.request.id, 'x-content-type-options': 'nosniff' },
    heartbeat,
    ...settings,
  });

/**
 * Serves a route with `stream: 'sse'`. The request's signal also fires when the stream ends. A reader whose right was taken
 * away gets a last event `error` with the body of the answer that a new call would get. Throws TypeError otherwise.
 */
export const mountSse = <R extends Route, C>(
  server: HttpServer,
  route: R,
  handler: SseHandler<NoInfer<R>, NoInfer<C>>,
  guard: Guard<C>,
  settings: StreamSettings = {},
): void => {
  if (route.stream !== 'sse') throw new TypeError(`route ${route.operationId} is no SSE stream`);
  serveRoute(server, route, guard, async (request, reply, admitted) => {
    const parsed = requestOf(route, request, admitted);
    const stream = streamOf(server, reply, SSE_HEADERS, sseHeartbeat, settings);
    const { writer } = stream;
    return runStream(server, request, reply, {
      stream,
      watch: (onLost) => watchRights(server, guard, admitted.call, onLost),
      lastWords: (error) => formatSseFrame({ event: 'error', data: beeuniErrorShape(errorAnswer(error), request.id) }),
      run: () => handler({ ...parsed, signal: writer.signal }, sseWriter(writer)),
    });
  });
};

/** Serves a route with `stream: 'ndjson'`. The request's signal also fires when the stream ends. Throws TypeError otherwise. */
export const mountNdjson = <R extends Route, C>(
  server: HttpServer,
  route: R,
  handler: NdjsonHandler<NoInfer<R>, NoInfer<C>>,
  guard: Guard<C>,
  settings: StreamSettings = {},
): void => {
  if (route.stream !== 'ndjson') throw new TypeError(`route ${route.operationId} is no NDJSON stream`);
  serveRoute(server, route, guard, async (request, reply, admitted) => {
    const parsed = requestOf(route, request, admitted);
    const stream = streamOf(server, reply, NDJSON_HEADERS, ndjsonHeartbeat, settings);
    const { writer } = stream;
    return runStream(server, request, reply, {
      stream,
      watch: (onLost) => watchRights(server, guard, admitted.call, onLost),
      // The next call says why.
      lastWords: ndjsonHeartbeat,
      run: () => handler({ ...parsed, signal: writer.signal }, ndjsonWriter(writer)),
    });
  });
};
