// A pseudo terminal with a program in it. The only file that loads the native package, and only when the first one is made.
// Must not know who looks at it. Source: docs/decisions/0039.

/** What is started. Sizes in characters. */
export type PtyCommand = Readonly<{
  file: string;
  args: readonly string[];
  cwd: string;
  environment: Readonly<Record<string, string>>;
  cols: number;
  rows: number;
}>;

/** A running program. `pause` holds its output back; `end` hangs up. */
export type Pty = Readonly<{
  pid: number;
  write: (bytes: Buffer) => void;
  resize: (cols: number, rows: number) => void;
  pause: () => void;
  resume: () => void;
  end: () => void;
}>;

/** Starts a program; the listeners are called until `onExit`, which comes once. Errors: those of the system. */
export type StartPty = (
  command: PtyCommand,
  onData: (bytes: Buffer) => void,
  onExit: (exitCode: number) => void,
) => Promise<Pty>;

/** The one of node-pty. */
export const startPty: StartPty = async (command, onData, onExit) => {
  const { spawn } = await import('@lydell/node-pty');
  const { file, args, cwd, environment, cols, rows } = command;
  const child = spawn(file, [...args], {
    name: 'xterm-256color',
    cwd,
    env: { ...environment },
    cols,
    rows,
    // Bytes: a character may come in two pieces, and not everything is text.
    encoding: null,
  });
  // With no encoding its data are bytes, whatever its types say.
  child.onData((data) => onData(Buffer.from(data as unknown as Uint8Array)));
  child.onExit(({ exitCode, signal }) => onExit(signal === undefined || signal === 0 ? exitCode : 128 + signal));
  return {
    pid: child.pid,
    write: (bytes) => child.write(bytes as unknown as string),
    resize: (width, height) => child.resize(width, height),
    pause: () => child.pause(),
    resume: () => child.resume(),
    end: () => child.kill('SIGHUP'),
  };
};
