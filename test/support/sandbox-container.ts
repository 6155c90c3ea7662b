// The sandbox image as a container of its own, without a cluster: runc runs it with what the operator's pod says about
// user, mounts, environment, read-only root, privileges, seccomp and memory. Only the network is this machine's, so that the
// control plane of a test is at hand. Must not know what is tested.
import { execFileSync, spawn } from 'node:child_process';
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { parseQuantity } from '#operator/runtime/quantity.ts';
import { chooseStart } from '#operator/session/choose-start.ts';
import { desiredPodSpec } from '#operator/session/desired-pod.ts';
import { cacheDir } from '#test/cluster/cache-dir.ts';
import { withLock } from '#test/cluster/lock.ts';
import { blobPath } from '#test/cluster/oci-layout.ts';
import { type ImageParts, readParts, unpackArchive } from '#tools/images/layout.ts';
import { ensureImages } from '#tools/images.ts';
import type { Launch, SandboxFolders } from './daemon-process.ts';
import { runtimeDefaultSeccomp } from './seccomp-profile.ts';
import { anInstallation, aProject, aProjectFact, aSession } from './session-fixtures.ts';

const DAY_MS = 86_400_000;

/** Turns the marks of deleted files in a layer into those of overlay file systems. */
const convertWhiteouts = (layer: string): void => {
  for (const entry of readdirSync(layer, { recursive: true, withFileTypes: true })) {
    if (!entry.name.startsWith('.wh.')) continue;
    if (entry.name === '.wh..wh..opq')
      throw new Error(`a layer of the image hides a whole folder: ${entry.parentPath}`);
    rmSync(join(entry.parentPath, entry.name));
    execFileSync('mknod', [join(entry.parentPath, entry.name.slice('.wh.'.length)), 'c', '0', '0']);
  }
};

/** Folders of the image's layers, the lowest first; a layer is unpacked once, and goes when nobody used it for a day. */
const unpackLayers = (parts: ImageParts, blobs: string): readonly string[] => {
  const root = cacheDir('images', 'unpacked');
  const now = new Date();
  const folders = parts.layers.map(({ digest }) => {
    const folder = join(root, digest.replace('sha256:', ''));
    if (!existsSync(folder)) {
      const unfinished = `${folder}.new`;
      rmSync(unfinished, { recursive: true, force: true });
      mkdirSync(unfinished);
      execFileSync('tar', ['-xf', blobPath(blobs, digest), '--numeric-owner', '-C', unfinished]);
      convertWhiteouts(unfinished);
      renameSync(unfinished, folder);
    }
    utimesSync(folder, now, now);
    return folder;
  });
  for (const name of readdirSync(root)) {
    const path = join(root, name);
    if (now.getTime() - statSync(path).mtimeMs > DAY_MS) rmSync(path, { recursive: true, force: true });
  }
  return folders;
};

/** Layers and configuration of the sandbox image, built first when its sources have changed. */
const openImage = async (log: (line: string) => void) => {
  const { sandbox } = await ensureImages(log);
  return withLock(join(cacheDir('images'), 'unpacked.lock'), async () => {
    if (statSync(sandbox.archive).isDirectory()) {
      const parts = readParts(sandbox.archive);
      return { config: parts.config.config, layers: unpackLayers(parts, sandbox.archive) };
    }
    const work = mkdtempSync(join(tmpdir(), 'beeuni-image-'));
    try {
      const parts = await unpackArchive(sandbox.archive, work);
      return { config: parts.config.config, layers: unpackLayers(parts, work) };
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
  });
};

type PodSpec = ReturnType<typeof desiredPodSpec>;

/** What the operator would make for a session with this harness. */
const podOf = (harness: string): PodSpec => {
  const session = aSession();
  const installation = anInstallation();
  const project = aProject({ features: { piHarness: harness === 'pi' ? 'Enabled' : 'Inherit' } });
  const choice = chooseStart({ session, project, projectFact: aProjectFact(), volume: undefined, installation });
  if (choice?.harness.id !== harness) throw new Error(`the operator chooses ${choice?.harness.id}, not ${harness}`);
  return desiredPodSpec({ session, project, choice, installation, version: '0.1.0' });
};

/** Where the folders of a sandbox are in its container, by the names that volumes and sub-paths have in the pod. */
const sourcesOf = (folders: SandboxFolders): Readonly<Record<string, string>> => ({
  'data/workspace': folders.workspace,
  'data/daemon': folders.data,
  'data/beaver': join(folders.root, 'beaver'),
  'scratch/config': folders.config,
  'scratch/home': folders.home,
  'scratch/tmp': folders.temporary,
  'token/': dirname(folders.tokenFile),
});

const chownAll = (path: string, id: number): void => {
  execFileSync('chown', ['-R', '--no-dereference', `${id}:${id}`, path]);
};

/** A bundle for runc. */
const bundleOf = (
  pod: PodSpec,
  image: Awaited<ReturnType<typeof openImage>>,
  folders: SandboxFolders,
  environment: Readonly<Record<string, string>>,
  controlGroup: string,
  seccomp: object,
): object => {
  const [container] = pod.containers;
  const user = pod.securityContext as Readonly<{ runAsUser: number; runAsGroup: number; fsGroup: number }>;
  if (container === undefined) throw new Error('the pod has no container');
  const { type } = pod.securityContext.seccompProfile;
  if (type !== 'RuntimeDefault') throw new Error(`no container is made here for the seccomp profile ${type}`);
  const sources = sourcesOf(folders);
  const memoryBytes = Number((parseQuantity(container.resources.limits?.['memory'] ?? '1Gi') ?? 0n) / 1_000_000_000n);
  const fixed = container.env.flatMap((entry) => ('value' in entry ? [[entry.name, entry.value] as const] : []));
  const env = {
    ...Object.fromEntries((image.config?.Env ?? []).map((line) => line.split(/=(.*)/s).slice(0, 2))),
    ...Object.fromEntries(fixed),
    BEEUNI_MEMORY_LIMIT_BYTES: String(memoryBytes),
    ...environment,
  };
  type Started = Readonly<{ Entrypoint: string[]; Cmd?: string[]; WorkingDir: string }>;
  const { Entrypoint, Cmd = [], WorkingDir } = image.config as Started;
  const special = (destination: string, type: string, options: readonly string[]) => ({
    destination,
    type,
    source: type,
    options,
  });
  return {
    ociVersion: '1.0.2',
    process: {
      user: { uid: user.runAsUser, gid: user.runAsGroup, additionalGids: [user.fsGroup] },
      args: [...Entrypoint, ...Cmd],
      env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
      cwd: WorkingDir,
      capabilities: {},
      noNewPrivileges: !container.securityContext.allowPrivilegeEscalation,
    },
    root: { path: 'root', readonly: container.securityContext.readOnlyRootFilesystem },
    hostname: 'sandbox',
    mounts: [
      special('/proc', 'proc', ['nosuid', 'noexec', 'nodev']),
      special('/dev', 'tmpfs', ['nosuid', 'strictatime', 'mode=755', 'size=65536k']),
      special('/dev/pts', 'devpts', ['nosuid', 'noexec', 'newinstance', 'ptmxmode=0666', 'mode=0620', 'gid=5']),
      special('/dev/shm', 'tmpfs', ['nosuid', 'noexec', 'nodev', 'mode=1777', 'size=65536k']),
      ...container.volumeMounts.map(({ name, mountPath, ...more }) => ({
        destination: mountPath,
        type: 'bind',
        source: sources[`${name}/${'subPath' in more ? more.subPath : ''}`],
        options: ['bind', 'nosuid', 'nodev', 'readOnly' in more && more.readOnly === true ? 'ro' : 'rw'],
      })),
    ],
    linux: {
      namespaces: ['pid', 'ipc', 'uts', 'mount'].map((type) => ({ type })),
      cgroupsPath: controlGroup,
      resources: { memory: { limit: memoryBytes } },
      seccomp,
      maskedPaths: [
        '/proc/kcore',
        '/proc/keys',
        '/proc/timer_list',
        '/proc/sched_debug',
        '/proc/scsi',
        '/sys/firmware',
      ],
      readonlyPaths: ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger'],
    },
  };
};

/** The first process of the container below `ancestor`, as this machine numbers it; undefined when there is none. */
const firstProcess = (ancestor: number, program: string): number | undefined => {
  const parents = new Map<number, number>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const [, parent] = /^\d+ \(.*\) \S (\d+)/s.exec(readFileSync(`/proc/${name}/stat`, 'utf8')) ?? [];
      parents.set(Number(name), Number(parent));
    } catch {
      // It ended meanwhile.
    }
  }
  const isBelow = (pid: number): boolean => {
    for (let at: number | undefined = pid; at !== undefined && at > 1; at = parents.get(at)) {
      if (at === ancestor) return true;
    }
    return false;
  };
  return [...parents.keys()].find((pid) => {
    if (!isBelow(pid)) return false;
    try {
      return basename(readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0')[0] ?? '') === program;
    } catch {
      return false;
    }
  });
};

/** Daemons in containers of the image. `remove` takes away what they left. */
export const openSandboxImage = async (
  log: (line: string) => void,
): Promise<Readonly<{ launch: Launch; remove: () => void }>> => {
  const [image, seccomp] = await Promise.all([openImage(log), runtimeDefaultSeccomp()]);
  const work = mkdtempSync(join(tmpdir(), 'beeuni-containers-'));
  const groups: string[] = [];
  let started = 0;
  const launch: Launch = {
    inner: () => ({
      workspace: '/workspace',
      data: '/var/lib/beeunid',
      config: '/opt/beeuni/config',
      home: '/home/beeuni',
      temporary: '/tmp',
      tokenFile: '/var/run/secrets/beeuni.dev/token/token',
    }),
    start: (folders, environment) => {
      started += 1;
      const bundle = join(work, `${started}`);
      for (const folder of ['root', 'upper', 'work']) mkdirSync(join(bundle, folder), { recursive: true });
      mkdirSync(join(folders.root, 'beaver'), { recursive: true });
      const pod = podOf(environment['BEEUNI_HARNESS'] ?? 'opencode');
      const id = Number((pod.securityContext as { runAsUser?: number }).runAsUser);
      for (const folder of Object.values(sourcesOf(folders))) chownAll(folder, id);
      chownSync(folders.root, id, id);
      const group = `/${basename(work)}-${started}`;
      groups.push(group);
      writeFileSync(
        join(bundle, 'config.json'),
        JSON.stringify(bundleOf(pod, image, folders, environment, group, seccomp)),
      );
      const layers = [...image.layers].reverse().join(':');
      const at = { root: join(bundle, 'root'), upper: join(bundle, 'upper'), work: join(bundle, 'work') };
      // Everything is in namespaces that end with this process, so that no mount and no container outlives a test.
      const script = [
        'mount -t proc proc /proc',
        `mount -t overlay overlay -o lowerdir=${layers},upperdir=${at.upper},workdir=${at.work} ${at.root}`,
        `exec runc --root ${join(work, 'state')} run --bundle ${bundle} sandbox-${started}`,
      ].join(' && ');
      const namespaces = ['--mount', '--pid', '--fork', '--kill-child', '--propagation', 'private'];
      const child = spawn('setpriv', ['--pdeathsig', 'KILL', '--', 'unshare', ...namespaces, 'sh', '-c', script], {
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      return {
        child,
        signal: (name) => {
          const first = child.exitCode === null ? firstProcess(child.pid ?? 0, 'tini') : undefined;
          if (first !== undefined) process.kill(first, name);
        },
      };
    },
  };
  return {
    launch,
    remove: () => {
      for (const group of groups) {
        const places = existsSync('/sys/fs/cgroup/cgroup.controllers')
          ? ['/sys/fs/cgroup']
          : readdirSync('/sys/fs/cgroup').map((hierarchy) => join('/sys/fs/cgroup', hierarchy));
        for (const place of places) {
          try {
            execFileSync('rmdir', [`${place}${group}`], { stdio: 'ignore' });
          } catch {
            // runc has removed it.
          }
        }
      }
      rmSync(work, { recursive: true, force: true });
    },
  };
};
