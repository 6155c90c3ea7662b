// API writes per session from create to Ready, conflicts, and writes in a resync; beside the hand script's minimum,
// the children and two status writes. A real API server behind the recording proxy, a node player for the pods.
// `node test/bench/controller.ts [--sessions 50]`. Writes bench/results/controller.json; nothing here asserts a time.
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { applyFile, startTestApi } from '#test/support/kube.ts';
import { startOperatorBench, writeLine } from '#test/support/operator-bench.ts';

const { values: options } = parseArgs({ options: { sessions: { type: 'string', default: '50' } } });
const count = Number(options.sessions);

/** What nobody can do without: finalizer, network policy, volume, pod, the binding, and Ready. */
const HAND_SCRIPT_WRITES = 6;

const api = await startTestApi();
await applyFile(api.admin.client, 'crds/projects.yaml');
await applyFile(api.admin.client, 'crds/sessions.yaml');
const bench = await startOperatorBench(api);
try {
  // The start limiter would add one write for each session that waits its turn; it is measured in no goal.
  const limits = { maxConcurrentStarts: count, maxConcurrentStartsPerProject: count };
  const operator = await bench.startOperator({ limits });
  await bench.project({ limits: { maxRunning: count, maxSessions: count } });
  const mark = bench.mark();
  const startedAt = performance.now();
  const names = Array.from({ length: count }, (_, index) => `bench-${index}`);
  for (const name of names) await bench.createSession(name);
  for (const name of names)
    await bench.untilSession(
      name,
      'Ready',
      ({ status }) =>
        status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') === true,
    );
  const elapsedMs = performance.now() - startedAt;
  const writes = bench.writesSince(mark);
  const byLine = new Map<string, number>();
  for (const call of writes) byLine.set(writeLine(call), (byLine.get(writeLine(call)) ?? 0) + 1);
  const conflicts = await operator.conflicts();
  await operator.stop();

  const resyncs: number[] = [];
  for (let round = 0; round < 3; round += 1) {
    const before = bench.mark();
    const again = await bench.startOperator({ limits });
    const passes = async (): Promise<number> => (await again.passes('done')) + (await again.passes('delayed'));
    while ((await passes()) < count) await new Promise((resolve) => setTimeout(resolve, 100));
    await again.stop();
    resyncs.push(bench.writesSince(before).length);
  }

  const perSession = writes.length / count;
  console.log(
    `${count} sessions converged in ${(elapsedMs / 1000).toFixed(1)} s (creates included, one after the other)`,
  );
  for (const [line, total] of [...byLine].sort((a, b) => b[1] - a[1]))
    console.log(`  ${line.padEnd(44)} ${(total / count).toFixed(2)} per session`);
  console.log(
    `writes per session ${perSession.toFixed(2)}, hand script ${HAND_SCRIPT_WRITES}, ratio ${(perSession / HAND_SCRIPT_WRITES).toFixed(3)}`,
  );
  console.log(`answers 409: ${conflicts}; writes in three resyncs: ${resyncs.join(', ')}`);
  mkdirSync('bench/results', { recursive: true });
  writeFileSync(
    'bench/results/controller.json',
    JSON.stringify(
      {
        cores: availableParallelism(),
        node: process.version,
        count,
        elapsedMs,
        byLine: [...byLine],
        conflicts,
        resyncs,
      },
      null,
      2,
    ),
  );
} finally {
  await bench.stop();
  await api.stop();
}
