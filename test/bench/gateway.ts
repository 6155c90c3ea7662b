// The model gateway with every feature on, beside nginx as the floor and Portkey as the peer: added time and calls per
// second of one core (G10, G11), small calls beside large ones (G12), first token and paced streams (G13, G14), memory
// (G15). The gateways run on core 0; load, provider and Postgres on core 1.
// `node test/bench/gateway.ts [--full] [--only json,stream,soak] [--realtime]`. Writes bench/results/gateway.json; asserts
// no time. `--realtime`: on a machine that others use too, everything here runs before them, in short bursts.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { systemClock } from '#base/clock.ts';
import { createEmbeddedPostgres } from '#controlplane/store/embedded.ts';
import { migrate } from '#controlplane/store/migrate.ts';
import {
  cpuMs,
  type Measured,
  median,
  quantile,
  readStream,
  requestBody,
  rssBytes,
  type Target,
  wrk,
  wrkScript,
} from './gateway/load.ts';
import { getPeers, nginxConfig } from './gateway/peers.ts';

const { values: options } = parseArgs({
  options: {
    full: { type: 'boolean', default: false },
    realtime: { type: 'boolean', default: false },
    only: { type: 'string', default: 'json,stream,soak' },
  },
});
const parts = new Set(options.only.split(','));
const isFull = options.full;
const ROUNDS = isFull ? 5 : 3;
const SECONDS = options.realtime ? 1 : isFull ? 5 : 2;
const SOAK_MINUTES = isFull ? 10 : 0.5;
const STREAMS = isFull ? 500 : 200;
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
const children: ChildProcess[] = [];
const start = (
  core: number,
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): ChildProcess => {
  const child = spawn('taskset', ['-c', String(core), command, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  return child;
};
const firstLine = (child: ChildProcess): Promise<string> =>
  new Promise((resolve, reject) => {
    let text = '';
    child.stdout?.on('data', (part: Buffer) => {
      text += part.toString('utf8');
      const end = text.indexOf('\n');
      if (end >= 0) resolve(text.slice(0, end));
    });
    child.once('exit', (code) => reject(new Error(`a program ended with ${code}`)));
  });
const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer();
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
const untilAnswers = async (target: Target): Promise<string> => {
  for (let tries = 0; ; tries += 1) {
    try {
      const answer = await fetch(`http://127.0.0.1:${target.port}${target.path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...target.headers },
        body: requestBody(target.model('m'), 100),
      });
      if (answer.status === 200) return await answer.text();
      if (tries > 100) throw new Error(`${target.name} answers ${answer.status}: ${await answer.text()}`);
    } catch (error) {
      if (tries > 100) throw error;
    }
    await wait(100);
  }
};

const peers = getPeers();
if (peers.wrk === undefined) throw new Error('wrk cannot be had here, and nothing can be measured without it');
const wrkPath = peers.wrk;
const postgres = createEmbeddedPostgres({
  directory: folder,
  settings: ['fsync=off'],
  log: () => undefined,
  clock: systemClock,
});

/** A provider of whole answers, and one of streams too; the first is nginx where it can be had. */
const startProviders = async (): Promise<Readonly<{ whole: number; stream: number }>> => {
  const mock = start(1, process.execPath, [join(import.meta.dirname, 'gateway/mock.ts')], { MOCK_ANSWER: ANSWER });
  const stream = Number(await firstLine(mock));
  if (peers.nginx === undefined) return { whole: stream, stream };
  const whole = await freePort();
  const directory = join(folder, 'nginx-provider');
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'nginx.conf'), nginxConfig(directory, whole, { answer: ANSWER }));
  start(1, peers.nginx, ['-p', directory, '-c', join(directory, 'nginx.conf')], peers.env);
  return { whole, stream };
};

const path = '/v1/chat/completions';
const plain = (id: string): string => id;
const pidOf = (child: ChildProcess): number => child.pid ?? 0;

const startNginx = async (upstream: number, name: string): Promise<Target | undefined> => {
  if (peers.nginx === undefined) return undefined;
  const port = await freePort();
  const directory = join(folder, `nginx-${name}`);
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'nginx.conf'), nginxConfig(directory, port, { upstream, key: 'sk-upstream' }));
  const child = start(0, peers.nginx, ['-p', directory, '-c', join(directory, 'nginx.conf')], peers.env);
  return { name: 'nginx', port, path, pids: [pidOf(child)], headers: { authorization: 'Bearer x' }, model: plain };
};
const startOurs = async (upstream: number, databaseUrl: string): Promise<Target> => {
  const child = start(0, process.execPath, [join(import.meta.dirname, 'gateway/subject.ts')], {
    DATABASE_URL: databaseUrl,
    UPSTREAM: `http://127.0.0.1:${upstream}/v1`,
    MODELS: MODELS.join(','),
    FOLDER: folder,
    NODE_ENV: 'production',
  });
  const { port, credential } = JSON.parse(await firstLine(child)) as { port: number; credential: string };
  return {
    name: 'ours',
    port,
    path: '/gateway/v1/chat/completions',
    pids: [pidOf(child)],
    headers: { authorization: `Bearer ${credential}` },
    model: (id) => `demo/${id}`,
  };
};
const startPortkey = async (upstream: number): Promise<Target | undefined> => {
  if (peers.portkey === undefined) return undefined;
  const port = await freePort();
  const child = start(0, process.execPath, [peers.portkey, `--port=${port}`, '--headless'], {
    TRUSTED_CUSTOM_HOSTS: '127.0.0.1,localhost',
    NODE_ENV: 'production',
  });
  child.stdout?.resume();
  const headers = {
    authorization: 'Bearer sk-upstream',
    'x-portkey-provider': 'openai',
    'x-portkey-custom-host': `http://127.0.0.1:${upstream}/v1`,
  };
  return { name: 'portkey', port, path, pids: [pidOf(child)], headers, model: plain };
};
/** The order of a round: floor, peer, ours, ours, peer, floor. */
const interleaved = <T>(targets: readonly T[]): readonly T[] => [...targets, ...[...targets].reverse()];
const fixed = (value: number, digits = 2): string => (Number.isFinite(value) ? value.toFixed(digits) : '–');
const results: Record<string, unknown> = {};
const lines: string[] = [];
const say = (goal: string, what: string, value: string, wanted: string): void => {
  const line = `${goal.padEnd(4)} ${what.padEnd(58)} ${value.padEnd(26)} goal ${wanted}`;
  lines.push(line);
  console.log(line);
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
  const until = performance.now() + (isFull ? 120_000 : 40_000);
  let calls = 0;
  while (calls < 20_000 && performance.now() < until) calls += (await load(target, 2_000, 64)).perSecond * SECONDS;
};

const measureJson = async (direct: Target, targets: readonly Target[]): Promise<void> => {
  const one: Record<string, number[]> = {};
  const many: Record<string, Measured[]> = {};
  for (const target of targets) {
    const text = await untilAnswers(target);
    if (text !== ANSWER) throw new Error(`${target.name} changed the answer: ${text.slice(0, 200)}`);
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
  results['json'] = { one, many, quiet, disturbed };
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
  for (const target of targets.filter(({ name }) => name !== 'portkey')) {
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
  for (const target of targets.filter(({ name }) => name !== 'portkey')) {
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
  results['streams'] = { first, rates, paced };
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
  while (minutes() < SOAK_MINUTES) {
    const leaver = new AbortController();
    const headers = { 'content-type': 'application/json', ...ours.headers };
    const body = requestBody(ours.model('m'), 100_000);
    void fetch(`http://127.0.0.1:${ours.port}${ours.path}`, {
      method: 'POST',
      headers,
      body,
      signal: leaver.signal,
    }).catch(() => undefined);
    setTimeout(() => leaver.abort(), 1);
    await load(ours, 2_000, 16, 2);
    samples.push([minutes(), rssBytes(ours.pids) / 2 ** 20]);
  }
  const late = samples.slice(Math.floor(samples.length / 4));
  const meanX = late.reduce((sum, [x]) => sum + x, 0) / late.length;
  const meanY = late.reduce((sum, [, y]) => sum + y, 0) / late.length;
  const slope =
    late.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0) /
    late.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0);
  say('G15', `RSS over ${SOAK_MINUTES} min of mixed load`, `${fixed(slope)} MB/min`, '< 1 MB/min over 10 min');
  results['soak'] = { after, samples };
};

const clean = async (): Promise<void> => {
  for (const child of children) child.kill('SIGKILL');
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
};
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void clean().finally(() => process.exit(1)));

try {
  const databaseUrl = await postgres.start();
  await migrate(databaseUrl);
  const providers = await startProviders();
  const directTo = (port: number): Target => ({
    name: 'direct',
    port,
    path,
    pids: [process.pid],
    headers: {},
    model: plain,
  });
  const wholeTargets = async (upstream: number): Promise<readonly Target[]> => {
    const all = [
      await startNginx(upstream, String(upstream)),
      await startPortkey(upstream),
      await startOurs(upstream, databaseUrl),
    ];
    return all.filter((target) => target !== undefined);
  };
  const stopTargets = (targets: readonly Target[]): void => {
    for (const child of children) if (targets.some(({ pids }) => pids.includes(pidOf(child)))) child.kill('SIGKILL');
  };
  if (parts.has('json')) {
    const targets = await wholeTargets(providers.whole);
    await measureJson(directTo(providers.whole), targets);
    stopTargets(targets);
  }
  if (parts.has('stream')) {
    const targets = await wholeTargets(providers.stream);
    await measureStreams([directTo(providers.stream), ...targets]);
    stopTargets(targets);
  }
  if (parts.has('soak')) {
    const targets = await wholeTargets(providers.whole);
    await measureSoak(targets);
    stopTargets(targets);
  }
  console.log(`\n${lines.join('\n')}`);
  const missing = [peers.nginx === undefined ? 'nginx' : '', peers.portkey === undefined ? 'Portkey' : ''].filter(
    (name) => name !== '',
  );
  if (missing.length > 0) console.log(`missing here: ${missing.join(', ')}`);
  mkdirSync('bench/results', { recursive: true });
  const about = {
    cores: cpus().length,
    node: process.version,
    full: isFull,
    missing,
    at: new Date().toISOString(),
  };
  writeFileSync('bench/results/gateway.json', JSON.stringify({ ...about, lines, ...results }, null, 2));
} finally {
  await clean();
}
