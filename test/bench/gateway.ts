// The model gateway with every feature on, beside nginx as the floor, and Portkey and LiteLLM as peers: added time and calls
// per second of one core (G10, G11), small calls beside large ones (G12), first token and paced streams (G13, G14), memory
// (G15). The gateways run on core 0; load, provider and Postgres on core 1. Ours starts as its image does.
// `node test/bench/gateway.ts [--full] [--only json,stream,soak] [--minutes 10] [--streams 500] [--realtime]`. Writes
// bench/results/gateway.json, part by part; asserts no time. `--realtime`: on a machine that others use too, everything here
// runs before them, in short bursts.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { systemClock } from '#base/clock.ts';
import { createEmbeddedPostgres } from '#controlplane/store/embedded.ts';
import { migrate } from '#controlplane/store/migrate.ts';
import { median, quantile } from '#test/support/statistics.ts';
import {
  cpuMs,
  type Measured,
  readStream,
  requestBody,
  rssBytes,
  type Target,
  wrk,
  wrkScript,
} from './gateway/load.ts';
import { getPeers } from './gateway/peers.ts';
import { imageStart, makePrograms, untilAnswers } from './gateway/programs.ts';

const { values: options } = parseArgs({
  options: {
    full: { type: 'boolean', default: false },
    realtime: { type: 'boolean', default: false },
    only: { type: 'string', default: 'json,stream,soak' },
    streams: { type: 'string', default: '500' },
    minutes: { type: 'string' },
  },
});
const parts = new Set(options.only.split(','));
const isFull = options.full;
const ROUNDS = isFull ? 5 : 3;
const SECONDS = options.realtime ? 1 : isFull ? 5 : 2;
const SOAK_MINUTES = Number(options.minutes ?? (isFull ? 10 : 0.5));
const STREAMS = Number(options.streams);
const STREAM_CHUNKS = isFull ? 500 : 150;

const ANSWER = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'word '.repeat(60) }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 500, completion_tokens: 60, total_tokens: 560 },
});
const MODELS = ['m', `stream-4-5`, 'stream-3000-0', `stream-${STREAM_CHUNKS}-20`];

execFileSync('taskset', ['-cp', '1', String(process.pid)], { stdio: 'ignore' });
if (options.realtime) execFileSync('chrt', ['-r', '-p', '10', String(process.pid)], { stdio: 'ignore' });
const folder = mkdtempSync(join(tmpdir(), 'beeuni-bench-gateway-'));
const peers = getPeers();
if (peers.wrk === undefined) throw new Error('wrk cannot be had here, and nothing can be measured without it');
const wrkPath = peers.wrk;
const programs = makePrograms({ folder, peers, answer: ANSWER, models: MODELS });
const postgres = createEmbeddedPostgres({
  directory: folder,
  settings: ['fsync=off'],
  log: () => undefined,
  clock: systemClock,
});

/** The order of a round: floor, peer, ours, ours, peer, floor. */
const interleaved = <T>(targets: readonly T[]): readonly T[] => [...targets, ...[...targets].reverse()];
const fixed = (value: number, digits = 2): string => (Number.isFinite(value) ? value.toFixed(digits) : '–');
/** What one part measured, with the lines that it printed. */
const results: Record<string, Readonly<Record<string, unknown>>> = {};
let lines: string[] = [];
const say = (goal: string, what: string, value: string, wanted: string): void => {
  const line = `${goal.padEnd(4)} ${what.padEnd(58)} ${value.padEnd(26)} goal ${wanted}`;
  lines.push(line);
  console.log(line);
};
const keep = (part: string, figures: Readonly<Record<string, unknown>>): void => {
  results[part] = { at: new Date().toISOString(), full: isFull, realtime: options.realtime, lines, ...figures };
  lines = [];
};
const script = (target: Target, body: string): string => {
  const file = join(folder, `${target.name}-${body.length}.lua`);
  writeFileSync(file, wrkScript(target, body));
  return file;
};
const load = async (target: Target, bytes: number, connections: number, seconds = SECONDS): Promise<Measured> => {
  const program = { path: wrkPath, env: peers.env, script: script(target, requestBody(target.model('m'), bytes)) };
  const measured = await wrk(program, target, connections, seconds);
  // The others have their turn.
  if (options.realtime) await wait(1_000);
  return measured;
};

/** Lets a program come to the speed that it has for hours: so many calls, or so long. */
const warm = async (target: Target): Promise<void> => {
  const until = performance.now() + (target.name === 'litellm' ? 8_000 : isFull ? 120_000 : 40_000);
  let calls = 0;
  while (calls < 20_000 && performance.now() < until) calls += (await load(target, 2_000, 64)).perSecond * SECONDS;
};

const measureJson = async (direct: Target, targets: readonly Target[]): Promise<void> => {
  const one: Record<string, number[]> = {};
  const many: Record<string, Measured[]> = {};
  for (const target of targets) {
    const text = await untilAnswers(target);
    // LiteLLM writes the answer anew.
    if (text !== ANSWER && target.name !== 'litellm')
      throw new Error(`${target.name} changed the answer: ${text.slice(0, 200)}`);
    await warm(target);
  }
  const ceiling = await load(direct, 2_000, 64);
  console.log(`# the provider's own ceiling: ${fixed(ceiling.perSecond, 0)} calls/s`);
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const target of interleaved([direct, ...targets])) {
      (one[target.name] ??= []).push((await load(target, 2_000, 1, 1)).p50Us);
    }
    for (const target of interleaved(targets)) (many[target.name] ??= []).push(await load(target, 2_000, 64));
  }
  const base = median(one['direct'] ?? []);
  const added = (name: string): number => median(one[name] ?? []) - base;
  const rate = (name: string): number => median((many[name] ?? []).map(({ perCpuSecond }) => perCpuSecond));
  const wall = (name: string): number => median((many[name] ?? []).map(({ perSecond }) => perSecond));
  for (const { name } of targets) {
    console.log(
      `# ${name}: added p50 ${fixed(added(name), 0)} us; ${fixed(rate(name), 0)} calls per CPU second; ${fixed(wall(name), 0)} calls/s`,
    );
  }
  if (wall('ours') > 0.8 * ceiling.perSecond) console.log('# VOID: ours is above 80 % of what the provider can do');
  if (one['litellm'] !== undefined) {
    console.log(
      `# over LiteLLM: added p50 ${fixed(added('ours') / added('litellm'))}, calls per CPU second ${fixed(rate('ours') / rate('litellm'))}`,
    );
  }
  say('G10', 'added p50, one client, over nginx', fixed(added('ours') / added('nginx')), '≤ 2.0');
  say('G10', 'added p50, one client, over Portkey', fixed(added('ours') / added('portkey')), '≤ 0.40');
  say('G11', 'calls per CPU second, over Portkey', fixed(rate('ours') / rate('portkey')), '≥ 8');
  say('G11', 'calls per CPU second, over nginx', fixed(rate('ours') / rate('nginx'), 3), '≥ 0.20');
  const ours = targets.find(({ name }) => name === 'ours');
  if (ours === undefined) return;
  const quiet: number[] = [];
  const disturbed: number[] = [];
  const large = requestBody(ours.model('m'), 1_000_000);
  for (let round = 0; round < ROUNDS; round += 1) {
    quiet.push((await load(ours, 2_000, 16)).p99Us);
    const stop = new AbortController();
    const sent: Promise<string>[] = [];
    const sender = (async () => {
      const headers = { 'content-type': 'application/json', ...ours.headers };
      while (!stop.signal.aborted) {
        const url = `http://127.0.0.1:${ours.port}${ours.path}`;
        sent.push(fetch(url, { method: 'POST', headers, body: large }).then((answer) => answer.text()));
        await wait(100);
      }
      await Promise.all(sent);
    })();
    disturbed.push((await load(ours, 2_000, 16)).p99Us);
    stop.abort();
    await sender;
  }
  const ratio = median(disturbed.map((value, at) => value / (quiet[at] ?? Number.NaN)));
  say('G12', 'p99 of small calls beside 1 MB every 100 ms', `${fixed(ratio)} (${fixed(median(quiet), 0)} us)`, '≤ 3');
  keep('json', { one, many, quiet, disturbed });
};

const measureStreams = async (targets: readonly Target[]): Promise<void> => {
  const first: Record<string, number[]> = {};
  const gaps: Record<string, number[]> = {};
  for (const target of targets) {
    await untilAnswers(target);
    const warmer = async (): Promise<void> => {
      for (let count = 0; count < 150; count += 1) await readStream(target, 'stream-4-5');
    };
    await Promise.all(Array.from({ length: target.name === 'portkey' ? 1 : 10 }, warmer));
  }
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const target of interleaved(targets)) {
      for (let count = 0; count < 30; count += 1) {
        const seen = await readStream(target, 'stream-4-5');
        if (!seen.isWhole || seen.chunks !== 4)
          throw new Error(`${target.name} lost a part of a stream: ${JSON.stringify(seen)}`);
        (first[target.name] ??= []).push(seen.firstMs);
        (gaps[target.name] ??= []).push(seen.gapMs);
      }
    }
  }
  const base = median(first['direct'] ?? []);
  for (const { name } of targets) {
    const of = first[name] ?? [];
    console.log(
      `# ${name}: first token p50 ${fixed(median(of))} ms, p99 ${fixed(quantile(of, 0.99))} ms; longest gap p99 ${fixed(quantile(gaps[name] ?? [], 0.99))} ms`,
    );
  }
  say('G13', 'added time to first token, p50', `${fixed(median(first['ours'] ?? []) - base)} ms`, '≤ 0.7 ms');
  const steps = (first['ours'] ?? []).filter((ms) => ms - base > 38 && ms - base < 50).length;
  say('G13', 'first tokens that come 38 to 50 ms late', `${steps} of ${first['ours']?.length}`, 'none');
  const rates: Record<string, number> = {};
  // Portkey needs a minute for such a stream.
  for (const target of targets.filter(({ name }) => name !== 'portkey' && name !== 'litellm')) {
    const seen = await readStream(target, 'stream-3000-0');
    if (!seen.isWhole || seen.chunks !== 3_000)
      throw new Error(`${target.name} lost chunks of an unpaced stream: ${seen.chunks}`);
    rates[target.name] = (seen.chunks / (seen.totalMs - seen.firstMs)) * 1_000;
  }
  console.log(
    `# one unpaced stream, chunks/s: ${Object.entries(rates)
      .map(([name, rate]) => `${name} ${fixed(rate, 0)}`)
      .join(', ')}`,
  );
  const paced: Record<string, Readonly<{ gapP99Ms: number; lost: number; cpu: number }>> = {};
  for (const target of targets.filter(({ name }) => name !== 'portkey' && name !== 'litellm')) {
    const before = cpuMs(target.pids);
    const startedMs = performance.now();
    const seen = await Promise.all(
      Array.from({ length: STREAMS }, async (_, at) => {
        await wait((at * 1_000) / STREAMS);
        return readStream(target, `stream-${STREAM_CHUNKS}-20`);
      }),
    );
    const cpu = (cpuMs(target.pids) - before) / (performance.now() - startedMs);
    const lost = seen.reduce((sum, { chunks, isWhole }) => sum + (isWhole ? STREAM_CHUNKS - chunks : STREAM_CHUNKS), 0);
    paced[target.name] = {
      gapP99Ms: quantile(
        seen.map(({ gapMs }) => gapMs),
        0.99,
      ),
      lost,
      cpu,
    };
    console.log(
      `# ${target.name}: ${STREAMS} streams, longest gap p99 ${fixed(paced[target.name]?.gapP99Ms ?? 0, 1)} ms, lost ${lost}, ${fixed(cpu * 100, 0)} % of a core`,
    );
  }
  const extra = (paced['ours']?.gapP99Ms ?? Number.NaN) - (paced['direct']?.gapP99Ms ?? Number.NaN);
  say(
    'G14',
    `${STREAMS} streams at 20 ms: longest gap p99 over direct; lost`,
    `${fixed(extra, 1)} ms; ${paced['ours']?.lost}`,
    '≤ 10 ms; 0',
  );
  keep('stream', { streams: STREAMS, first, rates, paced });
};

const measureSoak = async (targets: readonly Target[]): Promise<void> => {
  const after: Record<string, number> = {};
  for (const target of targets) {
    await untilAnswers(target);
    await load(target, 2_000, 64, isFull ? 20 : 5);
    after[target.name] = rssBytes(target.pids) / 2 ** 20;
  }
  console.log(
    `# RSS after load, MB: ${Object.entries(after)
      .map(([name, mb]) => `${name} ${fixed(mb, 0)}`)
      .join(', ')}`,
  );
  say('G15', 'RSS after load, over Portkey', fixed((after['ours'] ?? 0) / (after['portkey'] ?? Number.NaN)), '≤ 0.60');
  const ours = targets.find(({ name }) => name === 'ours');
  if (ours === undefined) return;
  const samples: [number, number][] = [];
  const startedMs = performance.now();
  const minutes = (): number => (performance.now() - startedMs) / 60_000;
  const headers = { 'content-type': 'application/json', ...ours.headers };
  const post = async (body: string, signal?: AbortSignal): Promise<void> => {
    const url = `http://127.0.0.1:${ours.port}${ours.path}`;
    const answer = await fetch(url, { method: 'POST', headers, body, ...(signal === undefined ? {} : { signal }) });
    await answer.text();
  };
  const small = requestBody(ours.model('m'), 2_000);
  const large = requestBody(ours.model('m'), 100_000);
  let calls = 0;
  // A steady mix at a rate that leaves the machine to others: 100 small calls a second, 5 of 100 KB, 5 that leave at once.
  for (let tick = 0; minutes() < SOAK_MINUTES; tick += 1) {
    const work: Promise<void>[] = Array.from({ length: 10 }, () => post(small));
    if (tick % 2 === 0) {
      const leaver = new AbortController();
      setTimeout(() => leaver.abort(), 1);
      work.push(post(large));
      work.push(post(large, leaver.signal).catch(() => undefined));
    }
    await Promise.all(work);
    calls += work.length;
    if (tick % 20 === 0) samples.push([minutes(), rssBytes(ours.pids) / 2 ** 20]);
    await wait(Math.max(0, startedMs + (tick + 1) * 100 - performance.now()));
  }
  console.log(`# ${calls} calls in ${fixed(minutes(), 1)} min`);
  const late = samples.slice(Math.floor(samples.length / 4));
  const meanX = late.reduce((sum, [x]) => sum + x, 0) / late.length;
  const meanY = late.reduce((sum, [, y]) => sum + y, 0) / late.length;
  const slope =
    late.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0) /
    late.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0);
  say('G15', `RSS over ${SOAK_MINUTES} min of mixed load`, `${fixed(slope)} MB/min`, '< 1 MB/min over 10 min');
  keep('soak', { minutes: SOAK_MINUTES, after, samples });
};

let isLiteLlmMissing = false;
const clean = async (): Promise<void> => {
  programs.stopAll();
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
};
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void clean().finally(() => process.exit(1)));

try {
  const databaseUrl = await postgres.start();
  await migrate(databaseUrl);
  const providers = await programs.startProviders();
  const directTo = (port: number): Target => ({
    name: 'direct',
    port,
    path: '/v1/chat/completions',
    pids: [process.pid],
    headers: {},
    model: (id) => id,
  });
  const wholeTargets = async (upstream: number, withLiteLlm = false): Promise<readonly Target[]> => {
    const all = [
      await programs.startNginx(upstream),
      await programs.startPortkey(upstream),
      withLiteLlm ? await programs.startLiteLlm(upstream) : undefined,
      await programs.startOurs(upstream, databaseUrl),
    ];
    return all.filter((target) => target !== undefined);
  };
  if (parts.has('json')) {
    const targets = await wholeTargets(providers.whole, true);
    isLiteLlmMissing = !targets.some(({ name }) => name === 'litellm');
    await measureJson(directTo(providers.whole), targets);
    programs.stop(targets);
  }
  if (parts.has('stream')) {
    const targets = await wholeTargets(providers.stream);
    await measureStreams([directTo(providers.stream), ...targets]);
    programs.stop(targets);
  }
  if (parts.has('soak')) {
    const targets = await wholeTargets(providers.whole);
    await measureSoak(targets);
    programs.stop(targets);
  }
  const missing = [
    peers.nginx === undefined ? 'nginx' : '',
    peers.portkey === undefined ? 'Portkey' : '',
    isLiteLlmMissing ? 'LiteLLM' : '',
  ].filter((name) => name !== '');
  if (missing.length > 0) console.log(`missing here: ${missing.join(', ')}`);
  mkdirSync('bench/results', { recursive: true });
  const file = 'bench/results/gateway.json';
  // Parts that were not measured now stay as they were.
  const before = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as { parts?: object }) : {};
  const about = { cores: cpus().length, node: process.version, ...imageStart(), missing };
  writeFileSync(file, JSON.stringify({ ...about, parts: { ...before.parts, ...results } }, null, 2));
} finally {
  await clean();
}
