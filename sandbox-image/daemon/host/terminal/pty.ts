// A pseudo terminal with a program in it: all its output, and only then its end; input that waits for the program and nothing else.
// The only file that loads the native package, and only when the first one is made. Must not know who looks at it.
// Source: docs/decisions/0039.
import { closeSync, constants, openSync, writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import { ReadStream } from 'node:tty';

/** What is started. Sizes in characters. */
export type PtyCommand = Readonly<{
  file: string;
  args: readonly string[];
  cwd: string;
  environment: Readonly<Record<string, string>>;
  cols: number;
  rows: number;
}>;

/** Who is told. `exit` comes once and last. `drain`: input that waited has gone to the program. */
export type PtyListeners = Readonly<{
  data: (bytes: Buffer) => void;
  drain: () => void;
  exit: (exitCode: number) => void;
}>;

/** A running program. `pause` holds its output back; `end` hangs up. After its end nothing here does anything. */
export type Pty = Readonly<{
  pid: number;
  /** False when much input waits for the program to read: then more should come after `drain`. */
  write: (bytes: Buffer) => boolean;
  resize: (cols: number, rows: number) => void;
  pause: () => void;
  resume: () => void;
  end: () => void;
}>;

/** Starts a program. Errors: those of the system. */
export type StartPty = (command: PtyCommand, listeners: PtyListeners) => Promise<Pty>;

/** The native half of node-pty. Why not the other half: docs/decisions/0039. */
type Native = Readonly<{
  fork: (
    file: string,
    args: readonly string[],
    environment: readonly string[],
    cwd: string,
    cols: number,
    rows: number,
    uid: number,
    gid: number,
    isUtf8: boolean,
    helper: string,
    onExit: (exitCode: number, signal: number) => void,
  ) => Readonly<{ fd: number; pid: number; pty: string }>;
  resize: (fd: number, cols: number, rows: number) => void;
}>;

const loadNative = (): Native => {
  const load = createRequire(import.meta.url)('@lydell/node-pty/requireBinary.js') as Readonly<{
    requireBinary: (file: string) => unknown;
  }>;
  return load.requireBinary('pty.node') as Native;
};

/** Keep the owner of this process. */
const SAME_OWNER = -1;
/** How long no output comes before a terminal that a process in the background keeps open counts as read. Units: milliseconds. */
const QUIET_MS = 500;
/** How often input is offered to a program that does not read. Units: milliseconds. */
const OFFER_MS = 20;
/** Input that may wait for a program before its writers are asked to stop. Units: bytes. */
const MUCH_INPUT_BYTES = 262_144;

type Input = Readonly<{ write: (bytes: Buffer) => boolean; close: () => void }>;

/**
 * Input of a terminal. A stream on a terminal writes until the program has read, and lets nothing else run meanwhile; so the bytes
 * are offered again and again.
 */
const makeInput = (fd: number, isOpen: () => boolean, onDrain: () => void): Input => {
  let waiting: Buffer[] = [];
  let size = 0;
  let isMuch = false;
  let timer: NodeJS.Timeout | undefined;

  const offer = (): void => {
    timer = undefined;
    // The number of a closed descriptor may be that of another one by now.
    if (!isOpen()) return;
    try {
      for (let first = waiting[0]; first !== undefined; first = waiting[0]) {
        const written = writeSync(fd, first);
        size -= written;
        if (written < first.length) waiting[0] = first.subarray(written);
        else waiting.shift();
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EAGAIN') {
        timer = setTimeout(offer, OFFER_MS);
        return;
      }
      // Nobody reads any more; the end of the output says so.
      waiting = [];
      size = 0;
    }
    if (isMuch) {
      isMuch = false;
      onDrain();
    }
  };

  return {
    write: (bytes) => {
      waiting.push(bytes);
      size += bytes.length;
      if (timer === undefined) offer();
      isMuch = size > MUCH_INPUT_BYTES;
      return !isMuch;
    },
    close: () => {
      clearTimeout(timer);
      waiting = [];
    },
  };
};

/** Sends a signal to a program that may have ended a moment ago. */
const sendSignal = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
};

/** Opens the program's side by its name, never as the terminal that controls this process. Without it nothing runs. */
const openProgramSide = ({ fd, pid, pty }: ReturnType<Native['fork']>): number => {
  try {
    return openSync(pty, constants.O_RDWR | constants.O_NOCTTY);
  } catch (error) {
    closeSync(fd);
    sendSignal(pid, 'SIGKILL');
    throw error;
  }
};

/** See StartPty. */
export const startPty: StartPty = async (command, listeners) => {
  const native = loadNative();
  const { file, args, cwd, cols, rows } = command;
  const environment = Object.entries({ ...command.environment, PWD: cwd, TERM: 'xterm-256color' });
  let exitCode: number | undefined;
  let isStarted = false;
  let isClosed = false;
  let receivedBytes = 0;

  const program = native.fork(
    file,
    args,
    environment.map(([name, value]) => `${name}=${value}`),
    cwd,
    cols,
    rows,
    SAME_OWNER,
    SAME_OWNER,
    true,
    '',
    (code, signal) => {
      if (isStarted) onExit(signal > 0 ? 128 + signal : code);
    },
  );
  const { fd, pid } = program;
  // Held until the program has ended. Programs close their terminal a moment before they end; were nobody else to have it open
  // then, the output would count as over and the program be hung up on.
  const programSide = openProgramSide(program);
  const output = new ReadStream(fd);
  const input = makeInput(fd, () => !output.destroyed, listeners.drain);

  /** A process in the background may have the terminal open: then it has ended when nothing comes any more. */
  const closeWhenQuiet = (): void => {
    const before = receivedBytes;
    setTimeout(() => {
      // After the events that are waiting now: what was written and not yet read is among them.
      setImmediate(() => {
        if (isClosed) return;
        if (output.isPaused() || receivedBytes !== before) closeWhenQuiet();
        else output.destroy();
      });
    }, QUIET_MS);
  };
  const onExit = (code: number): void => {
    exitCode = code;
    closeSync(programSide);
    if (isClosed) listeners.exit(code);
    else closeWhenQuiet();
  };

  output.on('data', (bytes: Buffer) => {
    receivedBytes += bytes.length;
    listeners.data(bytes);
  });
  // EIO is how the system says that everything was read and nobody has the terminal open.
  output.on('error', () => {});
  output.once('close', () => {
    isClosed = true;
    input.close();
    if (exitCode !== undefined) listeners.exit(exitCode);
  });
  isStarted = true;
  const isOver = (): boolean => exitCode !== undefined || output.destroyed;
  return {
    pid,
    write: (bytes) => isOver() || input.write(bytes),
    resize: (width, height) => {
      if (!isOver()) native.resize(fd, width, height);
    },
    pause: () => {
      output.pause();
    },
    resume: () => {
      output.resume();
    },
    end: () => {
      if (!isOver()) sendSignal(pid, 'SIGHUP');
    },
  };
};
