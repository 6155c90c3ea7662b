// The one program that holds every component of the cluster: built from the Go files of this folder when they change, kept in the cache.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { cacheDir } from './cache-dir.ts';
import { withLock } from './lock.ts';
import { run } from './process.ts';

/** Receives one line of progress for a person. */
export type Log = (line: string) => void;

/** Version of Kubernetes that the program reports. */
export const kubernetesVersion = 'v1.34.4';

const sourceDir = import.meta.dirname;
/** Packages that a build without any cache compiles; only the progress line needs it. */
const packagesInAll = 2900;

/** Absolute path of the `kube` program, built first when its sources have changed. Cold 7 to 9 minutes on 2 cores, else at once. Two callers build once. */
export async function ensureKubeBinary(log: Log): Promise<string> {
  const key = kubeBinaryKey();
  const binary = kubeBinaryPath(key);
  if (existsSync(binary)) return binary;
  return withLock(
    join(cacheDir('cluster'), 'build.lock'),
    async () => {
      if (existsSync(binary)) return binary;
      mkdirSync(dirname(binary), { recursive: true });
      const unfinished = `${binary}.${process.pid}`;
      try {
        await build(unfinished, log);
        renameSync(unfinished, binary);
      } finally {
        rmSync(unfinished, { force: true });
      }
      removeOldBuilds(key);
      return binary;
    },
    () => log('kube: another process builds it, waiting'),
  );
}

/** Whether the program for the present sources is in the cache. */
export function kubeBinaryIsBuilt(): boolean {
  return existsSync(kubeBinaryPath(kubeBinaryKey()));
}

/** Absolute path of the program for sources of this key; it may be missing. */
export function kubeBinaryPath(key: string): string {
  return join(cacheDir('cluster'), key, 'kube');
}

/**
 * Content hash of the Go files and the target, 64 hex digits. The compiler is left out: its release changes nothing that
 * a test could see, and a machine without Go still finds the program that was built for these sources.
 */
export function kubeBinaryKey(): string {
  const hash = createHash('sha256');
  for (const file of goFiles(sourceDir)) hash.update(`${file}\0`).update(readFileSync(join(sourceDir, file)));
  hash.update(`${process.platform}/${process.arch}\0`);
  return hash.digest('hex');
}

function goFiles(dir: string, below = ''): string[] {
  return readdirSync(join(dir, below), { withFileTypes: true })
    .flatMap((entry) => {
      const path = join(below, entry.name);
      if (entry.isDirectory()) return goFiles(dir, path);
      return /\.go$|^go\.(mod|sum)$/.test(entry.name) ? [path] : [];
    })
    .sort();
}

async function build(output: string, log: Log): Promise<void> {
  const version = (await run('go', ['version'])).trim();
  log(
    `kube: compiling Kubernetes ${kubernetesVersion} with ${version}; the first time takes about 8 minutes on 2 cores`,
  );
  const startedAt = performance.now();
  const args = [
    'build',
    '-v',
    '-trimpath',
    `-ldflags=-s -w -X k8s.io/component-base/version.gitVersion=${kubernetesVersion}`,
    '-o',
    output,
    '.',
  ];
  const compiler = spawn('go', args, {
    cwd: sourceDir,
    env: { ...process.env, CGO_ENABLED: '0' },
    stdio: ['ignore', 'inherit', 'pipe'],
  });
  let compiled = 0;
  const other: string[] = [];
  createInterface({ input: compiler.stderr }).on('line', (line) => {
    if (/^[\w./~-]+$/.test(line)) compiled++;
    else if (!line.startsWith('go: downloading')) other.push(line);
  });
  const seconds = (): number => Math.round((performance.now() - startedAt) / 1000);
  const ticker = setInterval(() => log(`kube: ${seconds()} s, ${compiled} of about ${packagesInAll} packages`), 10_000);
  try {
    const code = await new Promise<number | null>((resolve, reject) =>
      compiler.on('error', reject).on('close', resolve),
    );
    if (code !== 0) throw new Error(`go build in ${sourceDir} ended with ${code}:\n${other.slice(-20).join('\n')}`);
  } finally {
    clearInterval(ticker);
  }
  log(`kube: built in ${seconds()} s`);
}

/** Keeps the newest two builds: a checkout of an older commit stays quick, and the cache stays bounded. */
function removeOldBuilds(current: string): void {
  const root = cacheDir('cluster');
  const builds = readdirSync(root)
    .filter((name) => /^[0-9a-f]{64}$/.test(name) && name !== current)
    .map((name) => ({ name, changedMs: statSync(join(root, name)).mtimeMs }))
    .sort((a, b) => b.changedMs - a.changedMs);
  for (const build of builds.slice(1)) rmSync(join(root, build.name), { recursive: true, force: true });
}
