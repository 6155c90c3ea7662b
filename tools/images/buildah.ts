// Builds an image without a Docker engine: buildah on a Debian base made on this machine, in a store of its own in the cache.
// buildah hashes every copied folder at each run, so the stage with the sources is built by itself on nothing and joined to
// the result of the stages before it: a change of sources takes a few seconds.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { cacheDir } from '#test/cluster/cache-dir.ts';
import { run } from '#test/cluster/process.ts';
import { compiledLayer } from './compiled-layer.ts';
import type { BuildOrder, Engine } from './engine.ts';
import { inputFiles, inputHash } from './inputs.ts';
import { addLayer, joinParts, readParts, unpackArchive, writeLayout } from './layout.ts';
import { removeOldOutputs } from './outputs.ts';
import { runWithProgress } from './progress.ts';
import { splitStages } from './stages.ts';

type Log = (line: string) => void;

const suite = 'bookworm';
const npmVersion = '11.19.1';
const base = `localhost/beeuni-base:${suite}-1`;
const builder = `localhost/beeuni-builder:node-${process.versions.node}-npm-${npmVersion}`;
/** Files of Debian packages that no program reads. */
const leftOut = ['/usr/share/doc/*', '/usr/share/man/*', '/usr/share/locale/*', '/usr/share/info/*'];

/** The engine of machines without Docker. */
export const buildahEngine: Engine = {
  name: 'buildah',
  salt: createHash('sha256').update(`${base} ${builder}`).digest('hex'),
  ending: '.oci',
  async build(order, log) {
    const { dependencies, sources, compile, compiled } = splitStages(order.dockerfile);
    await removeLeftovers();
    const lower = await ensureDependencies(order, dependencies, log);
    const work = mkdtempSync(join(cacheDir('images'), 'work-'));
    try {
      const archive = join(work, 'sources.tar');
      await buildArchive(order, sources, ['--layers=false', '--build-arg', 'DEPENDENCIES=scratch'], archive, log);
      const upper = await unpackArchive(archive, work);
      const files = inputFiles(order.context, `${sources}\n${compiled}`);
      const layer = await compiledLayer(order.context, files, compile, work);
      const parts = addLayer(joinParts(readParts(lower), upper), layer, 'compiled code');
      writeLayout(`${order.output}.oci`, order.image, parts, [lower, work]);
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
  },
};

/**
 * Pushes the image of a layout folder to a registry under the name `remote`, with the credentials and rules that buildah has.
 * Rejects with buildah's words.
 */
export async function pushLayout(folder: string, remote: string): Promise<void> {
  // buildah makes a name of the path and refuses one with `.cache` in it: the folder is named from where it lies.
  const from = ['pull', '--quiet', `oci:${basename(folder)}`];
  const id = (await run('buildah', [...storeArgs(), ...from], { cwd: dirname(folder) })).trim();
  try {
    await buildah(['push', '--quiet', id, `docker://${remote}`]);
  } finally {
    await buildah(['rmi', id]);
  }
}

/** Whoever builds holds the lock, so a container or a work folder that is there was left by a build that was cut off. */
async function removeLeftovers(): Promise<void> {
  await buildah(['rm', '--all']);
  const dir = cacheDir('images');
  const folders = readdirSync(dir).filter((name) => name.startsWith('work-'));
  for (const folder of folders) rmSync(join(dir, folder), { recursive: true, force: true });
}

/** Layout folder of the image of the stages before the sources, built first when their inputs have changed. */
async function ensureDependencies(order: BuildOrder, dockerfile: string, log: Log): Promise<string> {
  const repository = /([^/:]+):[^:]+$/.exec(order.image)?.[1] ?? 'image';
  const hash = inputHash(order.context, dockerfile, buildahEngine.salt).slice(0, 12);
  const folder = join(dirname(order.output), `${repository}-dependencies-${hash}.oci`);
  if (existsSync(folder)) return folder;
  await ensureBase(log);
  await ensureBuilder(log);
  const work = mkdtempSync(join(cacheDir('images'), 'work-'));
  try {
    const archive = join(work, 'dependencies.tar');
    await buildArchive(
      order,
      dockerfile,
      ['--layers', '--build-arg', `BASE=${base}`, '--build-arg', `BUILDER=${builder}`],
      archive,
      log,
    );
    const parts = await unpackArchive(archive, work);
    rmSync(archive);
    writeLayout(folder, `localhost/${repository}-dependencies:${hash}`, parts, [work]);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  removeOldOutputs(`${repository}-dependencies-`);
  return folder;
}

async function buildArchive(
  order: BuildOrder,
  dockerfile: string,
  args: readonly string[],
  archive: string,
  log: Log,
): Promise<void> {
  const file = `${archive}.Dockerfile`;
  const tag = `localhost/beeuni-unfinished:${process.pid}`;
  writeFileSync(file, dockerfile);
  const files = ['--ignorefile', join(order.context, '.dockerignore'), '--file', file, '--tag', tag, order.context];
  await runWithProgress(
    'buildah',
    [...storeArgs(), 'build', '--isolation', 'chroot', ...args, ...order.secretArgs, ...files],
    {
      log: (line) => log(`${order.image}: ${line}`),
      show: /STEP \d+\/\d+: (RUN|COPY --from)/,
    },
  );
  await buildah(['push', '--quiet', tag, `docker-archive:${archive}:${tag}`]);
  await buildah(['rmi', tag]);
}

function storeArgs(): string[] {
  return [
    '--root',
    cacheDir('images', 'store'),
    '--runroot',
    cacheDir('images', 'store-run'),
    '--storage-driver',
    'overlay',
  ];
}

function buildah(args: readonly string[]): Promise<string> {
  return run('buildah', [...storeArgs(), ...args]);
}

async function hasImage(tag: string): Promise<boolean> {
  return (await buildah(['images', '--quiet', '--filter', `reference=${tag}`])).trim() !== '';
}

async function ensureBase(log: Log): Promise<void> {
  if (await hasImage(base)) return;
  log(`images: making a Debian ${suite} base, about a minute, once`);
  const work = mkdtempSync(join(cacheDir('images'), 'work-'));
  try {
    const tar = join(work, 'base.tar');
    const exclude = leftOut.map((path) => `--dpkgopt=path-exclude=${path}`);
    await run('mmdebstrap', ['--variant=minbase', '--include=ca-certificates', ...exclude, suite, tar]);
    await commit(base, 'scratch', async (container) => {
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
    rmSync(work, { recursive: true, force: true });
  }
}

/** The base with this very Node and a pinned npm. */
async function ensureBuilder(log: Log): Promise<void> {
  if (await hasImage(builder)) return;
  log(`images: making a builder with Node ${process.versions.node}, once`);
  const work = mkdtempSync(join(cacheDir('images'), 'work-'));
  try {
    const npm = join(work, 'npm');
    mkdirSync(npm);
    const file = (await run('npm', ['pack', '--silent', `npm@${npmVersion}`], { cwd: work })).trim();
    await run('tar', ['-xzf', join(work, file), '-C', npm, '--strip-components=1']);
    await commit(builder, base, async (container) => {
      await buildah(['copy', '--quiet', '--chmod', '0755', container, process.execPath, '/usr/local/bin/node']);
      await buildah(['copy', '--quiet', container, npm, '/usr/local/lib/node_modules/npm']);
      const link =
        'cd /usr/local && chmod 0755 lib/node_modules/npm/bin/npm-cli.js && ln -s ../lib/node_modules/npm/bin/npm-cli.js bin/npm';
      await buildah(['run', '--isolation', 'chroot', container, '--', 'sh', '-c', link]);
    });
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

async function commit(tag: string, from: string, fill: (container: string) => Promise<void>): Promise<void> {
  const container = (await buildah(['from', '--pull-never', from])).trim();
  try {
    await fill(container);
    await buildah(['commit', '--quiet', container, tag]);
  } finally {
    await buildah(['rm', container]);
  }
}
