// A provider that speaks in bytes: a test decides what leaves when, down to the single byte. Must not know any API.

import type { AddressInfo } from 'node:net';
import { createServer, type Socket } from 'node:net';

/** A running provider. `url` ends in `/v1`; `closed` counts the connections that the other side ended. */
export type RawProvider = Readonly<{
  url: string;
  calls: () => number;
  closed: () => number;
  close: () => Promise<void>;
}>;

/** Starts a provider that calls `answer` once for each request, when its body is complete. */
export const startRawProvider = async (answer: (socket: Socket, body: Buffer) => void): Promise<RawProvider> => {
  const sockets = new Set<Socket>();
  let calls = 0;
  let closed = 0;
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    let seen = Buffer.alloc(0);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      sockets.delete(socket);
      closed += 1;
    });
    socket.on('data', (part: Buffer) => {
      seen = Buffer.concat([seen, part]);
      const end = seen.indexOf('\r\n\r\n');
      if (end < 0) return;
      const length = Number(/content-length: (\d+)/i.exec(seen.toString('latin1', 0, end))?.[1] ?? 0);
      if (seen.length < end + 4 + length) return;
      const body = seen.subarray(end + 4, end + 4 + length);
      seen = seen.subarray(end + 4 + length);
      calls += 1;
      answer(socket, Buffer.from(body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    calls: () => calls,
    closed: () => closed,
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => resolve());
      }),
  };
};

/** Head of an answer that ends with its connection. */
export const rawHead = (type = 'text/event-stream', status = '200 OK', more = ''): string =>
  `HTTP/1.1 ${status}\r\ncontent-type: ${type}\r\nconnection: close\r\n${more}\r\n`;
