// What a machine lacks for each kind of cluster, in words for a person. Looks, and changes nothing.
import { execFileSync } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { kubeBinaryIsBuilt } from './binary.ts';

/** Kinds of cluster: `apiserver` has no node and needs no root, `node` runs pods. */
export type ClusterKind = 'apiserver' | 'node';

const programs: Readonly<Record<ClusterKind, readonly string[]>> = {
  apiserver: ['openssl', 'flock', 'setpriv'],
  node: [
    'openssl',
    'flock',
    'bash',
    'containerd',
    'ctr',
    'runc',
    'iptables',
    'ip',
    'nsenter',
    'setsid',
    'unshare',
    'sysctl',
  ],
};

const cniPlugins = ['ptp', 'host-local', 'portmap', 'loopback'];

/** Folder with the CNI plug-ins; undefined when no known folder has all that we use. */
export function findCniBinDir(): string | undefined {
  return ['/usr/lib/cni', '/opt/cni/bin', '/usr/libexec/cni'].find((dir) =>
    cniPlugins.every((plugin) => existsSync(join(dir, plugin))),
  );
}

/** One sentence per thing that the machine lacks for this kind of cluster; empty when it can run. */
export function missingPrerequisites(kind: ClusterKind = 'node'): string[] {
  if (process.platform !== 'linux') return [`the test cluster runs on Linux only, this is ${process.platform}`];
  const missing = programs[kind]
    .filter((program) => !isOnPath(program))
    .map((program) => `the program ${program} is not installed`);
  if (!kubeBinaryIsBuilt() && !isOnPath('go')) missing.push('Go is not installed, and Kubernetes is not built yet');
  if (kind === 'apiserver') return missing;
  if (process.getuid?.() !== 0) missing.push('a node needs root');
  if (!findCniBinDir()) missing.push(`the CNI plug-ins (${cniPlugins.join(', ')}) are not installed`);
  if (missing.length > 0) return missing;
  return probes.flatMap(({ args, lacks }) => (succeeds('unshare', args) ? [] : [lacks]));
}

const probes = [
  {
    args: ['--net', '--mount', '--pid', '--fork', 'true'],
    lacks: 'network, mount and PID namespaces cannot be made here',
  },
  {
    args: [
      '--mount',
      'sh',
      '-c',
      'mount -t tmpfs t /mnt && cd /mnt && mkdir u w && mount -t overlay o -o lowerdir=/var/lib,upperdir=u,workdir=w /var/lib',
    ],
    lacks: 'overlay file systems cannot be mounted here',
  },
  {
    args: [
      '--net',
      'iptables',
      '-w',
      '-t',
      'mangle',
      '-A',
      'FORWARD',
      '-m',
      'conntrack',
      '--ctstate',
      'NEW',
      '-j',
      'NFQUEUE',
      '--queue-num',
      '1',
    ],
    lacks: 'the kernel lacks the iptables target NFQUEUE or connection tracking',
  },
] as const;

/**
 * For the `skip` option of a test: false when this kind of cluster can run, else the reason.
 * Throws instead of giving a reason when BEEUNI_REQUIRE_TIERS lists `tier` (comma-separated), or is `1`.
 */
export function skipReason(kind: ClusterKind, tier: string): string | false {
  const missing = missingPrerequisites(kind);
  if (missing.length === 0) return false;
  const required = (process.env['BEEUNI_REQUIRE_TIERS'] ?? '').split(',');
  const reason = missing.join('; ');
  if (required.includes(tier) || required.includes('1')) throw new Error(`tier ${tier} is required, but ${reason}`);
  return reason;
}

function isOnPath(program: string): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((dir) => {
    try {
      accessSync(join(dir, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

function succeeds(program: string, args: readonly string[]): boolean {
  try {
    execFileSync(program, args, { stdio: 'ignore', timeout: 10_000 });
    return true;
  } catch {
    return false;
  }
}
