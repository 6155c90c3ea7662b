// What turns a Dockerfile into an archive: a Docker engine where one answers, else buildah on a Debian base made on this machine.
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { cacheDir } from '#test/cluster/cache-dir.ts';
import { run, runToEnd } from '#test/cluster/process.ts';

/** One image to be built. `archivePath` is where its docker archive goes. */
export interface BuildOrder {
  readonly context: string;
  readonly dockerfilePath: string;
  readonly tag: string;
  readonly archivePath: string;
  readonly secretArgs: readonly string[];
}

/** Builds images. `salt` is part of an image's hash: another engine or base gives another image. */
export interface Engine {
  readonly name: 'docker' | 'buildah';
  readonly salt: string;
  build(order: BuildOrder, log: (line: string) => void): Promise<void>;
}

/** The engine of this machine. Throws with what to install when there is none. */
export async function findEngine(): Promise<Engine> {
  if (await succeeds('docker', ['version', '--format', '{{.Server.Version}}'])) return dockerEngine;
  if ((await succeeds('buildah', ['--version'])) && (await succeeds('mmdebstrap', ['--version']))) return buildahEngine;
  throw new Error('images need a running Docker engine, or the Debian packages buildah and mmdebstrap and root');
}

async function succeeds(program: string, args: readonly string[]): Promise<boolean> {
  try {
    return (await runToEnd(program, args)).code === 0;
  } catch {
    return false;
  }
}

const dockerEngine: Engine = {
  name: 'docker',
  salt: 'docker',
  async build(order, log) {
    log(`${order.tag}: docker build`);
    const env = { ...process.env, DOCKER_BUILDKIT: '1' };
    await run(
      'docker',
      ['build', ...order.secretArgs, '--file', order.dockerfilePath, '--tag', order.tag, order.context],
      { env },
    );
    await run('docker', ['save', '--output', order.archivePath, order.tag]);
  },
};

const suite = 'bookworm';
const npmVersion = '11.19.1';
const base = `localhost/beeuni-base:${suite}-1`;
const builder = `localhost/beeuni-builder:node-${process.versions.node}-npm-${npmVersion}`;
/** Files of Debian packages that no program reads. */
const leftOut = ['/usr/share/doc/*', '/usr/share/man/*', '/usr/share/locale/*', '/usr/share/info/*'];

const buildahEngine: Engine = {
  name: 'buildah',
  salt: createHash('sha256').update(`${base} ${builder}`).digest('hex'),
  async build(order, log) {
    await ensureBase(log);
    await ensureBuilder(log);
    log(`${order.tag}: buildah build`);
    const buildArgs = ['--build-arg', `BASE=${base}`, '--build-arg', `BUILDER=${builder}`];
    const ignore = ['--ignorefile', join(order.context, '.dockerignore')];
    const files = ['--file', order.dockerfilePath, '--tag', order.tag, order.context];
    await buildah([
      'build',
      '--isolation',
      'chroot',
      '--layers',
      ...order.secretArgs,
      ...buildArgs,
      ...ignore,
      ...files,
    ]);
    log(`${order.tag}: writing ${order.archivePath}`);
    rmSync(order.archivePath, { force: true });
    await buildah(['push', '--quiet', order.tag, `docker-archive:${order.archivePath}:${order.tag}`]);
    await buildah(['image', 'prune', '--force']).catch(() => undefined); // Not every version has it; it only saves space.
  },
};

/** Runs buildah on a store of its own in the cache, so that the machine's own images are left alone. */
function buildah(args: readonly string[]): Promise<string> {
  const store = cacheDir('images', 'store');
  return run('buildah', [
    '--root',
    store,
    '--runroot',
    cacheDir('images', 'store-run'),
    '--storage-driver',
    'overlay',
    ...args,
  ]);
}

async function hasImage(tag: string): Promise<boolean> {
  return (await buildah(['images', '--quiet', '--filter', `reference=${tag}`])).trim() !== '';
}

async function ensureBase(log: (line: string) => void): Promise<void> {
  if (await hasImage(base)) return;
  log(`images: making a Debian ${suite} base, about a minute, once`);
  const dir = mkdtempSync(join(cacheDir('images'), 'base-'));
  try {
    const tar = join(dir, 'base.tar');
    const exclude = leftOut.map((path) => `--dpkgopt=path-exclude=${path}`);
    await run('mmdebstrap', ['--variant=minbase', '--include=ca-certificates', ...exclude, suite, tar]);
    await commitFromScratch(base, 'scratch', async (container) => {
      await buildah(['add', '--quiet', container, tar, '/']);
      await buildah([
        'config',
        '--cmd',
        'bash',
        '--env',
        'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
        container,
      ]);
    });
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** The base with this very Node and a pinned npm. */
async function ensureBuilder(log: (line: string) => void): Promise<void> {
  if (await hasImage(builder)) return;
  log(`images: making a builder with Node ${process.versions.node}, once`);
  const dir = mkdtempSync(join(cacheDir('images'), 'builder-'));
  try {
    const npm = join(dir, 'npm');
    mkdirSync(npm);
    const [file] = (await run('npm', ['pack', '--silent', `npm@${npmVersion}`], { cwd: dir })).trim().split('\n');
    await run('tar', ['-xzf', join(dir, file ?? ''), '-C', npm, '--strip-components=1']);
    await commitFromScratch(builder, base, async (container) => {
      await buildah(['copy', '--quiet', '--chmod', '0755', container, process.execPath, '/usr/local/bin/node']);
      await buildah(['copy', '--quiet', container, npm, '/usr/local/lib/node_modules/npm']);
      const link =
        'ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm && chmod 0755 /usr/local/lib/node_modules/npm/bin/npm-cli.js';
      await buildah(['run', '--isolation', 'chroot', container, '--', 'sh', '-c', link]);
    });
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

async function commitFromScratch(tag: string, from: string, fill: (container: string) => Promise<void>): Promise<void> {
  const container = (await buildah(['from', '--pull-never', from])).trim();
  try {
    await fill(container);
    await buildah(['commit', '--quiet', container, tag]);
  } finally {
    await buildah(['rm', container]);
  }
}
