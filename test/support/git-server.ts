// A git remote for tests: a real server with repositories made from maps of files. Must not know Beeuni.
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import {
  createRepository,
  type GitServer,
  type GitServerOptions,
  git,
  startGitServer as start,
} from '#examples/demo/git-server.ts';

export { git } from '#examples/demo/git-server.ts';

/** Content of a file; `{ link }` makes a symbolic link. */
export type FileContent = string | Buffer | Readonly<{ link: string }>;

/** A running remote. */
export type TestRemote = GitServer &
  Readonly<{
    root: string;
    /** URL of a repository. */
    urlOf: (name: string) => string;
    /** Commits files on a branch of a repository, which is made if need be, and gives back the commit. */
    commit: (name: string, files: Readonly<Record<string, FileContent>>, branch?: string) => Promise<string>;
    /** Commit of a branch; undefined when there is none. */
    head: (name: string, branch: string) => Promise<string | undefined>;
  }>;

/** Starts a remote in a temporary folder, which `close` removes. */
export const startTestRemote = async (options: Omit<GitServerOptions, 'root'> = {}): Promise<TestRemote> => {
  const root = await mkdtemp(join(tmpdir(), 'beeuni-remote-'));
  const server = await start({ ...options, root });
  const head = async (name: string, branch: string): Promise<string | undefined> =>
    git(join(root, name), 'rev-parse', '--verify', '--quiet', `refs/heads/${branch}`).catch(() => undefined);
  return {
    ...server,
    root,
    urlOf: (name) => `${server.url}/${name}`,
    head,
    commit: async (name, files, branch = 'main') => {
      const path = await createRepository(root, name);
      const work = await mkdtemp(join(tmpdir(), 'beeuni-commit-'));
      try {
        await git(work, 'init', '--quiet', `--initial-branch=${branch}`);
        if ((await head(name, branch)) !== undefined) await git(work, 'pull', '--quiet', path, branch);
        for (const [file, content] of Object.entries(files)) {
          const target = join(work, file);
          await mkdir(dirname(target), { recursive: true });
          await rm(target, { force: true });
          if (typeof content === 'object' && 'link' in content) await symlink(content.link, target);
          else await writeFile(target, content);
        }
        await git(work, 'add', '--all');
        await git(work, 'commit', '--quiet', '--allow-empty', '--message', 'Change files');
        await git(work, 'push', '--quiet', path, `HEAD:refs/heads/${branch}`);
        return await git(work, 'rev-parse', 'HEAD');
      } finally {
        await rm(work, { recursive: true, force: true });
      }
    },
    close: async () => {
      await server.close();
      await rm(root, { recursive: true, force: true });
    },
  };
};
