// One try to open a TCP connection, which is closed at once. Must not know what the answer means.
import { connect } from 'node:net';

/** `silent`: no answer within the limit. */
export type Connected = 'open' | 'refused' | 'silent';

/** Tries once. Never rejects; every error counts as `refused`. */
export const connectTcp = (host: string, port: number, limitMs: number): Promise<Connected> =>
  new Promise((resolve) => {
    const socket = connect({ host, port });
    const end = (how: Connected): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(how);
    };
    const timer = setTimeout(() => end('silent'), limitMs);
    socket.once('connect', () => end('open'));
    socket.once('error', () => end('refused'));
  });
