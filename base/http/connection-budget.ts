// Bounds what connections may cost before their first caller is known. Must not know how a caller is recognised.
// Source: 20-control-plane §1, CVE-2026-41399.
import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** Connections that nobody has been recognised on yet. Source: 20-control-plane §1. */
export const MAX_UNAUTHENTICATED_CONNECTIONS = 1_000;

/** The budget of one server. */
export type ConnectionBudget = Readonly<{
  /** The connection carried a valid credential: it no longer counts. */
  admit: (socket: Socket) => void;
  /** Connections that count at present. */
  waiting: () => number;
  /** Connections that were closed at once because the budget was used up. */
  refused: () => number;
}>;

/** Counts the connections of `server`; one more than `limit` unrecognised ones is closed without an answer. */
export const limitUnauthenticated = (server: Server, limit: number): ConnectionBudget => {
  const waiting = new Set<Socket>();
  let refused = 0;
  server.on('connection', (socket: Socket) => {
    if (waiting.size >= limit) {
      refused += 1;
      socket.destroy();
      return;
    }
    waiting.add(socket);
    socket.once('close', () => waiting.delete(socket));
  });
  return {
    admit: (socket) => {
      waiting.delete(socket);
    },
    waiting: () => waiting.size,
    refused: () => refused,
  };
};
