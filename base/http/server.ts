// Makes an HTTP server with every bound of ours set, without any route. Must not know callers, routes or the product.
// Source: 20-control-plane §1, §2; notes on fastify in docs/decisions.
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { type Clock, systemClock } from '#base/clock.ts';
import { type BeeuniError, errorChain, InvalidError, NotFoundError } from '#base/errors.ts';
import type { Logger } from '#base/log.ts';
import type { Listener, Method } from '#schema/define-route.ts';
import { type ConnectionBudget, limitUnauthenticated, MAX_UNAUTHENTICATED_CONNECTIONS } from './connection-budget.ts';
import { type DirectFront, makeDirectFront } from './direct-front.ts';
import { beeuniErrorShape, type ErrorAnswer, type ErrorShape, errorAnswer } from './error-response.ts';
import { createServer, STATUS_CODES } from './node-http.ts';

/** Largest body of a route that says nothing else. Units: bytes. Source: 20-control-plane §2. */
export const DEFAULT_BODY_LIMIT_BYTES = 1_048_576;
/** Largest request head. Units: bytes. */
export const MAX_HEADER_BYTES = 16_384;
/** How long a client may take to send head and body. Units: milliseconds. */
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 60_000;
/** How long an idle connection is kept; longer than the idle time of common load balancers. Units: milliseconds. */
const KEEP_ALIVE_TIMEOUT_MS = 72_000;

/** One answered request, for metrics. `operation` is the route's operationId, or `other`. */
export type RequestRecord = Readonly<{
  listener: Listener;
  operation: string;
  method: string;
  status: number;
  durationMs: number;
}>;

/** What a server is made from. `observe` must not throw. */
export type HttpServerOptions = Readonly<{
  listener: Listener;
  log: Logger;
  clock?: Clock | undefined;
  observe?: ((record: RequestRecord) => void) | undefined;
  maxUnauthenticatedConnections?: number | undefined;
}>;

/** A server that routes can be mounted on. It does not listen; `listen.ts` does that. */
export type HttpServer = Readonly<{
  app: FastifyInstance;
  listener: Listener;
  log: Logger;
  clock: Clock;
  budget: ConnectionBudget;
  /** Requests whose response is not closed yet. */
  inFlight: () => number;
  observe: HttpServerOptions['observe'];
  /** Serves direct routes before Node's HTTP sees the connection; see direct-route.ts. */
  front: DirectFront;
  /** Runs `end` when the server stops, until the function that is given back is called: for open streams. */
  onStop: (end: () => void) => () => void;
  /** Ends all open streams; from now on every answer also ends its connection. */
  endStreams: () => void;
}>;

declare module 'fastify' {
  interface FastifyContextConfig {
    operation?: string;
  }
}

/** Logs a failed request: what is our fault as an error, what somebody else's is as a warning, the caller's not at all. */
export const logFailure = (
  log: Logger,
  answer: Pick<ErrorAnswer, 'isBug' | 'status' | 'code'>,
  error: unknown,
  fields: Readonly<Record<string, unknown>>,
): void => {
  if (answer.isBug) log.error('a request failed on a fault of ours', { ...fields, err: error });
  else if (answer.status >= 500)
    log.warn('a request failed', { ...fields, code: answer.code, chain: errorChain(error) });
};

/** Sends an error in the given shape, logs what is our fault. For replies whose head has not been sent. */
export const sendError = (
  server: Pick<HttpServer, 'log'>,
  request: FastifyRequest,
  reply: FastifyReply,
  error: unknown,
  shape: ErrorShape = beeuniErrorShape,
): FastifyReply => {
  const answer = errorAnswer(error);
  const operation = request.routeOptions.config.operation ?? 'other';
  logFailure(server.log, answer, error, { requestId: request.id, operation });
  const { complete, headers } = request.raw;
  const hasBody = headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
  // What was not read is not worth reading: the connection ends with the answer.
  if (hasBody && !complete) reply.header('connection', 'close');
  return reply
    .code(answer.status)
    .headers(answer.headers)
    .type('application/json; charset=utf-8')
    .send(JSON.stringify(shape(answer, request.id)));
};

/** Answers on a socket that carries no request of ours, and ends it. */
const refuseSocket = (socket: Duplex, error: BeeuniError, more = ''): void => {
  const answer = errorAnswer(error);
  const body = JSON.stringify(beeuniErrorShape(answer, randomUUID()));
  socket.end(
    `HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status]}\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: ${Buffer.byteLength(body)}\r\n${more}connection: close\r\n\r\n${body}`,
  );
};

/** Answers what Node's parser refuses, in our shape, and closes the connection. */
const onClientError = (error: NodeJS.ErrnoException, socket: Socket): void => {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  refuseSocket(
    socket,
    error.code === 'HPE_HEADER_OVERFLOW'
      ? new InvalidError('head_too_large', `the request line and headers are above ${MAX_HEADER_BYTES} bytes`)
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? new InvalidError('request_too_slow', 'the request took too long to arrive')
        : new InvalidError('invalid_request', 'the request is not valid HTTP'),
  );
};

/** Refuses a tunnel: Node ends the connection without a word when nobody listens for CONNECT. */
const onConnect = (_request: IncomingMessage, socket: Duplex): void => {
  socket.on('error', () => socket.destroy());
  // Node's limits no longer hold for this socket.
  if (socket instanceof Socket) socket.setTimeout(HEADERS_TIMEOUT_MS, () => socket.destroy());
  socket.resume();
  refuseSocket(socket, new InvalidError('method_not_allowed', 'this server is no proxy'), 'allow: \r\n');
};

/** What of a path a parameter stands for. */
const patternOf = (url: string): RegExp => {
  const parts = url.split(/:[A-Za-z]+|\*/).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join(url.endsWith('*') ? '.*' : '[^/]+')}$`);
};

/** Remembers the methods of every path that is mounted from now on, for those who call it with another one. */
const rememberRoutes = (app: FastifyInstance): Readonly<{ methodsOf: (url: string) => readonly string[] }> => {
  const known = new Map<string, Readonly<{ pattern: RegExp; methods: Set<string> }>>();
  app.addHook('onRoute', ({ url, method }) => {
    const route = known.get(url) ?? { pattern: patternOf(url), methods: new Set<string>() };
    for (const one of [method].flat()) route.methods.add(one);
    known.set(url, route);
  });
  return {
    methodsOf: (url) => {
      const [path = ''] = url.split('?');
      const matching = [...known.values()].filter(({ pattern }) => pattern.test(path));
      return [...new Set(matching.flatMap(({ methods }) => [...methods]))].sort();
    },
  };
};

/** Stands where the framework would compile a schema of its own; no route has one. */
const noCompiler = (): never => {
  throw new TypeError('schemas of routes are those of mount.ts');
};

/** A server of one listener with limits, request ids, error shape and metrics; routes are added by `mount.ts`. */
export const createHttpServer = (options: HttpServerOptions): HttpServer => {
  const clock = options.clock ?? systemClock;
  const app: FastifyInstance = fastify({
    serverFactory: (serve) => {
      const http = createServer(
        {
          maxHeaderSize: MAX_HEADER_BYTES,
          insecureHTTPParser: false,
          noDelay: true,
          requireHostHeader: true,
          // Any other upgrade that a client offers (h2c) is left aside, as HTTP allows.
          shouldUpgradeCallback: (request) =>
            request.headers.upgrade?.toLowerCase() === 'websocket' && app.server.listenerCount('upgrade') > 0,
          requestTimeout: REQUEST_TIMEOUT_MS,
          keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
          headersTimeout: HEADERS_TIMEOUT_MS,
        },
        serve,
      );
      return http;
    },
    // Bodies are read and written by the schemas of mount.ts; the framework's own compilers are 2 MB that nothing would use.
    schemaController: { compilersFactory: { buildValidator: noCompiler, buildSerializer: noCompiler } },
    bodyLimit: DEFAULT_BODY_LIMIT_BYTES,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    exposeHeadRoutes: false,
    requestIdHeader: false,
    genReqId: () => randomUUID(),
    logger: false,
    trustProxy: false,
    routerOptions: { maxParamLength: 1_024, ignoreTrailingSlash: false, caseSensitive: true },
    clientErrorHandler: onClientError,
    frameworkErrors: (error, request, reply) => {
      sendError(options, request, reply, error);
    },
  });
  app.server.on('connect', onConnect);
  const front = makeDirectFront(app.server, {
    clock,
    maxHeadBytes: MAX_HEADER_BYTES,
    limits: { headMs: HEADERS_TIMEOUT_MS, requestMs: REQUEST_TIMEOUT_MS, idleMs: KEEP_ALIVE_TIMEOUT_MS },
  });
  const budget = limitUnauthenticated(
    app.server,
    options.maxUnauthenticatedConnections ?? MAX_UNAUTHENTICATED_CONNECTIONS,
  );
  const enders = new Set<() => void>();
  let stopping = false;
  let inFlight = 0;
  const server: HttpServer = {
    app,
    listener: options.listener,
    log: options.log,
    clock,
    budget,
    inFlight: () => inFlight + front.inFlight(),
    observe: options.observe,
    front,
    onStop: (end) => {
      enders.add(end);
      return () => {
        enders.delete(end);
      };
    },
    endStreams: () => {
      stopping = true;
      front.stop();
      for (const end of enders) end();
      enders.clear();
    },
  };
  const routes = rememberRoutes(app);
  const refuseRoute = (request: FastifyRequest, reply: FastifyReply): BeeuniError => {
    const methods = routes.methodsOf(request.url);
    if (methods.length === 0) {
      const [path = ''] = request.url.split('?');
      const isSlash = path.endsWith('/') && routes.methodsOf(path.slice(0, -1)).length > 0;
      const hint = isSlash ? '; it is written without the slash at its end' : '';
      return new NotFoundError('not_found', `there is no such route${hint}`);
    }
    const allowed = methods.join(', ');
    reply.header('allow', allowed);
    const message = `this route does not take the method ${request.method.slice(0, 16)}; it takes ${allowed}`;
    return new InvalidError('method_not_allowed', message);
  };
  // One parser for every type: which types a route takes is decided before the body is read, in mount.ts.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => {
    done(null, body);
  });
  app.addHook('onRequest', async (request, reply) => {
    inFlight += 1;
    reply.raw.once('close', () => {
      inFlight -= 1;
    });
    reply.header('x-request-id', request.id);
    reply.header('x-content-type-options', 'nosniff');
    reply.header('cache-control', 'no-store');
    // Before a body is read, and before the framework asks for the headers of methods that nobody serves.
    if (request.is404) throw refuseRoute(request, reply);
  });
  app.addHook('onSend', async (_request, reply) => {
    if (stopping) reply.header('connection', 'close');
  });
  const { observe } = options;
  if (observe !== undefined) {
    app.addHook('onResponse', async (request, reply) => {
      observe({
        listener: options.listener,
        operation: request.routeOptions.config.operation ?? 'other',
        method: request.method,
        status: reply.raw.statusCode,
        durationMs: reply.elapsedTime,
      });
    });
  }
  app.setErrorHandler((error, request, reply) => sendError(options, request, reply, error));
  app.setNotFoundHandler((request, reply) => sendError(options, request, reply, refuseRoute(request, reply)));
  return server;
};

/** The methods that change something. */
export const isMutating = (method: Method): boolean => method !== 'GET';
