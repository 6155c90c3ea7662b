// A raw route without the framework between: for paths that are called so often that its share of each call counts.
// Guard, limits, error shape and records are those of every route; what is not exactly the path goes to the raw route.
// Must not know what passes through.
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { beeuniErrorShape, errorAnswer } from './error-response.ts';
import type { Guard, GuardedCall } from './mount.ts';
import { mountRaw, type RawRoute } from './raw-route.ts';
import { type HttpServer, logFailure } from './server.ts';

const NO_PARAMS = {};

/** One call; what is seldom asked for is made when it is. */
class DirectCall implements GuardedCall {
  readonly route: GuardedCall['route'];
  readonly params: Readonly<Record<string, string>> = NO_PARAMS;
  readonly requestId: string = randomUUID();
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #bearerHeader: string | undefined;
  #controller: AbortController | undefined;

  constructor(route: GuardedCall['route'], request: IncomingMessage, response: ServerResponse, bearer?: string) {
    this.route = route;
    this.#request = request;
    this.#response = response;
    this.#bearerHeader = bearer;
  }

  readonly header = (name: string): string | undefined => {
    const { headers } = this.#request;
    const value = headers[name];
    if (value === undefined && name === 'authorization' && this.#bearerHeader !== undefined) {
      const bearer = headers[this.#bearerHeader];
      return typeof bearer === 'string' ? `Bearer ${bearer}` : undefined;
    }
    return Array.isArray(value) ? value.join(', ') : value;
  };

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = new AbortController();
      this.#controller = controller;
      this.#response.once('close', () => {
        if (!this.#response.writableFinished) controller.abort();
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

  const fail = (call: DirectCall, request: IncomingMessage, response: ServerResponse, error: unknown): void => {
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

  const run = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const startedMs = server.clock.monotonicMs();
    const call = new DirectCall(route, request, response, raw.bearerHeader);
    response.once('close', () => {
      server.observe?.({
        listener: server.listener,
        operation: route.operationId,
        method: route.method,
        status: response.statusCode,
        durationMs: server.clock.monotonicMs() - startedMs,
      });
    });
    try {
      const caller = await guard.authenticate(call);
      if (route.auth.kind !== 'anyone') server.budget.admit(request.socket);
      await guard.authorize(call, caller);
      const { params, requestId } = call;
      await raw.handler({
        caller,
        params,
        requestId,
        get signal() {
          return call.signal;
        },
        request,
        response,
      });
    } catch (error) {
      fail(call, request, response, error);
    }
  };
  server.direct.set(`${route.method} ${route.path}`, (request, response) => void run(request, response));
};
