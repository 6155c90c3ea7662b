// Stands before Node's HTTP on a server: requests of direct routes are served on connections of our own, everything else
// goes to Node as if nothing stood there. Must not know what routes do. Source: docs/decisions/0041.
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { CancelTimer, Clock } from '#base/clock.ts';
import { DirectConnection, type DirectExchange, type DirectHost } from './direct-connection.ts';

/** Serves one exchange; answers it whatever comes, and does not throw. */
export type ServeDirect = (exchange: DirectExchange) => void;

/** The front of one server. */
export type DirectFront = Readonly<{
  /** Handlers by `METHOD path`. */
  routes: Map<string, ServeDirect>;
  /** Requests whose answer has not left. */
  inFlight: () => number;
  /** Closes idle connections; every answer from now on is the last of its connection. */
  stop: () => void;
  /** Cuts every connection. */
  destroy: () => void;
}>;

/** How often connections are looked at. Units: milliseconds. */
const LOOK_MS = 1_000;

/** Puts a front before a server, whose connections come to it from now on. */
export const makeDirectFront = (
  server: Server,
  settings: Readonly<{ clock: Clock; maxHeadBytes: number; limits: DirectHost['limits'] }>,
): DirectFront => {
  const { clock, maxHeadBytes, limits } = settings;
  const routes = new Map<string, ServeDirect>();
  const connections = new Set<DirectConnection>();
  // Node's own listener makes a connection one of its HTTP server.
  const nodes = server.listeners('connection') as ((this: Server, socket: Socket) => void)[];
  server.removeAllListeners('connection');
  let isStopping = false;
  let cancel: CancelTimer | undefined;
  let date = { second: 0, text: '' };

  const look = (): void => {
    const nowMs = clock.monotonicMs();
    for (const connection of connections) connection.look(nowMs);
    cancel = connections.size === 0 ? undefined : clock.startTimer(LOOK_MS, look);
  };
  const toNode = (socket: Socket): void => {
    for (const listener of nodes) listener.call(server, socket);
  };

  const host: DirectHost = {
    find: (target) => routes.get(target),
    handOver: (socket, bytes) => {
      toNode(socket);
      socket.unshift(bytes);
      socket.resume();
    },
    refuseLate: (socket) => {
      server.emit('clientError', Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), socket);
    },
    forget: (connection) => connections.delete(connection),
    isStopping: () => isStopping,
    nowMs: () => clock.monotonicMs(),
    date: () => {
      const nowMs = clock.nowMs();
      const second = Math.floor(nowMs / 1_000);
      if (second !== date.second) date = { second, text: new Date(nowMs).toUTCString() };
      return date.text;
    },
    maxHeadBytes,
    limits,
  };

  server.on('connection', (socket: Socket) => {
    if (socket.destroyed) return;
    if (routes.size === 0) return toNode(socket);
    connections.add(new DirectConnection(host, socket));
    cancel ??= clock.startTimer(LOOK_MS, look);
  });

  return {
    routes,
    inFlight: () => {
      let count = 0;
      for (const { isIdle } of connections) if (!isIdle) count += 1;
      return count;
    },
    stop: () => {
      isStopping = true;
      for (const connection of connections) if (connection.isIdle) connection.destroy();
    },
    destroy: () => {
      for (const connection of connections) connection.destroy();
    },
  };
};
