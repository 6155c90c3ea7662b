// Tries a write in every folder that must take one, before anything depends on it: a wrong owner under a right root is
// not repaired by the kubelet, and the pod starts all the same. Must not know what the folders are for.
// Source: 10-kubernetes §7, sandbox-pod §2.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Why a folder takes no file. `code` is Node's: EACCES, EROFS, ENOSPC, ENOENT. */
export type MountProblem = Readonly<{ path: string; code: string }>;

/** Makes the last folder of a path. Not recursive: Node never comes back from that below /proc (measured, 24.22). */
const makeFolder = (path: string): void => {
  try {
    mkdirSync(path);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  }
};

/** The folders that take no file, with the cause. */
export const findMountProblems = (paths: readonly string[]): readonly MountProblem[] =>
  paths.flatMap((path) => {
    const probe = join(path, `.beeunid-write-test-${process.pid}`);
    try {
      makeFolder(path);
      writeFileSync(probe, 'x');
      rmSync(probe);
      return [];
    } catch (error) {
      rmSync(probe, { force: true });
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
      return [{ path, code }];
    }
  });

/** One sentence about a problem. */
export const mountProblemText = (problem: MountProblem): string =>
  `${problem.path} is not writable for uid ${process.getuid?.() ?? 'unknown'} (${problem.code})`;
