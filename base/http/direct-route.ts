// A route that is called so often that the share of frameworks in each call counts: plain requests come straight from the
// connection (direct-front.ts), all others through Node's HTTP and the framework. Guard, limits, error shape and records are
// those of every route. Must not know what passes through.
import { randomUUID } from 'node:crypto';
import type { Route } from '#schema/define-route.ts';
import type { DirectExchange } from './direct-connection.ts';
import type { DirectRequest } from './direct-request.ts';
import type { DirectResponse } from './direct-response.ts';
import { beeuniErrorShape, type ErrorShape, errorAnswer } from './error-response.ts';
import { type ExchangeRequest, type ExchangeResponse, requestOf } from './exchange.ts';
import type { Guard, GuardedCall } from './mount.ts';
import { mountRaw } from './raw-route.ts';
import { type HttpServer, logFailure } from './server.ts';

/** One call. The handler must end `response`; an error thrown before its head was sent is answered in `errorShape`. */
export type DirectCall<C> = Readonly<{
  caller: C;
  requestId: string;
  request: ExchangeRequest;
  response: ExchangeResponse;
}>;

/** What a direct route is made from; `route` carries path, method, auth and operationId, its schemas are documentation. */
export type DirectRoute<C> = Readonly<{
  route: Route;
  handler: (call: DirectCall<C>) => Promise<void>;
  errorShape?: ErrorShape | undefined;
  /** A header that may hold the credential instead of `authorization`, without a scheme. Lower case. */
  bearerHeader?: string | undefined;
}>;

const NO_PARAMS = {};

/** One call on a connection of ours; what is seldom asked for is made when it is. A class, as there is one for each. */
class PlainCall<C> implements GuardedCall, DirectCall<C> {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>> = NO_PARAMS;
  readonly requestId: string = randomUUID();
  readonly request: DirectRequest;
  readonly response: DirectResponse;
  readonly startedMs: number;
  readonly #bearerHeader: string | undefined;
  #caller: C | undefined;
  #controller: AbortController | undefined;

  constructor(direct: DirectRoute<C>, { request, response }: DirectExchange, startedMs: number) {
    this.route = direct.route;
    this.request = request;
    this.response = response;
    this.startedMs = startedMs;
    this.#bearerHeader = direct.bearerHeader;
  }

  header(name: string): string | undefined {
    const value = this.request.header(name);
    if (value !== undefined || name !== 'authorization' || this.#bearerHeader === undefined) return value;
    const bearer = this.request.header(this.#bearerHeader);
    return bearer === undefined ? undefined : `Bearer ${bearer}`;
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

/** Serves a direct route; its path has no parameters. */
export const mountDirect = <C>(server: HttpServer, direct: DirectRoute<C>, guard: Guard<C>): void => {
  const { route, handler } = direct;
  if (route.path.includes(':')) throw new TypeError(`route ${route.operationId} has parameters`);
  const shape = direct.errorShape ?? beeuniErrorShape;
  mountRaw(
    server,
    {
      ...direct,
      handler: ({ caller, requestId, request, response }) =>
        handler({ caller, requestId, request: requestOf(request), response }),
    },
    guard,
  );

  const fail = (call: PlainCall<C>, error: unknown): void => {
    const { response } = call;
    if (response.headersSent || response.destroyed) {
      if (!response.destroyed)
        server.log.error('a direct route broke after its head was sent', { requestId: call.requestId, err: error });
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
    });
    response.end(body);
  };

  const record = (call: PlainCall<C>): void => {
    server.observe?.({
      listener: server.listener,
      operation: route.operationId,
      method: route.method,
      status: call.response.statusCode,
      durationMs: server.clock.monotonicMs() - call.startedMs,
    });
  };

  const run = async (exchange: DirectExchange): Promise<void> => {
    const call = new PlainCall(direct, exchange, server.clock.monotonicMs());
    exchange.response.on('close', () => record(call));
    try {
      const found = guard.authenticate(call);
      const caller = found instanceof Promise ? await found : found;
      if (route.auth.kind !== 'anyone') server.budget.admit(exchange.socket);
      const allowed = guard.authorize(call, caller);
      if (allowed instanceof Promise) await allowed;
      call.admit(caller);
      await handler(call);
    } catch (error) {
      fail(call, error);
    }
  };
  server.front.routes.set(`${route.method} ${route.path}`, (exchange) => void run(exchange));
};
