// Serves a route whose bodies are not ours to read: the model gateway and the git proxy. The guard runs before the body
// is touched; request and response are the plain streams of Node. Must not know what passes through.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyRequest } from 'fastify';
import type { Route } from '#schema/define-route.ts';
import { beeuniErrorShape, type ErrorShape } from './error-response.ts';
import type { Guard, GuardedCall } from './mount.ts';
import { type HttpServer, sendError } from './server.ts';

/** One raw call. The handler must end `response`; an error thrown before its head was sent is answered in `errorShape`. */
export type RawCall<C> = Readonly<{
  caller: C;
  params: Readonly<Record<string, string>>;
  requestId: string;
  /** Fires when the caller leaves before the answer is finished. */
  signal: AbortSignal;
  request: IncomingMessage;
  response: ServerResponse;
}>;

/** What a raw route is made from; `route` carries path, method, auth and operationId, its schemas are documentation. */
export type RawRoute<C> = Readonly<{
  route: Route;
  handler: (call: RawCall<C>) => Promise<void>;
  errorShape?: ErrorShape | undefined;
  /** A header that may hold the credential instead of `authorization`, without a scheme. Lower case. */
  bearerHeader?: string | undefined;
}>;

/** Serves raw routes. The body is not read before the handler does; it bounds what it reads. */
export const mountRaw = <C>(server: HttpServer, raw: RawRoute<C>, guard: Guard<C>): void => {
  const { route } = raw;
  const shape = raw.errorShape ?? beeuniErrorShape;
  if (route.listener !== server.listener) {
    throw new TypeError(`route ${route.operationId} belongs to listener ${route.listener}, not ${server.listener}`);
  }
  const admittedOf = new WeakMap<FastifyRequest, Readonly<{ call: GuardedCall; caller: C }>>();
  server.app.register(async (child) => {
    child.removeAllContentTypeParsers();
    child.addContentTypeParser('*', (_request, _payload, done) => {
      done(null, undefined);
    });
    child.setErrorHandler((error, request, reply) => sendError(server, request, reply, error, shape));
    child.route({
      method: route.method,
      url: route.path,
      config: { operation: route.operationId },
      onRequest: async (request, reply) => {
        const controller = new AbortController();
        reply.raw.once('close', () => {
          if (!reply.raw.writableFinished) controller.abort();
        });
        const call: GuardedCall = {
          route,
          params: request.params as Readonly<Record<string, string>>,
          requestId: request.id,
          header: (name) => {
            const value = request.headers[name];
            const bearer = raw.bearerHeader === undefined ? undefined : request.headers[raw.bearerHeader];
            if (value === undefined && name === 'authorization' && typeof bearer === 'string')
              return `Bearer ${bearer}`;
            return Array.isArray(value) ? value.join(', ') : value;
          },
          signal: controller.signal,
        };
        const caller = await guard.authenticate(call);
        if (route.auth.kind !== 'anyone') server.budget.admit(request.raw.socket);
        await guard.authorize(call, caller);
        admittedOf.set(request, { call, caller });
      },
      handler: async (request, reply) => {
        const admitted = admittedOf.get(request);
        if (admitted === undefined) throw new Error(`route ${route.operationId} was reached without its guard`);
        const { call, caller } = admitted;
        const response = reply.raw;
        try {
          await raw.handler({
            caller,
            params: call.params,
            requestId: request.id,
            signal: call.signal,
            request: request.raw,
            response,
          });
          reply.hijack();
          return reply;
        } catch (error) {
          if (!response.headersSent && !response.destroyed) throw error;
          if (!call.signal.aborted) {
            server.log.error('a raw route broke after its head was sent', { requestId: request.id, err: error });
          }
          reply.hijack();
          response.destroy();
          return reply;
        }
      },
    });
  });
};
