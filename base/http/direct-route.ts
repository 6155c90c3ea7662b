// A raw route without the framework between: for paths that are called so often that its share of each call counts.
// Guard, limits, error shape and records are those of every route; what is not exactly the path goes to the raw route.
// Must not know what passes through.
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { beeuniErrorShape, errorAnswer } from './error-response.ts';
import type { Guard, GuardedCall } from './mount.ts';
import { mountRaw, type RawCall, type RawRoute } from './raw-route.ts';
import { type HttpServer, logFailure } from './server.ts';

const NO_PARAMS = {};

/** One call; what is seldom asked for is made when it is. A class, as there is one for every call. */
class DirectCall<C> implements GuardedCall, RawCall<C> {
  readonly route: GuardedCall['route'];
  readonly params: Readonly<Record<string, string>> = NO_PARAMS;
  readonly requestId: string = randomUUID();
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly startedMs: number;
  readonly #bearerHeader: string | undefined;
  #caller: C | undefined;
  #controller: AbortController | undefined;

  constructor(raw: RawRoute<C>, request: IncomingMessage, response: ServerResponse, startedMs: number) {
    this.route = raw.route;
    this.request = request;
    this.response = response;
    this.startedMs = startedMs;
    this.#bearerHeader = raw.bearerHeader;
  }

  header(name: string): string | undefined {
    const { headers } = this.request;
    const value = headers[name];
    if (value === undefined && name === 'authorization' && this.#bearerHeader !== undefined) {
      const bearer = headers[this.#bearerHeader];
      return typeof bearer === 'string' ? `Bearer ${bearer}` : undefined;
    }
    return Array.isArray(value) ? value.join(', ') : value;
  }

  get caller(): C {
    if (this.#caller === undefined) throw new Error(`route ${this.route.operationId} was reached without its guard`);
    return this.#caller;
  }

  admit(caller: C): void {
    this.#caller = caller;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController();
      this.#controller = controller;
      this.response.once('close', () => {
        if (!this.response.writableFinished) controller.abort();
      });
    }
    return this.#controller.signal;
  }
}

/** Serves a raw route whose path has no parameters, without the framework. */
export const mountDirect = <C>(server: HttpServer, raw: RawRoute<C>, guard: Guard<C>): void => {
  const { route } = raw;
  if (route.path.includes(':')) throw new TypeError(`route ${route.operationId} has parameters`);
  mountRaw(server, raw, guard);
  const shape = raw.errorShape ?? beeuniErrorShape;

  const fail = (call: DirectCall<C>, error: unknown): void => {
    const { request, response } = call;
    if (response.headersSent || response.destroyed) {
      if (!response.destroyed)
        server.log.error('a raw route broke after its head was sent', { requestId: call.requestId, err: error });
      response.destroy();
      return;
    }
    const answer = errorAnswer(error);
    logFailure(server.log, answer, error, { requestId: call.requestId, operation: route.operationId });
    const body = JSON.stringify(shape(answer, call.requestId));
    response.writeHead(answer.status, {
      ...answer.headers,
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(body),
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'x-request-id': call.requestId,
      // What was not read is not worth reading: the connection ends with the answer.
      ...(request.complete ? {} : { connection: 'close' }),
    });
    response.end(body);
  };

  const record = (call: DirectCall<C>): void => {
    server.observe?.({
      listener: server.listener,
      operation: route.operationId,
      method: route.method,
      status: call.response.statusCode,
      durationMs: server.clock.monotonicMs() - call.startedMs,
    });
  };

  const run = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const call = new DirectCall(raw, request, response, server.clock.monotonicMs());
    response.on('close', () => record(call));
    try {
      const caller = await guard.authenticate(call);
      if (route.auth.kind !== 'anyone') server.budget.admit(request.socket);
      await guard.authorize(call, caller);
      call.admit(caller);
      await raw.handler(call);
    } catch (error) {
      fail(call, error);
    }
  };
  server.direct.set(`${route.method} ${route.path}`, (request, response) => void run(request, response));
};
