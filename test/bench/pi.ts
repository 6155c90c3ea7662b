// Pi in the daemon's thread beside Pi bare: start to ready beside the import alone, memory, first token, sixty turns.
// Interleaved: floor, ours, ours, floor. `node test/bench/pi.ts [--rounds 3]`. Writes bench/results/pi.json.
// Never a test: nothing here asserts a time.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { piModule } from '#daemon/harness/pi/adapter.ts';
import { makePiRig } from '#test/support/pi.ts';
import { median } from '#test/support/statistics.ts';

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

/** Pi as a person would load it: one import, nothing else. */
const floor = async (): Promise<Record<string, number>> => {
  const before = rssMb();
  const [begin, beginCpu] = [performance.now(), cpuMs()];
  await import(piModule()?.href ?? '');
  return { startMs: performance.now() - begin, startCpuMs: cpuMs() - beginCpu, beforeMb: before, rssMb: rssMb() };
};

/** The adapter: ready means that a prompt would run. */
const ours = async (): Promise<Record<string, number>> => {
  const before = rssMb();
  const rig = await makePiRig();
  // The adapter has begun to start its thread; what the rig itself needed before is not counted.
  const [begin, beginCpu] = [performance.now(), cpuMs()];
  await rig.ready();
  const [startMs, startCpuMs] = [performance.now() - begin, cpuMs() - beginCpu];
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

if (options.run !== undefined) {
  console.log(JSON.stringify(await (options.run === 'floor' ? floor() : ours())));
  process.exit(0);
}

const cache = mkdtempSync(join(tmpdir(), 'beeuni-bench-cache-'));
const run = async (which: string): Promise<Record<string, number>> => {
  const env = { ...process.env, NODE_COMPILE_CACHE: cache, PI_OFFLINE: '1', PI_TELEMETRY: '0' };
  const self = fileURLToPath(import.meta.url);
  const { stdout } = await promisify(execFile)(process.execPath, [self, '--run', which, '--turns', options.turns], {
    env,
  });
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '{}') as Record<string, number>;
};

await run('floor');
await run('ours');
const samples: Record<'floor' | 'ours', Record<string, number>[]> = { floor: [], ours: [] };
for (let round = 0; round < Number(options.rounds); round += 1) {
  for (const which of ['floor', 'ours', 'ours', 'floor'] as const) samples[which].push(await run(which));
}
rmSync(cache, { recursive: true, force: true });
const medians = (which: 'floor' | 'ours') =>
  Object.fromEntries(
    Object.keys(samples[which][0] ?? {}).map((key) => [
      key,
      Math.round(median(samples[which].map((each) => each[key] ?? 0))),
    ]),
  );
const ratioOf = (key: string): number => {
  const of = (which: 'floor' | 'ours') => median(samples[which].map((each) => each[key] ?? 0));
  return Number((of('ours') / of('floor')).toFixed(2));
};
const result = {
  cores: availableParallelism(),
  rounds: Number(options.rounds),
  turns: Number(options.turns),
  floor: medians('floor'),
  ours: medians('ours'),
  startRatio: ratioOf('startMs'),
  startCpuRatio: ratioOf('startCpuMs'),
};
mkdirSync('bench/results', { recursive: true });
writeFileSync('bench/results/pi.json', `${JSON.stringify(result, null, 2)}\n`);
console.log(JSON.stringify(result, null, 2));
