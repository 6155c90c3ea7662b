// Takes one accepted push: objects into a quarantine beside the mirror, the branch to the upstream, and only when that
// has it into the mirror. Must not know HTTP or who pushes. Source: 20-control-plane §6.
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { type GitCredentials, withCredentials } from './credentials.ts';
import { remoteProblem } from './failure.ts';
import { historyRefusal, isZeroId, type PushCommand, type PushRule } from './push-rule.ts';
import type { Git, GitResult } from './run.ts';

/** What a push is made with. `pack`: the bytes after the commands; may be empty. */
export type PushWork = Readonly<{
  mirror: string;
  /** Folder for short-lived files, on the disk of the mirror. */
  folder: string;
  url: string;
  credentials: GitCredentials;
  command: PushCommand;
  rule: PushRule;
  pack: AsyncIterable<Buffer>;
  maxBytes: number;
  timeoutMs: number;
  signal: AbortSignal;
}>;

/** Undefined when the branch is pushed, else why not, for the person or agent who pushed. */
export type PushOutcome = string | undefined;

const LOCAL_TIMEOUT_MS = 120_000;
const ZERO = '0'.repeat(40);

/** Why the upstream took the branch not, in its own words where they are fit to be shown. */
const upstreamRefusal = (result: GitResult, url: string): string => {
  const line = /^!\t[^\t]*\t(.*)$/m.exec(result.stdout.toString('utf8'))?.[1];
  if (line !== undefined) {
    const reason = line.replace(/[^\x20-\x7e]/g, '').slice(0, 200);
    return /fetch first|non-fast-forward|stale info|cannot lock/.test(reason)
      ? 'the upstream branch has other commits; fetch and merge first'
      : `the upstream refuses the branch: ${reason}`;
  }
  return `the upstream did not take the branch: ${remoteProblem(result, url)?.message ?? 'git could not push'}`;
};

/** Objects of the quarantine become objects of the mirror: packs before their indexes, so that no reader sees half of one. */
const adopt = async (quarantine: string, mirror: string): Promise<void> => {
  const from = join(quarantine, 'pack');
  const to = join(mirror, 'objects', 'pack');
  await mkdir(to, { recursive: true });
  const names = await readdir(from).catch(() => []);
  const order = (name: string): number => (name.endsWith('.idx') ? 1 : 0);
  for (const name of names.filter((entry) => /\.(pack|idx|rev)$/.test(entry)).sort((a, b) => order(a) - order(b))) {
    await rename(join(from, name), join(to, name));
  }
};

/** True when the pack has objects; reads its head only. */
const packInput = async (pack: AsyncIterable<Buffer>): Promise<Readable | undefined> => {
  const iterator = pack[Symbol.asyncIterator]();
  let head = Buffer.alloc(0);
  while (head.length < 12) {
    const next = await iterator.next();
    if (next.done === true) break;
    head = Buffer.concat([head, next.value]);
  }
  if (head.length < 12 || head.subarray(0, 4).toString('latin1') !== 'PACK' || head.readUInt32BE(8) === 0)
    return undefined;
  const all = async function* (): AsyncGenerator<Buffer> {
    yield head;
    for (;;) {
      const next = await iterator.next();
      if (next.done === true) return;
      yield next.value;
    }
  };
  return Readable.from(all(), { objectMode: false });
};

/** Runs the push. The caller holds the mirror's lock. Rejects for faults of this machine only. */
export const runPush = async (git: Git, work: PushWork): Promise<PushOutcome> => {
  const { mirror, command, rule, url, signal } = work;
  await mkdir(work.folder, { recursive: true });
  const quarantine = await mkdtemp(join(work.folder, 'quarantine-'));
  const env = { GIT_OBJECT_DIRECTORY: quarantine, GIT_ALTERNATE_OBJECT_DIRECTORIES: join(mirror, 'objects') };
  const local = (args: readonly string[], more: Partial<Parameters<Git['run']>[0]> = {}): Promise<GitResult> =>
    git.run({ args: ['--git-dir', mirror, ...args], env, timeoutMs: LOCAL_TIMEOUT_MS, signal, ...more });
  try {
    const found = await local(['rev-parse', '--verify', '--quiet', '--end-of-options', command.ref]);
    const current = found.ok ? found.stdout.toString('utf8').trim() : ZERO;
    if (current !== command.oldId && !(isZeroId(current) && isZeroId(command.oldId))) {
      return 'the branch has moved meanwhile; fetch first';
    }
    const pack = await packInput(work.pack);
    if (pack !== undefined) {
      const args = ['index-pack', '--stdin', '--fix-thin', `--max-input-size=${work.maxBytes}`];
      const indexed = await local(args, { input: pack, timeoutMs: work.timeoutMs });
      if (!indexed.ok) {
        return /maximum allowed size/.test(indexed.stderr)
          ? 'the push is larger than the installation allows'
          : 'the objects of the push are damaged';
      }
    }
    const type = await local(['cat-file', '-t', command.newId]);
    if (type.stdout.toString('utf8').trim() !== 'commit') return 'a branch points to a commit';
    const connected = await local(['rev-list', '--objects', '--quiet', command.newId, '--not', '--all']);
    if (!connected.ok) return 'objects that the commit needs are missing';
    const isFastForward =
      isZeroId(current) || (await local(['merge-base', '--is-ancestor', current, command.newId])).ok;
    const refused = historyRefusal(isFastForward, rule);
    if (refused !== undefined) return refused;

    const pushed = await withCredentials(work.credentials, work.folder, (more) => {
      const force = isFastForward ? [] : [`--force-with-lease=${command.ref}:${current}`];
      const flags = ['push', '--porcelain', '--no-verify', '--no-follow-tags', '--no-signed', '--quiet', ...force];
      const args = ['--git-dir', mirror, ...flags, '--end-of-options', url, `${command.newId}:${command.ref}`];
      return git.run({ args, env: { ...env, ...more }, timeoutMs: work.timeoutMs, signal });
    });
    if (!pushed.ok) return upstreamRefusal(pushed, url);

    await adopt(quarantine, mirror);
    // If this fails the upstream has the branch all the same, which is what counts; the next fetch brings the mirror there.
    await git.run({
      args: ['--git-dir', mirror, 'update-ref', command.ref, command.newId, current],
      timeoutMs: LOCAL_TIMEOUT_MS,
    });
    return undefined;
  } finally {
    await rm(quarantine, { recursive: true, force: true });
  }
};
