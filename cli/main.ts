#!/usr/bin/env -S node --disable-warning=ExperimentalWarning
// `beeuni`, also as `kubectl beeuni` and inside a sandbox: hands the process over to run.ts and ends it with its exit code.
// The only file of the command line that reads the process.
import { enableCompileCache } from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';
import packageJson from '../package.json' with { type: 'json' };
import type { Io } from './io.ts';

// Compiled code is kept, in a folder of the person's own, since somebody else's code could lie in a shared one.
if (process.env['NODE_COMPILE_CACHE'] === undefined) {
  enableCompileCache(join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'beeuni', 'compiled'));
}
const { runCli } = await import('./run.ts');

const { stdin, stdout, stderr } = process;

const listen = (name: 'SIGINT' | 'SIGWINCH' | 'exit', react: () => void): (() => void) => {
  process.on(name, react);
  return () => {
    process.off(name, react);
  };
};

// Without a command that wants it, Ctrl-C ends the call; as an exit, so that what was started is ended too.
let interruptReaders = 0;
process.on('SIGINT', () => {
  if (interruptReaders === 0) process.exit(130);
});
process.on('SIGTERM', () => process.exit(143));
process.on('SIGHUP', () => process.exit(129));

const io: Io = {
  env: process.env,
  cwd: process.cwd(),
  homeDir: homedir(),
  stdin,
  stdout,
  stderr,
  isTerminal: { stdin: stdin.isTTY === true, stdout: stdout.isTTY === true },
  // A terminal that nobody gave a size says 0.
  size: () => ({ columns: stdout.columns || 80, rows: stdout.rows || 24 }),
  onResize: (react) => listen('SIGWINCH', react),
  onInterrupt: (react) => {
    interruptReaders += 1;
    const forget = listen('SIGINT', react);
    return () => {
      interruptReaders -= 1;
      forget();
    };
  },
  onExit: (react) => listen('exit', react),
  setRaw: (raw) => {
    if (stdin.isTTY === true) stdin.setRawMode(raw);
  },
  version: packageJson.version,
};

// The reader of a pipe may leave early (`beeuni sessions log | head`): that is its right and no failure.
for (const stream of [stdout, stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
}

const code = await runCli(process.argv.slice(2), io);
// What is written is written before the end; a handle that is left, like a stdin that is read, does not hold it up.
await new Promise((resolve) => stdout.write('', resolve));
process.exit(code);
