// This terminal joined to one in a sandbox: keys there, bytes here, as they are. Must not know how a server is reached.
// Source: schema/wire/terminals.ts, A201.
import { terminalNotice } from '#schema/wire/terminals.ts';
import { CommandError, EXIT } from './failure.ts';
import type { Io } from './io.ts';
import { plainLine } from './plain-text.ts';

/** Ctrl-]: leaves the terminal, which goes on. */
const LEAVE = 0x1d;
/** Ctrl-D: what a terminal takes as the end of its input at the start of a line; elsewhere it only hands over the line so far. */
const END_OF_INPUT = 0x04;
const LINE_ENDS: readonly (number | undefined)[] = [0x0a, 0x0d];
/** Largest piece of input in one frame. Units: bytes. */
const FRAME_BYTES = 32_768;
/** Largest frame that is taken. Units: bytes. */
const MAX_OUTPUT_FRAME = 1_048_576;
/** Bytes that may wait here: of the terminal for whoever reads stdout, and of stdin for the server. */
const MAX_WAITING_OUTPUT = 16_777_216;
const MAX_WAITING_INPUT = 262_144;

/** How it ended: with the program's exit code, or the person has left it. */
export type TerminalEnd =
  | Readonly<{ kind: 'exited'; exitCode: number | null }>
  | Readonly<{ kind: 'left'; id: string }>;

const jsonOf = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/** Joins both until one ends. Errors: CommandError when there is no connection, or it breaks. */
export const joinTerminal = async (
  url: string,
  headers: Readonly<Record<string, string>>,
  io: Io,
  note: (line: string) => void,
): Promise<TerminalEnd> => {
  // Loaded only here. The WebSocket of Node itself takes whatever comes, however slowly it is read.
  const { WebSocket } = await import('ws');
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, {
      headers: { ...headers },
      perMessageDeflate: false,
      maxPayload: MAX_OUTPUT_FRAME,
    });
    let id = '';
    let isOpen = false;
    let end: TerminalEnd | undefined;
    let isLineStart = true;

    const isConnected = (): boolean => socket.readyState === WebSocket.OPEN;
    /** What the server has not taken yet is read no further. */
    const onSent = (): void => {
      if (isConnected() && socket.bufferedAmount <= MAX_WAITING_INPUT) io.stdin.resume();
    };
    const send = (bytes: Buffer): void => {
      for (let at = 0; at < bytes.length; at += FRAME_BYTES) {
        if (isConnected()) socket.send(Uint8Array.from(bytes.subarray(at, at + FRAME_BYTES)), onSent);
      }
      if (socket.bufferedAmount > MAX_WAITING_INPUT) io.stdin.pause();
    };
    const resize = (): void => {
      const { columns, rows } = io.size();
      if (isConnected()) socket.send(JSON.stringify({ type: 'resize', cols: columns, rows }));
    };
    const onKeys = (chunk: Uint8Array): void => {
      const bytes = Buffer.from(chunk);
      const leave = io.isTerminal.stdin ? bytes.indexOf(LEAVE) : -1;
      send(leave < 0 ? bytes : bytes.subarray(0, leave));
      if (bytes.length > 0) isLineStart = LINE_ENDS.includes(bytes.at(-1));
      if (leave < 0) return;
      end = { kind: 'left', id };
      socket.close();
    };
    const onEnd = (): void => send(Buffer.alloc(isLineStart ? 1 : 2, END_OF_INPUT));
    const onOutput = (bytes: Buffer): void => {
      if (io.stdout.write(bytes) || io.stdout.writableLength <= MAX_WAITING_OUTPUT) return;
      socket.pause();
      io.stdout.once('drain', () => socket.resume());
    };
    const onNotice = (text: string): void => {
      const parsed = terminalNotice.safeParse(jsonOf(text));
      if (!parsed.success) return;
      if (parsed.data.type === 'exit') {
        end = { kind: 'exited', exitCode: parsed.data.exitCode };
        return;
      }
      ({ id } = parsed.data.terminal);
      isOpen = true;
      if (io.isTerminal.stdin) note(`terminal ${id}; Ctrl-] leaves it running`);
      io.setRaw(true);
      io.stdin.on('data', onKeys);
      io.stdin.once('end', onEnd);
      io.stdin.resume();
    };
    const forget = io.onResize(resize);
    const cleanUp = (): void => {
      forget();
      io.stdin.off('data', onKeys);
      io.stdin.off('end', onEnd);
      io.setRaw(false);
      io.stdin.pause();
    };

    socket.on('message', (data, isBinary) => {
      const bytes = Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data as Buffer);
      if (isBinary) onOutput(bytes);
      else onNotice(bytes.toString('utf8'));
    });
    socket.on('error', () => {
      // What happened is told when the connection closes.
    });
    socket.on('close', (_code, said) => {
      cleanUp();
      if (end !== undefined) {
        resolve(end);
        return;
      }
      const reason = said.toString('utf8');
      const why = reason === '' ? '' : `: ${plainLine(reason, 200)}`;
      reject(
        isOpen
          ? new CommandError(
              EXIT.unavailable,
              `the connection to terminal ${id} broke${why}`,
              `it may still run: attach again with --id ${id}`,
            )
          : new CommandError(EXIT.unavailable, `the terminal could not be opened${why}`, 'try again in a moment'),
      );
    });
  });
};
