// Serves a route as a WebSocket: the whole path of any route first (who calls, may they, is the input right), and only then the
// upgrade. What passes through the socket is the handler's. Must not know frames. Source: 20-control-plane §1 (no upgrade before
// authentication), FF12 (foreign origins).
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { errorChain, InvalidError } from '#base/errors.ts';
import type { Route } from '#schema/define-route.ts';
import { type Guard, type HandlerRequest, requestOf, serveRoute } from './mount.ts';
import { ServerResponse } from './node-http.ts';
import type { HttpServer } from './server.ts';
import { watchRights } from './watch-rights.ts';

/**
 * What a handler gives back: it owns the socket from then on, and writes the answer to the handshake itself, for the frames are its
 * own too. Rejects only for a bug.
 */
export type TakeSocket = (request: IncomingMessage, socket: Duplex, head: Buffer) => void | Promise<void>;

/** Handler of a route with `stream: 'websocket'`. Errors are answered as for any route, before the upgrade. */
export type UpgradeHandler<R extends Route, C> = (request: HandlerRequest<R, C>) => Promise<TakeSocket>;

type Asked = Readonly<{ socket: Duplex; head: Buffer }>;

/** Requests that asked for an upgrade and have no answer yet, by server. */
const askedOf = new WeakMap<HttpServer, WeakMap<IncomingMessage, Asked>>();

/** Lets a server take upgrades: each becomes a request like any other, on its own socket. */
const takeUpgrades = (server: HttpServer): WeakMap<IncomingMessage, Asked> => {
  const known = askedOf.get(server);
  if (known !== undefined) return known;
  const asked = new WeakMap<IncomingMessage, Asked>();
  askedOf.set(server, asked);
  server.app.server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => socket.destroy());
    asked.set(request, { socket, head });
    const response = new ServerResponse(request);
    response.assignSocket(socket as Parameters<typeof response.assignSocket>[0]);
    // An answer that is no upgrade ends the connection: nobody reads a second request from this socket.
    response.shouldKeepAlive = false;
    response.once('finish', () => socket.end());
    server.app.routing(request, response);
  });
  return asked;
};

/** Serves the route. Throws TypeError when it belongs to another listener or is no WebSocket. */
export const mountUpgrade = <R extends Route, C>(
  server: HttpServer,
  route: R,
  handler: UpgradeHandler<NoInfer<R>, NoInfer<C>>,
  guard: Guard<C>,
): void => {
  if (route.stream !== 'websocket') throw new TypeError(`route ${route.operationId} is no WebSocket`);
  const asked = takeUpgrades(server);
  serveRoute(server, route, guard, async (request, reply, admitted) => {
    const upgrade = asked.get(request.raw);
    if (upgrade === undefined)
      throw new InvalidError('invalid_request', 'this route is a WebSocket: ask for an upgrade');
    const { socket, head } = upgrade;
    const leaving = new AbortController();
    socket.once('close', () => leaving.abort());
    const take = await handler({ ...requestOf(route, request, admitted), signal: leaving.signal });
    reply.hijack();
    reply.raw.detachSocket(socket as Parameters<typeof reply.raw.detachSocket>[0]);
    const forget = server.onStop(() => socket.destroy());
    socket.once('close', forget);
    const rightsCall = { ...admitted.call, signal: leaving.signal };
    socket.once(
      'close',
      watchRights(server, guard, rightsCall, () => socket.destroy()),
    );
    try {
      await take(request.raw, socket, head);
    } catch (error) {
      server.log.warn('a socket broke', { requestId: request.id, chain: errorChain(error) });
      socket.destroy();
    }
    return reply;
  });
};
