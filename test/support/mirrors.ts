// Git and mirrors of repositories in a folder of their own, for remotes on loopback. Must not know what is mirrored.
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '#base/clock.ts';
import { type Mirrors, makeMirrors } from '#controlplane/git/mirror.ts';
import { type Git, makeGit } from '#controlplane/git/run.ts';

type MirrorSettings = Parameters<typeof makeMirrors>[0];

/** See the file. */
export type MirrorRig = Readonly<{
  /** Home of git; `mirrors` is where the mirrors are. */
  folder: string;
  mirrors: string;
  git: Git;
  /** Mirrors with these settings in place of the usual ones. */
  mirrorsWith: (changes?: Partial<MirrorSettings>) => Mirrors;
  remove: () => Promise<void>;
}>;

/** Makes the folders. */
export const makeMirrorRig = async (): Promise<MirrorRig> => {
  const folder = await mkdtemp(join(tmpdir(), 'beeuni-mirror-'));
  const mirrors = join(folder, 'mirrors');
  await mkdir(mirrors);
  const git = makeGit({ home: folder, path: process.env['PATH'] ?? '' }, systemClock);
  return {
    folder,
    mirrors,
    git,
    mirrorsWith: (changes = {}) =>
      makeMirrors({
        git,
        clock: systemClock,
        directory: mirrors,
        hostRule: { allowedHosts: [], insecureHosts: ['127.0.0.1'] },
        fetchTimeoutMs: 20_000,
        maxRepositoryBytes: 50_000_000,
        ...changes,
      }),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
};
