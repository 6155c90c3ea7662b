// This terminal joined to one in a sandbox: keys there, bytes here, as they are. Must not know how a server is reached.
// Source: schema/wire/terminals.ts, A201.
import { terminalNotice } from '#schema/wire/terminals.ts';
import { CommandError, EXIT } from './failure.ts';
import type { Io } from './io.ts';

/** Ctrl-]: leaves the terminal, which goes on. */
const LEAVE = 0x1d;
/** Ctrl-D: what a terminal takes as the end of its input at the start of a line; elsewhere it only hands over the line so far. */
const END_OF_INPUT = 0x04;
const LINE_ENDS: readonly (number | undefined)[] = [0x0a, 0x0d];
/** Largest piece of input in one frame. Units: bytes. */
const FRAME_BYTES = 32_768;

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
export const joinTerminal = (
  url: string,
  headers: Readonly<Record<string, string>>,
  io: Io,
  note: (line: string) => void,
): Promise<TerminalEnd> =>
  new Promise((resolve, reject) => {
    const socket = new WebSocket(url, { headers: { ...headers } });
    socket.binaryType = 'arraybuffer';
    let id = '';
    let isOpen = false;
    let end: TerminalEnd | undefined;
    let isLineStart = true;

    const send = (bytes: Buffer): void => {
      for (let at = 0; at < bytes.length; at += FRAME_BYTES) {
        if (socket.readyState === WebSocket.OPEN) socket.send(Uint8Array.from(bytes.subarray(at, at + FRAME_BYTES)));
      }
    };
    const resize = (): void => {
      const { columns, rows } = io.size();
      if (socket.readyState === WebSocket.OPEN) {
        socket.send(JSON.stringify({ type: 'resize', cols: columns, rows }));
      }
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
    const forget = io.onResize(resize);
    const cleanUp = (): void => {
      forget();
      io.stdin.off('data', onKeys);
      io.stdin.off('end', onEnd);
      io.setRaw(false);
      io.stdin.pause();
    };

    socket.addEventListener('message', ({ data }) => {
      if (typeof data !== 'string') {
        io.stdout.write(Buffer.from(data as ArrayBuffer));
        return;
      }
      const parsed = terminalNotice.safeParse(jsonOf(data));
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
    });
    socket.addEventListener('error', () => {
      // What happened is told when the connection closes.
    });
    socket.addEventListener('close', ({ reason }) => {
      cleanUp();
      if (end !== undefined) {
        resolve(end);
        return;
      }
      const why = reason === '' ? '' : `: ${reason}`;
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
