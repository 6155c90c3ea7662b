// Listens on one loopback address and passes connections on: a sandbox has an address of its own and always port 8000.
// Must not know what is spoken.
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A forwarder to a port of 127.0.0.1, or to the path of a Unix socket; while it is cut off, connections are refused or ended. `port` is the one that it listens on. */
export type ForwardedPort = Readonly<{
  port: number;
  setTarget: (target: number | string | undefined) => void;
  close: () => Promise<void>;
}>;

/** Forwards `host:port`; port 0 is a free one. */
export const forwardPort = async (host: string, port: number): Promise<ForwardedPort> => {
  let target: number | string | undefined;
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.on('close', () => open.delete(socket)).on('error', () => socket.destroy());
    if (target === undefined) {
      socket.destroy();
      return;
    }
    const other = typeof target === 'string' ? connect(target) : connect(target, '127.0.0.1');
    other.on('error', () => socket.destroy());
    socket.on('close', () => other.destroy());
    socket.pipe(other).pipe(socket);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    setTarget: (next) => {
      target = next;
      if (next === undefined) for (const socket of open) socket.destroy();
    },
    close: () =>
      new Promise<void>((resolve) => {
        for (const socket of open) socket.destroy();
        server.close(() => resolve());
      }),
  };
};
