// Fills the app's port for repositories from the mirrors. Must not know projects beyond their uid.
import type { Repositories } from '../app/project-ports.ts';
import type { Mirrors } from './mirror.ts';
import { MirrorDamagedError, type ReadFiles } from './objects.ts';

/** The port over mirrors and their objects. */
export const makeRepositories = (mirrors: Mirrors, readFiles: ReadFiles): Repositories => ({
  sync: (target, credentials) => mirrors.sync(target, credentials),
  readFiles: async (projectUid, commit, paths, maxBytes) => {
    const mirror = await mirrors.find(projectUid);
    if (mirror === undefined) throw new MirrorDamagedError('there is none on this machine');
    try {
      return await readFiles(mirror, commit, paths, maxBytes);
    } catch (error) {
      if (error instanceof MirrorDamagedError) mirrors.distrust(projectUid);
      throw error;
    }
  },
  branchCommit: (projectUid, branch) => mirrors.branchCommit(projectUid, branch),
  remove: (projectUid) => mirrors.remove(projectUid),
});
