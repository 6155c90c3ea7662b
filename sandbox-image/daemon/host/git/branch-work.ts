// What a turn left on the session branch: where it stands, which commits are new, and the push of exactly that branch.
// Must not know turns or events. Source: D9, K18, A203.
import type { Logger } from '#base/log.ts';
import { commitOf, gitMessage } from './checkout.ts';
import type { RunGit } from './run-git.ts';

/** One new commit, oldest first in lists. */
export type NewCommit = Readonly<{ commit: string; subject: string }>;

/** Result of a push: `nothing` when the remote already has it. */
export type PushResult =
  | Readonly<{ kind: 'nothing' }>
  | Readonly<{ kind: 'pushed'; commit: string }>
  | Readonly<{ kind: 'failed'; message: string }>;

/** The session branch of a workspace. None of these rejects. */
export type BranchWork = Readonly<{
  /** The newest commit of the session branch; null when it cannot be read. */
  head: () => Promise<string | null>;
  /** Commits on the session branch after `commit`, at most 50, the newest ones. */
  commitsSince: (commit: string) => Promise<readonly NewCommit[]>;
  push: () => Promise<PushResult>;
}>;

const MAX_COMMITS = 50;
const PUSH_TIMEOUT_MS = 120_000;

/** Work on one branch. `knownRemote`: the commit that the remote surely has, undefined after a restart. */
export const makeBranchWork = (
  run: RunGit,
  settings: Readonly<{ branch: string; remoteUrl: string; knownRemote: string | undefined; log: Logger }>,
): BranchWork => {
  const { branch, remoteUrl, log } = settings;
  const name = `refs/heads/${branch}`;
  let remoteCommit = settings.knownRemote;

  const head = async (): Promise<string | null> => {
    try {
      return (await commitOf(run, name)) ?? null;
    } catch (error) {
      log.warn('the session branch cannot be read', { err: error });
      return null;
    }
  };

  return {
    head,
    commitsSince: async (commit) => {
      try {
        const result = await run(['log', `--max-count=${MAX_COMMITS}`, '--format=%H%x09%s', `${commit}..${name}`]);
        if (result.code !== 0) return [];
        const commits = result.stdout
          .split('\n')
          .filter((line) => line.includes('\t'))
          .map((line) => ({
            commit: line.slice(0, line.indexOf('\t')),
            subject: line.slice(line.indexOf('\t') + 1, line.indexOf('\t') + 257),
          }));
        return commits.reverse();
      } catch (error) {
        log.warn('new commits cannot be listed', { err: error });
        return [];
      }
    },
    push: async () => {
      const commit = await head();
      if (commit === null || commit === remoteCommit) return { kind: 'nothing' };
      try {
        const result = await run(['push', '--porcelain', '--no-verify', remoteUrl, `${name}:${name}`], {
          timeoutMs: PUSH_TIMEOUT_MS,
        });
        if (result.code !== 0) {
          const refused = /^!\t[^\t]*\t(.*)$/m.exec(result.stdout)?.[1];
          return { kind: 'failed', message: (refused ?? gitMessage(result.stderr)).slice(0, 512) || 'git push failed' };
        }
        const before = remoteCommit;
        remoteCommit = commit;
        // "=": the remote had it. That is news only when we knew it elsewhere: then the agent pushed by itself.
        const unchanged = result.stdout.split('\n').some((line) => line.startsWith('=\t'));
        return unchanged && before === undefined ? { kind: 'nothing' } : { kind: 'pushed', commit };
      } catch (error) {
        return { kind: 'failed', message: error instanceof Error ? error.message.slice(0, 512) : 'git push failed' };
      }
    },
  };
};
