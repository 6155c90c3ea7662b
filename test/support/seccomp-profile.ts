// The seccomp profile that containerd gives a container whose pod says RuntimeDefault, asked of containerd itself: one is started
// for a moment in a folder of its own, and makes a container that never runs. Must not know what is tested.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from './until.ts';

type Spec = Readonly<{
  process: Readonly<{ capabilities: Readonly<{ bounding?: readonly string[] }> }>;
  linux: Readonly<{ seccomp?: object }>;
}>;

/** What the default specification of `ctr` grants, which a pod drops: the profile opens further calls with some of them. */
const CAPABILITIES =
  'CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP NET_BIND_SERVICE SYS_CHROOT KILL AUDIT_WRITE';

/** The profile of a container without any capability, in the form of an OCI bundle. Throws when containerd gives none. */
export const runtimeDefaultSeccomp = async (): Promise<object> => {
  const folder = mkdtempSync(join(tmpdir(), 'beeuni-containerd-'));
  const socket = join(folder, 'socket');
  const config = join(folder, 'config.toml');
  const ctr = (...args: string[]): string =>
    execFileSync('ctr', ['--address', socket, ...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  mkdirSync(join(folder, 'files'));
  writeFileSync(
    config,
    `version = 2
root = ${JSON.stringify(join(folder, 'root'))}
state = ${JSON.stringify(join(folder, 'state'))}
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
address = ${JSON.stringify(socket)}
`,
  );
  const containerd = spawn('setpriv', ['--pdeathsig', 'KILL', '--', 'containerd', '--config', config], {
    stdio: 'ignore',
  });
  const ended = once(containerd, 'exit');
  try {
    await until('containerd answers', () => {
      try {
        return ctr('version');
      } catch {
        return undefined;
      }
    });
    const dropped = CAPABILITIES.split(' ').flatMap((name) => ['--cap-drop', `CAP_${name}`]);
    ctr('containers', 'create', '--seccomp', ...dropped, '--rootfs', join(folder, 'files'), 'profile', 'true');
    const told = JSON.parse(ctr('containers', 'info', '--spec', 'profile')) as Spec;
    const { bounding = [] } = told.process.capabilities;
    const { seccomp } = told.linux;
    if (seccomp === undefined || bounding.length > 0) {
      throw new Error(`containerd gives no profile for a container without capabilities; left: ${bounding.join(' ')}`);
    }
    return seccomp;
  } finally {
    containerd.kill('SIGKILL');
    await ended;
    rmSync(folder, { recursive: true, force: true });
  }
};
