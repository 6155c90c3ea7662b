// Pi in the daemon's thread beside Pi bare: start to ready beside the import alone, memory, first token, sixty turns.
// Floor: the import of Pi's package, as a person's program has it. Ours loads other files of the same package, so beside it stands
// the import of just these files as well: what is above it is what the thread and the conversation cost.
// Interleaved: floor, files, ours, ours, files, floor. `node test/bench/pi.ts [--rounds 3]`. Writes bench/results/pi.json.
// Never a test: nothing here asserts a time.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { makePiRig, type PiRig } from '#test/support/pi.ts';
import { median } from '#test/support/statistics.ts';
import { filesOfThread, packageEntry } from './harness/bare-pi.ts';

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    run: { type: 'string' },
    turns: { type: 'string', default: '60' },
  },
});

const rssMb = (): number => Math.round(process.memoryUsage().rss / 1_048_576);
/** CPU time of this process so far; on a busy machine it says more than the clock. */
const cpuMs = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
};

/** Loads one module and nothing else. */
const importOf = async (url: URL): Promise<Record<string, number>> => {
  const before = rssMb();
  const [begin, beginCpu] = [performance.now(), cpuMs()];
  await import(url.href);
  return { startMs: performance.now() - begin, startCpuMs: cpuMs() - beginCpu, beforeMb: before, rssMb: rssMb() };
};

/** The adapter, from its call on: ready means that a prompt would run. */
const ours = async (): Promise<Record<string, number>> => {
  const before = rssMb();
  const ready = Promise.withResolvers<Readonly<{ at: number; cpu: number }>>();
  let [begin, beginCpu] = [0, 0];
  let started: PiRig | undefined;
  const look = (): void => {
    if (started?.harness().health().state === 'ok') ready.resolve({ at: performance.now(), cpu: cpuMs() });
  };
  const rig = await makePiRig({
    // What the rig itself needs before is not counted.
    starting: () => {
      [begin, beginCpu] = [performance.now(), cpuMs()];
    },
    healthChanged: look,
  });
  started = rig;
  look();
  const { at, cpu } = await ready.promise;
  const [startMs, startCpuMs] = [at - begin, cpu - beginCpu];
  const readyMb = rssMb();
  const firstToken = async (text: string): Promise<number> => {
    const from = rig.events.length;
    const at = performance.now();
    const turn = rig.submit(text);
    while (!rig.events.slice(from).some(({ type }) => type === 'message.part.delta')) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    const took = performance.now() - at;
    await turn;
    return took;
  };
  const firstTokenMs = await firstToken('@@say hello');
  const warm: number[] = [];
  for (let n = 0; n < 10; n += 1) warm.push(await firstToken('@@say hello again'));
  const turnsBegin = performance.now();
  for (let n = 0; n < Number(options.turns); n += 1) {
    await rig.submit('@@tool bash {"command":"true"}\n@@tool read {"path":"a.txt"}\n@@say done');
  }
  const turnMs = (performance.now() - turnsBegin) / Number(options.turns);
  const afterMb = rssMb();
  await rig.stop();
  return {
    startMs,
    startCpuMs,
    beforeMb: before,
    rssMb: readyMb,
    firstTokenMs,
    warmFirstTokenMs: median(warm),
    turnMs,
    afterTurnsMb: afterMb,
  };
};

const KINDS = ['floor', 'files', 'ours'] as const;
type Kind = (typeof KINDS)[number];
const PROGRAMS: Readonly<Record<Kind, () => Promise<Record<string, number>>>> = {
  floor: () => importOf(packageEntry()),
  files: () => importOf(filesOfThread()),
  ours,
};
if (options.run !== undefined) {
  console.log(JSON.stringify(await PROGRAMS[options.run as Kind]()));
  process.exit(0);
}

const cache = mkdtempSync(join(tmpdir(), 'beeuni-bench-cache-'));
const run = async (which: Kind): Promise<Record<string, number>> => {
  const env = { ...process.env, NODE_COMPILE_CACHE: cache, PI_OFFLINE: '1', PI_TELEMETRY: '0' };
  const self = fileURLToPath(import.meta.url);
  const { stdout } = await promisify(execFile)(process.execPath, [self, '--run', which, '--turns', options.turns], {
    env,
  });
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '{}') as Record<string, number>;
};

for (const which of KINDS) await run(which);
const samples: Record<Kind, Record<string, number>[]> = { floor: [], files: [], ours: [] };
for (let round = 0; round < Number(options.rounds); round += 1) {
  for (const which of [...KINDS, ...KINDS.toReversed()]) samples[which].push(await run(which));
}
rmSync(cache, { recursive: true, force: true });
const medians = (which: Kind) =>
  Object.fromEntries(
    Object.keys(samples[which][0] ?? {}).map((key) => [
      key,
      Math.round(median(samples[which].map((each) => each[key] ?? 0))),
    ]),
  );
/** Median of the ratios of runs from the same half of a round. */
const ratioOf = (key: string, beside: Kind): number =>
  Number(median(samples.ours.map((each, at) => (each[key] ?? 0) / (samples[beside][at]?.[key] ?? 0))).toFixed(2));
const result = {
  cores: availableParallelism(),
  rounds: Number(options.rounds),
  turns: Number(options.turns),
  floor: medians('floor'),
  files: medians('files'),
  ours: medians('ours'),
  startRatio: ratioOf('startMs', 'floor'),
  startCpuRatio: ratioOf('startCpuMs', 'floor'),
  startRatioOfFiles: ratioOf('startMs', 'files'),
  startCpuRatioOfFiles: ratioOf('startCpuMs', 'files'),
};
mkdirSync('bench/results', { recursive: true });
writeFileSync('bench/results/pi.json', `${JSON.stringify(result, null, 2)}\n`);
console.log(JSON.stringify(result, null, 2));
