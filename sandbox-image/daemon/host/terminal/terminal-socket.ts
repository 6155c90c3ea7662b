// One WebSocket with one viewer of a terminal: frames to bytes and back, and a sign of life every 30 s. Must not know how terminals
// are kept. Source: schema/wire/terminals.ts.
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { WebSocket, WebSocketServer } from 'ws';
import type { Clock } from '#base/clock.ts';
import { MAX_TERMINAL_FRAME_BYTES, type TerminalNotice, terminalInput } from '#schema/wire/terminals.ts';
import type { Attached, Terminals, TerminalWish, Viewer } from './terminals.ts';

const PING_MS = 30_000;
/** Close codes: RFC 6455 and its register. */
const CLOSE = { done: 1000, policy: 1008, tooSlow: 1013 } as const;

/** Most sandboxes never have a terminal, so frames are learned with the first one. */
const frameServer = async (): Promise<WebSocketServer> => {
  const { WebSocketServer } = await import('ws');
  return new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload: MAX_TERMINAL_FRAME_BYTES,
    perMessageDeflate: false,
  });
};

const notify = (socket: WebSocket, notice: TerminalNotice, sent: () => void = () => {}): void =>
  socket.send(JSON.stringify(notice), sent);

const onText = (attached: Attached, text: string): boolean => {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return false;
  }
  const parsed = terminalInput.safeParse(value);
  if (parsed.success) attached.resize(parsed.data.cols, parsed.data.rows);
  return parsed.success;
};

/** Ends the connection when two signs of life in a row were not answered. One whose input is held back cannot answer. */
const watchLife = (socket: WebSocket, clock: Clock): void => {
  let isAlive = true;
  let stop = (): void => {};
  const beat = (): void => {
    if (!isAlive) {
      socket.terminate();
      return;
    }
    isAlive = socket.isPaused;
    socket.ping();
    stop = clock.startTimer(PING_MS, beat);
  };
  stop = clock.startTimer(PING_MS, beat);
  socket.on('pong', () => {
    isAlive = true;
  });
  socket.once('close', () => stop());
};

/** A viewer that writes to a socket which may not be there yet: what comes before is kept in order. */
const makeViewer = (): Readonly<{ viewer: Viewer; open: (socket: WebSocket, first: () => void) => void }> => {
  let socket: WebSocket | undefined;
  const waiting: (() => void)[] = [];
  const run = (work: (to: WebSocket) => void): void => {
    if (socket === undefined) waiting.push(() => socket !== undefined && work(socket));
    else work(socket);
  };
  return {
    viewer: {
      send: (bytes, sent) => run((to) => to.send(bytes, { binary: true }, () => sent())),
      hold: () => run((to) => to.pause()),
      goOn: () => run((to) => to.resume()),
      // Closed only once everything is on its way: from then on the other side has a limited time for what it has not read.
      exited: (exitCode) => run((to) => notify(to, { type: 'exit', exitCode }, () => to.close(CLOSE.done))),
      drop: () => run((to) => to.close(CLOSE.tooSlow, 'the reader is too slow')),
    },
    open: (opened, first) => {
      socket = opened;
      first();
      for (const work of waiting.splice(0)) work();
    },
  };
};

/** Attaches first, so that a refusal is an answer as any; the function that is given back takes the socket over. */
export const attachSocket = async (
  terminals: Terminals,
  wish: TerminalWish,
  clock: Clock,
): Promise<(request: IncomingMessage, socket: Duplex, head: Buffer) => void> => {
  const { viewer, open } = makeViewer();
  const frames = await frameServer();
  const attached = await terminals.attach(wish, viewer);
  return (request, duplex, head) => {
    duplex.once('close', attached.leave);
    if (duplex.destroyed) {
      attached.leave();
      return;
    }
    frames.handleUpgrade(request, duplex, head, (socket) => {
      socket.on('error', () => socket.terminate());
      socket.on('message', (data, isBinary) => {
        const bytes = Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data as Buffer);
        if (isBinary) attached.input(bytes);
        else if (!onText(attached, bytes.toString('utf8'))) socket.close(CLOSE.policy, 'a text frame is a resize');
      });
      watchLife(socket, clock);
      open(socket, () => {
        notify(socket, { type: 'attached', terminal: attached.view });
        if (attached.scrollback.length > 0) socket.send(attached.scrollback, { binary: true });
        if (attached.view.status === 'exited') viewer.exited(attached.view.exitCode);
      });
    });
  };
};
