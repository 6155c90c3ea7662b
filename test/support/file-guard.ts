// Loaded before each test file: one whose tests are over ends, and says what it left open. Must not know any test.
//
// Node's runner waits for a file's process for ever: one forgotten server, and a run hangs until somebody kills it.
import { after } from 'node:test';
import { isMainThread } from 'node:worker_threads';

/** How long a file may stand after its last test, for hooks that take a cluster down. Units: milliseconds. */
const LINGER_MS = Number(process.env['BEEUNI_TEST_LINGER_MS'] ?? 180_000);

type Handle = Readonly<{
  type: string;
  is_active?: boolean;
  is_referenced?: boolean;
  pid?: number;
  localEndpoint?: Readonly<{ port?: number }> | null;
  remoteEndpoint?: Readonly<{ port?: number }> | null;
}>;

const line = ({ type, pid, localEndpoint, remoteEndpoint }: Handle): string => {
  const parts = [
    pid === undefined ? '' : `pid ${pid}`,
    localEndpoint?.port === undefined ? '' : `port ${localEndpoint.port}`,
    remoteEndpoint?.port === undefined ? '' : `to port ${remoteEndpoint.port}`,
  ];
  return [type, ...parts.filter((part) => part !== '')].join(' ');
};

/** What keeps this process alive, a line each. */
const leftOpen = (): readonly string[] => {
  const { libuv } = process.report.getReport() as Readonly<{ libuv: readonly Handle[] }>;
  const handles = libuv.filter((handle) => handle.is_active === true && handle.is_referenced === true).map(line);
  return [...handles, ...process.getActiveResourcesInfo().map((kind) => `resource ${kind}`)];
};

if (isMainThread && process.env['NODE_TEST_CONTEXT'] !== undefined) {
  after(() => {
    setTimeout(() => {
      process.stderr.write(`all tests are over, and after ${LINGER_MS / 1_000} s the process of this file stands:\n`);
      for (const text of leftOpen()) process.stderr.write(`  ${text}\n`);
      process.exit(1);
    }, LINGER_MS).unref();
  });
}
