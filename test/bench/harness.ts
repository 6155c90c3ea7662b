// The daemon beside the bare harness: events of OpenCode as a client gets them through daemon and control plane beside
// OpenCode's own stream (rate at full speed, and what each event of a slow answer waits longer), what daemon and harness take of
// memory above the bare harness, what the daemon takes by itself, and what sixty turns leave. Interleaved: floor, ours, ours, floor.
// The control plane is the double of the tests, in this process. `node test/bench/harness.ts [--rounds 3] [--chunks 2000]
// [--turns 60]`. Writes bench/results/harness.json. Never a test: nothing here asserts a time.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { createOpencodeClient, type OpencodeClient } from '#daemon/harness/opencode/client.ts';
import { messageIds } from '#daemon/harness/opencode/message-id.ts';
import { PAUSE_MS } from '#daemon/host/process/collect-when-idle.ts';
import { CANARY, makeRig, type Rig } from '#test/harness/rig.ts';
import { asProcess, type DaemonProcess } from '#test/support/daemon-process.ts';
import { quantile } from '#test/support/statistics.ts';
import { until } from '#test/support/until.ts';
import { compileDaemon } from './harness/compiled-code.ts';
import { above, daemonMemory, memoryOf } from './harness/memory.ts';

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    chunks: { type: 'string', default: '2000' },
    slow: { type: 'string', default: '150' },
    turns: { type: 'string', default: '60' },
  },
});
const [rounds, chunks, slow, turns] = [options.rounds, options.chunks, options.slow, options.turns].map(Number) as [
  number,
  number,
  number,
  number,
];

const round = (value: number, digits = 2): number => Number(value.toFixed(digits));
/** When the answer had how many characters; `askedAt`: when the model was asked. */
type Arrivals = { askedAt: number; characters: number; points: { at: number; characters: number }[] };
const arrivals = (): Arrivals => ({ askedAt: Number.NaN, characters: 0, points: [] });
const arrive = (to: Arrivals, delta: unknown): void => {
  if (typeof delta !== 'string') return;
  to.characters += delta.length;
  to.points.push({ at: performance.now(), characters: to.characters });
};
/**
 * Characters per millisecond from the question to the last of the answer. From the first character on would be no measure:
 * the provider is in this process too, and what came while it wrote is read in one go.
 */
const rateOf = ({ askedAt, characters, points }: Arrivals): number =>
  characters / ((points.at(-1)?.at ?? Number.NaN) - askedAt);

type Server = Readonly<{ client: OpencodeClient; origin: string; password: string; pid: number }>;

/** The server below a daemon. */
const serverOf = async (daemon: DaemonProcess): Promise<Server> => {
  const { pid, port } = (await daemon.health()).harness.details as { pid: number; port: number };
  const environment = readFileSync(`/proc/${pid}/environ`, 'latin1');
  const password = /OPENCODE_SERVER_PASSWORD=([^\0]+)/.exec(environment)?.[1] ?? '';
  const origin = `http://127.0.0.1:${port}`;
  return { client: createOpencodeClient(origin, password), origin, password, pid };
};

/** OpenCode alone: the same program with the same configuration, that calls the provider itself. */
const startBare = async (like: Server, rig: Rig, folder: string): Promise<Server & { child: ChildProcess }> => {
  const lines = readFileSync(`/proc/${like.pid}/environ`, 'latin1').split('\0').filter(Boolean);
  const env = Object.fromEntries(lines.map((line) => line.split(/=(.*)/s).slice(0, 2))) as Record<string, string>;
  env['OPENCODE_CONFIG_CONTENT'] = (env['OPENCODE_CONFIG_CONTENT'] ?? '').replace(
    /http:\/\/127\.0\.0\.1:\d+\/v1/,
    `${rig.provider.url}`,
  );
  Object.assign(env, {
    BEEUNI_RELAY_TOKEN: CANARY.providerKey,
    XDG_DATA_HOME: join(folder, 'share'),
    BEEUNI_RUN: 'bare',
  });
  const program = readFileSync(`/proc/${like.pid}/cmdline`, 'latin1').split('\0')[0] ?? '';
  const args = ['serve', '--hostname', '127.0.0.1', '--port', '0', '--print-logs', '--log-level', 'INFO'];
  const child = spawn(program, args, { cwd: rig.folders.workspace, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data: Buffer) => (output += data.toString()));
  const origin = await until(
    'the bare server listens',
    () => /listening on (http:\/\/127\.0\.0\.1:\d+)/.exec(output)?.[1],
    { describe: () => output.slice(-2_000) },
  );
  const { password } = like;
  return { client: createOpencodeClient(origin, password), origin, password, pid: child.pid ?? 0, child };
};

const nextId = messageIds(Date.now, Math.random);

const folder = mkdtempSync(join(tmpdir(), 'beeuni-bench-'));
const compiled = await compileDaemon(folder);
const rig = await makeRig({ launch: asProcess(compiled.main) });
const daemon = rig.start(compiled.environment);
try {
  await until('the daemon is ready', async () => (await daemon.health()).runtimeReady);
  const ours = await serverOf(daemon);
  const bare = await startBare(ours, rig, folder);
  const session = await bare.client.createSession('bare');

  /** One turn on the bare server, read from its own stream. */
  const runBare = async (text: string): Promise<Arrivals> => {
    const stop = new AbortController();
    const got = arrivals();
    const frames = await bare.client.events(stop.signal);
    const messageId = nextId();
    const asked = rig.provider.nextRequest().then(() => {
      got.askedAt = performance.now();
    });
    await bare.client.prompt(session, { messageId, agent: 'dev', model: 'scripted/large', texts: [text] });
    for await (const { type, properties } of frames) {
      if (type === 'message.part.delta') arrive(got, properties['delta']);
      if (type === 'session.idle') break;
    }
    stop.abort();
    await asked;
    return got;
  };

  let stored = arrivals();
  rig.controlPlane.onStored((event) => {
    if (event.type === 'message.part.delta') arrive(stored, event.data['delta']);
  });
  /** One turn through daemon and control plane. */
  const runOurs = async (text: string): Promise<Arrivals> => {
    const got = arrivals();
    stored = got;
    const asked = rig.provider.nextRequest().then(() => {
      got.askedAt = performance.now();
    });
    const turnId = rig.controlPlane.prompt(text);
    await daemon.call('POST', '/beeuni/nudge', rig.controlPlane.daemonCredential, { reason: 'prompt' });
    await rig.controlPlane.event('turn.ended', turnId);
    await until('the daemon is idle', async () => (await daemon.health()).activity.state === 'Idle');
    await asked;
    return got;
  };

  for (let at = 0; at < 3; at += 1) {
    await runBare('@@stream 200 0');
    await runOurs('@@stream 200 0');
  }
  const memoryNow = () => {
    const [bareHarness, own, harness] = [memoryOf(bare.pid), daemonMemory(daemon.pid), memoryOf(ours.pid)];
    return { bareHarness, harness, daemon: own, aboveBareHarness: above(memoryOf(daemon.pid, ours.pid), bareHarness) };
  };
  const memory = memoryNow();

  const fast = `@@stream ${chunks} 0`;
  const rates: Record<'floor' | 'ours', number[]> = { floor: [], ours: [] };
  for (let at = 0; at < rounds; at += 1) {
    for (const which of ['floor', 'ours', 'ours', 'floor'] as const) {
      rates[which].push(rateOf(await (which === 'floor' ? runBare(fast) : runOurs(fast))));
    }
  }

  // The same server's own stream, read beside the daemon: what each event waits longer on its way through both.
  const added: number[] = [];
  for (let at = 0; at < rounds; at += 1) {
    const stop = new AbortController();
    const direct = arrivals();
    const frames = await ours.client.events(stop.signal);
    const reading = (async () => {
      for await (const { type, properties } of frames) {
        if (type === 'message.part.delta') arrive(direct, properties['delta']);
        if (type === 'session.idle') return;
      }
    })();
    const through = await runOurs(`@@stream ${slow} 20`);
    await reading;
    stop.abort();
    for (const { at: came, characters } of direct.points) {
      const point = through.points.find((each) => each.characters >= characters);
      if (point !== undefined) added.push(point.at - came);
    }
  }

  const script = '@@tool bash {"command":"true","description":"d"}\n@@say done';
  const growth: number[] = [];
  for (let at = 0; at < turns; at += 1) {
    await runOurs(script);
    if (at === Math.floor(turns / 6) || at === turns - 1) growth.push(daemonMemory(daemon.pid).rssMb);
  }
  const afterTurns = { daemon: daemonMemory(daemon.pid), harness: memoryOf(ours.pid) };
  // The daemon has used the pause by then.
  await sleep(3 * PAUSE_MS);
  const afterPause = daemonMemory(daemon.pid);
  bare.child.kill('SIGKILL');

  const pi = await promisify(execFile)(process.execPath, [
    fileURLToPath(new URL('harness/daemon-with-pi.ts', import.meta.url)),
    JSON.stringify(compiled),
  ]);
  const result = {
    cores: availableParallelism(),
    rounds,
    chunks,
    rate: {
      unit: 'characters of the answer per millisecond',
      floor: round(quantile(rates.floor, 0.5)),
      ours: round(quantile(rates.ours, 0.5)),
      ratio: round(quantile(rates.ours, 0.5) / quantile(rates.floor, 0.5)),
    },
    addedMs: { p50: round(quantile(added, 0.5)), p90: round(quantile(added, 0.9)), p99: round(quantile(added, 0.99)) },
    memory,
    afterTurns: { turns, ...afterTurns, afterPause, daemonGrowthMb: round((growth[1] ?? 0) - (growth[0] ?? 0), 1) },
    pi: JSON.parse(pi.stdout.trim().split('\n').at(-1) ?? '{}'),
  };
  mkdirSync('bench/results', { recursive: true });
  writeFileSync('bench/results/harness.json', `${JSON.stringify(result, null, 2)}\n`);
  console.log(JSON.stringify(result, null, 2));
} finally {
  await rig.stop();
  rmSync(folder, { recursive: true, force: true });
}
process.exit(0);
