// Memory of a daemon with Pi in it beside a process that has only loaded Pi. Prints one line of JSON. For ../harness.ts.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { piModule } from '#daemon/harness/pi/adapter.ts';
import { makeRig } from '#test/harness/rig.ts';
import { until } from '#test/support/until.ts';

const TURNS = 10;
const rssMbOf = (pid: number | 'self'): number =>
  Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024);

const bareMb = Number(
  execFileSync(
    process.execPath,
    [
      '--input-type=module',
      '-e',
      `await import(process.argv[1]); const { readFileSync } = await import('node:fs');
       console.log(Math.round(Number(/VmRSS:\\s+(\\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1]) / 1024))`,
      piModule()?.href ?? '',
    ],
    { encoding: 'utf8', env: { PATH: process.env['PATH'] ?? '', PI_OFFLINE: '1', PI_TELEMETRY: '0' } },
  ),
);
const rig = await makeRig();
try {
  const daemon = rig.start({ BEEUNI_HARNESS: 'pi' });
  await until('the daemon is ready', async () => (await daemon.health()).runtimeReady);
  const readyMb = rssMbOf(daemon.pid);
  for (let at = 0; at < TURNS; at += 1) {
    const turnId = rig.controlPlane.prompt('@@tool bash {"command":"true"}\n@@say done');
    await daemon.call('POST', '/beeuni/nudge', rig.controlPlane.daemonCredential, { reason: 'prompt' });
    await rig.controlPlane.event('turn.ended', turnId);
    await until('the daemon is idle', async () => (await daemon.health()).activity.state === 'Idle');
  }
  console.log(JSON.stringify({ bareMb, readyMb, aboveBareMb: readyMb - bareMb, afterTurnsMb: rssMbOf(daemon.pid) }));
} finally {
  await rig.stop();
}
process.exit(0);
