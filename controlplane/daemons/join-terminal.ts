// Joins a client's socket to a terminal in a sandbox: asks the daemon for the upgrade, and from then on moves bytes both ways as
// fast as the slower side takes them. It parses no frame and keeps none. Must not know who the client is.
import { type IncomingMessage, request } from 'node:http';
import type { Duplex } from 'node:stream';
import { BeeuniError, UnavailableError } from '#base/errors.ts';
import { errorFromAnswer, routeUrl } from '#base/http/client.ts';
import { attachTerminalRoute, type TerminalQuery } from '#schema/wire/terminals.ts';
import type { DaemonAddress } from './address.ts';

/** The head of the client's request that the daemon needs for its answer. */
export type Handshake = Readonly<{ key: string; version: string }>;

/** The daemon's side: its answer to the handshake, and its socket with what came behind the head. */
export type OpenedTerminal = Readonly<{ accept: string; socket: Duplex; head: Buffer }>;

const OPEN_LIMIT_MS = 15_000;
const MAX_ERROR_BYTES = 65_536;

const readError = async (response: IncomingMessage): Promise<BeeuniError> => {
  let text = '';
  response.setEncoding('utf8');
  for await (const chunk of response) {
    text += String(chunk);
    if (text.length > MAX_ERROR_BYTES) break;
  }
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    body = undefined;
  }
  const peer = { peer: 'the sandbox', unreachable: 'sandbox_unreachable' as const };
  return errorFromAnswer(response.statusCode ?? 502, body, peer);
};

/** Opens the daemon's side. Rejects with what the daemon answered instead, or UnavailableError `sandbox_unreachable`. */
export const openTerminal = (
  daemon: DaemonAddress,
  query: TerminalQuery,
  handshake: Handshake,
  signal: AbortSignal,
): Promise<OpenedTerminal> =>
  new Promise((resolve, reject) => {
    const failed = (cause: unknown): void =>
      reject(new UnavailableError('sandbox_unreachable', 'the sandbox could not be reached', { cause }));
    const outgoing = request(`${daemon.baseUrl}${routeUrl(attachTerminalRoute, { query })}`, {
      signal: AbortSignal.any([signal, AbortSignal.timeout(OPEN_LIMIT_MS)]),
      headers: {
        authorization: `Bearer ${daemon.token}`,
        connection: 'Upgrade',
        upgrade: 'websocket',
        'sec-websocket-key': handshake.key,
        'sec-websocket-version': handshake.version,
      },
    });
    outgoing.once('error', failed);
    outgoing.once('response', (response) => {
      readError(response).then(reject, failed);
    });
    outgoing.once('upgrade', (response, socket, head) => {
      const accept = String(response.headers['sec-websocket-accept'] ?? '');
      if (/^[A-Za-z0-9+/]{27}=$/.test(accept)) {
        resolve({ accept, socket, head });
        return;
      }
      socket.destroy();
      failed(new Error('the daemon gave no valid handshake'));
    });
    outgoing.end();
  });

/**
 * Answers the client's handshake with the daemon's answer, then moves bytes both ways until one side closes; then both are closed.
 * Resolves when they are.
 */
export const joinSockets = async (client: Duplex, clientHead: Buffer, opened: OpenedTerminal): Promise<void> => {
  const { socket, head, accept } = opened;
  const sides = [client, socket] as const;
  const over = sides.map((side) => new Promise<void>((resolve) => side.once('close', () => resolve())));
  if (client.destroyed || socket.destroyed) {
    for (const side of sides) side.destroy();
    return;
  }
  for (const side of sides) {
    side.on('error', () => side.destroy());
    // What was written before is still sent to the other side.
    side.once('close', () => {
      for (const other of sides) other.end();
    });
  }
  const answer = [
    'HTTP/1.1 101 Switching Protocols',
    'upgrade: websocket',
    'connection: Upgrade',
    `sec-websocket-accept: ${accept}`,
  ];
  client.write(`${answer.join('\r\n')}\r\n\r\n`);
  if (head.length > 0) client.write(head);
  if (clientHead.length > 0) socket.write(clientHead);
  client.pipe(socket);
  socket.pipe(client);
  await Promise.all(over);
};
