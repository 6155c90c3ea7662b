// The terminals of a sandbox: made or attached to by id, seen by any number of viewers, remembered after their end. A program that
// writes faster than a viewer reads is held back, and so are viewers that type faster than the program reads; a viewer that reads
// nothing is sent away. Must not know sockets.
// Source: A201.
//
//   unknown --attach--> running --program ends--> exited --end, or newer ones--> unknown
import type { Clock } from '#base/clock.ts';
import { LimitError } from '#base/errors.ts';
import type { AttachCommand } from '#daemon/harness/contract/capabilities.ts';
import { ABANDONED_AFTER_MS, MAX_TERMINALS, SCROLLBACK_BYTES, type TerminalView } from '#schema/wire/terminals.ts';
import type { Pty, StartPty } from './pty.ts';
import { createScrollback, type Scrollback } from './scrollback.ts';

/**
 * Somebody who looks. `send` calls back when the bytes are on their way; `hold` asks for no more input until `goOn`; `drop` ends the
 * connection.
 */
export type Viewer = Readonly<{
  send: (bytes: Buffer, sent: () => void) => void;
  hold: () => void;
  goOn: () => void;
  exited: (exitCode: number | null) => void;
  drop: () => void;
}>;

/** What somebody who has attached can do. */
export type Attached = Readonly<{
  /** The terminal as it is now. */
  view: TerminalView;
  /** What was written before, at most 64 KiB. */
  scrollback: Buffer;
  input: (bytes: Buffer) => void;
  resize: (cols: number, rows: number) => void;
  leave: () => void;
}>;

/** Which terminal. `id`: absent for a new one. */
export type TerminalWish = Readonly<{
  id: string | undefined;
  cols: number;
  rows: number;
  command: string | undefined;
  /** The harness's own terminal client in place of a shell. */
  client: boolean;
}>;

/** What terminals need. */
export type TerminalPorts = Readonly<{
  startPty: StartPty;
  cwd: string;
  /** The environment that commands of the agent get, and the search path. */
  environment: () => Readonly<Record<string, string>>;
  /** How the harness's own client is started. Errors: UnsupportedError `feature_not_supported`, UnavailableError. */
  harnessClient: (signal: AbortSignal) => Promise<AttachCommand>;
  newId: () => string;
  clock: Clock;
}>;

/** The terminals. */
export type Terminals = Readonly<{
  /** Errors: LimitError `too_many_terminals`, those of `harnessClient`. */
  attach: (wish: TerminalWish, viewer: Viewer) => Promise<Attached>;
  list: () => readonly TerminalView[];
  /** Ends and forgets one; false when it is unknown. */
  end: (id: string) => boolean;
  endAll: () => void;
}>;

/** A program is held back above this and goes on below the other. Units: bytes that a viewer has not taken. */
const HOLD_BYTES = 262_144;
const GO_ON_BYTES = 65_536;
/** How long a viewer may take nothing while it holds a program back. Units: milliseconds. */
const STUCK_MS = 15_000;

type Watching = { readonly viewer: Viewer; unsent: number };

type Program = Readonly<{
  file: string;
  args: readonly string[];
  environment: Readonly<Record<string, string>>;
}>;

type Terminal = {
  readonly id: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly scrollback: Scrollback;
  readonly watching: Set<Watching>;
  pty: Pty | undefined;
  exitCode: number | null;
  isOver: boolean;
  usedAtMs: number;
  /** Ends the wait for a slow viewer, while one holds the program back. */
  held: (() => void) | undefined;
  /** Much input waits for the program. */
  isFull: boolean;
};

const SHELL = '/bin/bash';
/** How long a harness may take to say how its client is started. Units: milliseconds. */
const CLIENT_LIMIT_MS = 10_000;

/** No terminals yet. */
export const createTerminals = (ports: TerminalPorts): Terminals => {
  const { clock } = ports;
  const all = new Map<string, Terminal>();
  const making = new Map<string, Promise<Terminal>>();

  const viewOf = (terminal: Terminal): TerminalView => {
    const idleMs = terminal.watching.size > 0 ? 0 : Math.max(0, Math.round(clock.monotonicMs() - terminal.usedAtMs));
    return {
      id: terminal.id,
      title: [terminal.command, ...terminal.args].join(' ').slice(0, 128),
      command: terminal.command,
      args: [...terminal.args],
      cwd: ports.cwd,
      status: terminal.isOver ? 'exited' : 'running',
      pid: terminal.isOver ? null : (terminal.pty?.pid ?? null),
      exitCode: terminal.exitCode,
      attachedViewers: terminal.watching.size,
      idleMs,
      abandoned: idleMs >= ABANDONED_AFTER_MS,
    };
  };

  const goOn = (terminal: Terminal): void => {
    terminal.held?.();
    terminal.held = undefined;
    if (!terminal.isOver) terminal.pty?.resume();
  };

  const hold = (terminal: Terminal): void => {
    if (terminal.held !== undefined) return;
    terminal.pty?.pause();
    terminal.held = clock.startTimer(STUCK_MS, () => {
      for (const watching of terminal.watching) {
        if (watching.unsent < GO_ON_BYTES) continue;
        terminal.watching.delete(watching);
        watching.viewer.drop();
      }
      goOn(terminal);
    });
  };

  const send = (terminal: Terminal, watching: Watching, bytes: Buffer): void => {
    watching.unsent += bytes.length;
    watching.viewer.send(bytes, () => {
      watching.unsent -= bytes.length;
      const isSlow = [...terminal.watching].some(({ unsent }) => unsent >= GO_ON_BYTES);
      if (terminal.held !== undefined && !isSlow) goOn(terminal);
    });
    if (watching.unsent > HOLD_BYTES) hold(terminal);
  };

  const input = (terminal: Terminal, bytes: Buffer): void => {
    if (terminal.pty?.write(bytes) !== false) return;
    terminal.isFull = true;
    for (const { viewer } of terminal.watching) viewer.hold();
  };

  const takeInput = (terminal: Terminal): void => {
    terminal.isFull = false;
    for (const { viewer } of terminal.watching) viewer.goOn();
  };

  const onExit = (terminal: Terminal, exitCode: number): void => {
    terminal.isOver = true;
    terminal.exitCode = exitCode;
    terminal.usedAtMs = clock.monotonicMs();
    terminal.held?.();
    takeInput(terminal);
    for (const { viewer } of terminal.watching) viewer.exited(exitCode);
    terminal.watching.clear();
    const over = [...all.values()].filter(({ isOver }) => isOver);
    for (const { id } of over.slice(0, Math.max(0, over.length - MAX_TERMINALS))) all.delete(id);
  };

  const programOf = async (wish: TerminalWish): Promise<Program> => {
    if (!wish.client) {
      return { file: SHELL, args: wish.command === undefined ? ['-l'] : ['-lc', wish.command], environment: {} };
    }
    const { command, environment } = await ports.harnessClient(AbortSignal.timeout(CLIENT_LIMIT_MS));
    const [file = SHELL, ...args] = command;
    return { file, args, environment };
  };

  const start = async (id: string, wish: TerminalWish): Promise<Terminal> => {
    const { file, args, environment } = await programOf(wish);
    const terminal: Terminal = {
      id,
      command: file,
      args,
      scrollback: createScrollback(SCROLLBACK_BYTES),
      watching: new Set(),
      pty: undefined,
      exitCode: null,
      isOver: false,
      usedAtMs: clock.monotonicMs(),
      held: undefined,
      isFull: false,
    };
    terminal.pty = await ports.startPty(
      {
        file,
        args,
        cwd: ports.cwd,
        environment: { ...ports.environment(), TERM: 'xterm-256color', SHELL, ...environment },
        cols: wish.cols,
        rows: wish.rows,
      },
      {
        data: (bytes) => {
          terminal.scrollback.add(bytes);
          for (const watching of terminal.watching) send(terminal, watching, bytes);
        },
        drain: () => takeInput(terminal),
        exit: (exitCode) => onExit(terminal, exitCode),
      },
    );
    all.set(id, terminal);
    return terminal;
  };

  /** Known as being made before anything is waited for, so that one id is one terminal. */
  const make = (id: string, wish: TerminalWish): Promise<Terminal> => {
    const running = [...all.values()].filter(({ isOver }) => !isOver).length + making.size;
    if (running >= MAX_TERMINALS) {
      throw new LimitError('too_many_terminals', `${MAX_TERMINALS} terminals run in this sandbox; end one first`);
    }
    const made = start(id, wish).finally(() => making.delete(id));
    making.set(id, made);
    return made;
  };

  return {
    attach: async (wish, viewer) => {
      const id = wish.id ?? ports.newId();
      const terminal = all.get(id) ?? (await (making.get(id) ?? make(id, wish)));
      const watching: Watching = { viewer, unsent: 0 };
      const scrollback = terminal.scrollback.read();
      if (!terminal.isOver) {
        terminal.watching.add(watching);
        terminal.pty?.resize(wish.cols, wish.rows);
        if (terminal.isFull) viewer.hold();
      }
      return {
        view: viewOf(terminal),
        scrollback,
        input: (bytes) => {
          if (!terminal.isOver && terminal.watching.has(watching)) input(terminal, bytes);
        },
        resize: (cols, rows) => {
          if (!terminal.isOver && terminal.watching.has(watching)) terminal.pty?.resize(cols, rows);
        },
        leave: () => {
          if (!terminal.watching.delete(watching)) return;
          terminal.usedAtMs = clock.monotonicMs();
          if (terminal.held !== undefined && terminal.watching.size === 0) goOn(terminal);
        },
      };
    },
    list: () => [...all.values()].map(viewOf),
    end: (id) => {
      const terminal = all.get(id);
      if (terminal === undefined) return false;
      if (!terminal.isOver) terminal.pty?.end();
      all.delete(id);
      return true;
    },
    endAll: () => {
      for (const terminal of all.values()) if (!terminal.isOver) terminal.pty?.end();
    },
  };
};
