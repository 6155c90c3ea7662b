// Load on a gateway and what it takes: wrk for whole answers, raw sockets for streams, and the CPU time and memory of a
// process. Must not know which gateway it is.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { promisify } from 'node:util';
import { AnswerParser } from '#controlplane/gateway/answer-parser.ts';

const run = promisify(execFile);

/** Where a gateway is, and what its calls need. `model`: name of a model as this gateway takes it. */
export type Target = Readonly<{
  name: string;
  port: number;
  path: string;
  pids: readonly number[];
  headers: Readonly<Record<string, string>>;
  model: (id: string) => string;
}>;

const TICKS_PER_SECOND = 100;

/** CPU time of processes so far. Units: milliseconds. */
export const cpuMs = (pids: readonly number[]): number =>
  pids.reduce((sum, pid) => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    return sum + ((Number(fields[11]) + Number(fields[12])) * 1_000) / TICKS_PER_SECOND;
  }, 0);

/** Resident memory of processes. Units: bytes. */
export const rssBytes = (pids: readonly number[]): number =>
  pids.reduce((sum, pid) => {
    const [, kilobytes = '0'] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    return sum + Number(kilobytes) * 1_024;
  }, 0);

/** A chat request of about so many bytes. */
export const requestBody = (model: string, bytes: number, stream = false): string =>
  JSON.stringify({ model, stream, messages: [{ role: 'user', content: 'a'.repeat(bytes) }] });

/** What wrk measured. Units: microseconds, calls per second of wall and of CPU time. */
export type Measured = Readonly<{ p50Us: number; p99Us: number; perSecond: number; perCpuSecond: number }>;

const UNITS: Readonly<Record<string, number>> = { us: 1, ms: 1_000, s: 1_000_000 };
const microseconds = (text: string, percent: number): number => {
  const [, value = 'NaN', unit = 'us'] = new RegExp(`^\\s*${percent}%\\s+([\\d.]+)(us|ms|s)`, 'm').exec(text) ?? [];
  return Number(value) * (UNITS[unit] ?? 1);
};

/** Runs wrk; a wrong status voids the run. */
export const wrk = async (
  program: Readonly<{ path: string; env: Readonly<Record<string, string>>; script: string }>,
  target: Target,
  connections: number,
  seconds: number,
): Promise<Measured> => {
  const before = cpuMs(target.pids);
  const { stdout } = await run(
    program.path,
    [
      '-t1',
      `-c${connections}`,
      `-d${seconds}s`,
      '--latency',
      '--timeout',
      '20s',
      '-s',
      program.script,
      `http://127.0.0.1:${target.port}${target.path}`,
    ],
    { env: { ...process.env, ...program.env } },
  );
  const cpu = cpuMs(target.pids) - before;
  if (/Non-2xx|Socket errors/.test(stdout)) throw new Error(`${target.name} gave wrong answers:\n${stdout}`);
  const calls = Number(/(\d+) requests in/.exec(stdout)?.[1]);
  return {
    p50Us: microseconds(stdout, 50),
    p99Us: microseconds(stdout, 99),
    perSecond: calls / seconds,
    perCpuSecond: cpu === 0 ? Number.NaN : calls / (cpu / 1_000),
  };
};

/** The script by which wrk sends one body. */
export const wrkScript = (target: Target, body: string): string =>
  [
    'wrk.method = "POST"',
    `wrk.body = ${JSON.stringify(body)}`,
    ...Object.entries({ 'content-type': 'application/json', ...target.headers }).map(
      ([name, value]) => `wrk.headers[${JSON.stringify(name)}] = ${JSON.stringify(value)}`,
    ),
  ].join('\n');

/** What was seen of one stream. Units: milliseconds; `gapMs`: the longest time between two chunks. */
export type Streamed = Readonly<{ firstMs: number; gapMs: number; chunks: number; isWhole: boolean; totalMs: number }>;

/** What every chunk of the mock holds once. */
const CHUNK = Buffer.from('"content":"word ');
const DONE = Buffer.from('data: [DONE]');
/** A stream that is silent so long is lost. Units: milliseconds. */
const STALL_MS = 20_000;
/** Most that is read at once. Units: bytes. */
const READ_BYTES = 16_384;

/** Counts a mark in bytes that are cut anywhere. Its first byte followed by its second is nowhere else in it. */
const makeCounter = (mark: Buffer): ((bytes: Buffer) => number) => {
  const [first] = mark;
  let matched = 0;
  return (bytes) => {
    let count = 0;
    for (let at = 0; at < bytes.length; at += 1) {
      const byte = bytes[at];
      if (byte === mark[matched]) matched += 1;
      else matched = byte === first ? 1 : 0;
      if (matched === mark.length) {
        count += 1;
        matched = 0;
      }
    }
    return count;
  };
};

/**
 * Reads one stream over a connection of its own, without a copy of what came: hundreds of them run beside what is
 * measured.
 */
export const readStream = (target: Target, model: string): Promise<Streamed> =>
  new Promise((resolve, reject) => {
    const body = requestBody(target.model(model), 2_000, true);
    const head = Object.entries({
      host: `127.0.0.1:${target.port}`,
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(body)),
      connection: 'close',
      ...target.headers,
    });
    let startedMs = 0;
    let firstMs = Number.NaN;
    let lastMs = 0;
    let gapMs = 0;
    let chunks = 0;
    let isWhole = false;
    const chunksIn = makeCounter(CHUNK);
    const endsIn = makeCounter(DONE);
    const see = (bytes: Buffer): void => {
      const more = chunksIn(bytes);
      if (endsIn(bytes) > 0) isWhole = true;
      if (more === 0) return;
      const nowMs = performance.now();
      if (chunks === 0) firstMs = nowMs - startedMs;
      else gapMs = Math.max(gapMs, nowMs - lastMs);
      chunks += more;
      lastMs = nowMs;
    };
    const finish = (): void => {
      resolve({ firstMs, gapMs, chunks, isWhole, totalMs: performance.now() - startedMs });
      socket.destroy();
    };
    const parser = new AnswerParser({ onHead: () => undefined, onBody: see, onEnd: () => setImmediate(finish) });
    const buffer = Buffer.allocUnsafeSlow(READ_BYTES);
    const socket = connect({
      port: target.port,
      host: '127.0.0.1',
      noDelay: true,
      onread: {
        buffer,
        callback: (length) => {
          parser.push(buffer.subarray(0, length));
          return true;
        },
      },
    });
    socket.setTimeout(STALL_MS, () => socket.destroy(new Error(`${target.name} sent nothing for a while`)));
    socket.on('connect', () => {
      startedMs = performance.now();
      const lines = head.map(([name, value]) => `${name}: ${value}\r\n`).join('');
      socket.write(`POST ${target.path} HTTP/1.1\r\n${lines}\r\n${body}`);
    });
    socket.on('error', reject);
    socket.on('end', finish);
  });
