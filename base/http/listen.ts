// Opens the port of a server and closes it again within a time limit. Must not know routes.
import type { AddressInfo } from 'node:net';
import type { HttpServer } from './server.ts';

/** An open port. */
export type Listening = Readonly<{
  /** The port in use, also when 0 was asked for. */
  port: number;
  /** `http://127.0.0.1:<port>` or the host that was given. */
  url: string;
  /**
   * Takes no new connection, ends streams, lets requests finish for `graceMs`, then cuts what is left. Never rejects;
   * repeated calls wait for the first.
   */
  stop: (graceMs: number) => Promise<void>;
}>;

/** Where to listen. `host` is `0.0.0.0` when absent; port 0 takes a free one. */
export type ListenAddress = Readonly<{ port: number; host?: string | undefined }>;

/** Listens; rejects with Node's error (`EADDRINUSE`) when the port is taken. */
export const listen = async (server: HttpServer, address: ListenAddress): Promise<Listening> => {
  const host = address.host ?? '0.0.0.0';
  await server.app.listen({ port: address.port, host });
  const { port } = server.app.server.address() as AddressInfo;
  let stopping: Promise<void> | undefined;
  const stop = async (graceMs: number): Promise<void> => {
    const closed = server.app.close();
    server.endStreams();
    const cut = server.clock.startTimer(graceMs, () => {
      server.front.destroy();
      server.app.server.closeAllConnections();
    });
    try {
      await closed;
    } catch (error) {
      server.log.warn('closing a listener failed', { listener: server.listener, err: error });
    } finally {
      cut();
    }
  };
  return {
    port,
    url: `http://${host === '0.0.0.0' ? '127.0.0.1' : host}:${port}`,
    stop: (graceMs) => {
      stopping ??= stop(graceMs);
      return stopping;
    },
  };
};
