// One client of a terminal's WebSocket, for tests. Must not know what is tested.
import { WebSocket } from 'ws';
import type { TerminalNotice } from '#schema/wire/terminals.ts';
import { until } from './until.ts';

type NoticeOf<T extends TerminalNotice['type']> = Extract<TerminalNotice, { type: T }>;

/** A connection that may still be refused. */
export type TestSocket = Readonly<{
  /** Status of the refusal; never resolves for a connection that is taken. */
  refusal: Promise<number>;
  /** Sends what is typed. */
  send: (text: string) => void;
  /** Sends a text frame. */
  notify: (value: unknown) => void;
  raw: (text: string) => void;
  /** Waits for the first notice of a type. Rejects when the connection is over without one. */
  notice: <T extends TerminalNotice['type']>(type: T) => Promise<NoticeOf<T>>;
  /** Everything that the terminal wrote. */
  text: () => string;
  shows: (text: string | RegExp) => Promise<void>;
  pause: () => void;
  resume: () => void;
  close: () => void;
  closed: Promise<Readonly<{ code: number }>>;
}>;

/** Connects. */
export const openSocket = (url: string, headers: Readonly<Record<string, string>>): TestSocket => {
  const socket = new WebSocket(url, { headers, perMessageDeflate: false });
  const chunks: Buffer[] = [];
  const notices: TerminalNotice[] = [];
  const refusal = Promise.withResolvers<number>();
  const closed = Promise.withResolvers<Readonly<{ code: number }>>();
  let failure: string | undefined;
  let isOver = false;
  socket.on('unexpected-response', (_request, response) => {
    failure = `refused with ${response.statusCode}`;
    isOver = true;
    response.resume();
    refusal.resolve(response.statusCode ?? 0);
  });
  socket.on('error', (error) => {
    failure ??= error.message;
  });
  socket.on('message', (data, isBinary) => {
    const bytes = Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data as Buffer);
    if (isBinary) chunks.push(bytes);
    else notices.push(JSON.parse(bytes.toString('utf8')) as TerminalNotice);
  });
  socket.on('close', (code) => {
    isOver = true;
    closed.resolve({ code });
  });
  const text = (): string => Buffer.concat(chunks).toString('utf8');
  return {
    refusal: refusal.promise,
    send: (typed) => socket.send(Buffer.from(typed), { binary: true }),
    notify: (value) => socket.send(JSON.stringify(value)),
    raw: (typed) => socket.send(typed),
    notice: async <T extends TerminalNotice['type']>(type: T) => {
      const ofType = (notice: TerminalNotice): notice is NoticeOf<T> => notice.type === type;
      const describe = () => ({ failure, notices, text: text().slice(-500) });
      await until(`the terminal says ${type}`, () => isOver || notices.some(ofType), { describe });
      const found = notices.find(ofType);
      if (found === undefined) throw new Error(`no ${type} before the end: ${JSON.stringify(describe())}`);
      return found;
    },
    text,
    shows: async (part) => {
      const isThere = () => (typeof part === 'string' ? text().includes(part) : part.test(text()));
      await until(`the terminal shows ${part}`, isThere, { describe: () => ({ failure, text: text().slice(-1_000) }) });
    },
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    close: () => socket.close(),
    closed: closed.promise,
  };
};
