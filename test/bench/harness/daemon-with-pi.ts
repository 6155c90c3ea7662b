// Memory of a daemon with Pi in it beside a process that has only loaded Pi: its package, and the files that the thread loads.
// Gets the compiled daemon as JSON. Prints one line of JSON. For ../harness.ts.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { makeRig } from '#test/harness/rig.ts';
import { asProcess } from '#test/support/daemon-process.ts';
import { until } from '#test/support/until.ts';
import { filesOfThread, packageEntry } from './bare-pi.ts';
import type { CompiledDaemon } from './compiled-code.ts';
import { above, daemonMemory, type Memory, memoryOf } from './memory.ts';

const TURNS = 10;
const compiled = JSON.parse(process.argv[2] ?? '') as CompiledDaemon;

/** Memory of a process that has loaded one module and waits. */
const memoryWith = async (module: URL): Promise<Memory> => {
  const bare = spawn(
    process.execPath,
    [
      '--input-type=module',
      '-e',
      "await import(process.argv[1]); console.log('loaded'); setInterval(() => {}, 1e6)",
      module.href,
    ],
    {
      env: { PATH: process.env['PATH'] ?? '', PI_OFFLINE: '1', PI_TELEMETRY: '0', ...compiled.environment },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  await once(bare.stdout, 'data');
  const memory = memoryOf(bare.pid ?? 0);
  bare.kill('SIGKILL');
  return memory;
};
const bareHarness = await memoryWith(packageEntry());
const bareFiles = await memoryWith(filesOfThread());
const rig = await makeRig({ launch: asProcess(compiled.main) });
try {
  const daemon = rig.start({ BEEUNI_HARNESS: 'pi', ...compiled.environment });
  await until('the daemon is ready', async () => (await daemon.health()).runtimeReady);
  const ready = daemonMemory(daemon.pid);
  for (let at = 0; at < TURNS; at += 1) {
    const turnId = rig.controlPlane.prompt('@@tool bash {"command":"true"}\n@@say done');
    await daemon.call('POST', '/beeuni/nudge', rig.controlPlane.daemonCredential, { reason: 'prompt' });
    await rig.controlPlane.event('turn.ended', turnId);
    await until('the daemon is idle', async () => (await daemon.health()).activity.state === 'Idle');
  }
  console.log(
    JSON.stringify({
      bareHarness,
      bareFiles,
      daemon: ready,
      aboveBareHarness: above(ready, bareHarness),
      aboveBareFiles: above(ready, bareFiles),
      afterTurns: { turns: TURNS, daemon: daemonMemory(daemon.pid) },
    }),
  );
} finally {
  await rig.stop();
}
process.exit(0);
