// The branch of a session as its turns and its end need it: where it stands, and its push, each told to health, log and events.
// Nothing can be pushed before the checkout is there. Must not know turns beyond their port. Source: D17, A22, A203.
import { ConflictError } from '#base/errors.ts';
import type { Logger } from '#base/log.ts';
import { ROOT_THREAD } from '#daemon/harness/contract/events.ts';
import type { DaemonState } from '../daemon-state.ts';
import type { EventLog } from '../event-log/event-log.ts';
import type { TurnWorkspace } from '../turns/turns.ts';
import type { BranchWork } from './branch-work.ts';
import { commitsAside, currentBranch, ensureBranch } from './checkout.ts';
import type { RunGit } from './run-git.ts';

/** Ports. `branch`: its name. */
export type SessionBranchPorts = Readonly<{
  run: RunGit;
  branch: string;
  state: DaemonState;
  emit: EventLog['emit'];
  redact: (text: string) => string;
  /** Makes the repository again that is gone; undefined when it is there. */
  restore: () => Promise<Readonly<{ commit: string; filesKept: boolean }> | undefined>;
  log: Logger;
}>;

/** The branch. None of its calls rejects. */
export type SessionBranch = TurnWorkspace & Readonly<{ checkedOut: (work: BranchWork) => void }>;

/** The branch before its checkout. */
export const makeSessionBranch = (ports: SessionBranchPorts): SessionBranch => {
  const { run, branch, state, log } = ports;
  let work: BranchWork | undefined;
  let toldAside: string | undefined;

  /** Tells of commits beside the branch, which are never pushed; once for each. */
  const tellAside = async (turnId: string | null): Promise<void> => {
    const aside = await commitsAside(run, branch);
    if (aside === undefined || aside.commit === toldAside) return;
    toldAside = aside.commit;
    log.warn('commits are not on the session branch', { branch, ...aside });
    ports.emit({ type: 'workspace.commits_aside', data: { branch, ...aside } }, { threadId: ROOT_THREAD, turnId });
  };

  const restored = async (): Promise<void> => {
    const made = await ports.restore();
    if (made === undefined) return;
    log.warn('the repository was gone and was made again', { branch, ...made });
    ports.emit({ type: 'workspace.restored', data: { branch, ...made } }, { threadId: ROOT_THREAD, turnId: null });
  };

  return {
    checkedOut: (made) => {
      work = made;
    },
    head: async () => {
      const commit = (await work?.head()) ?? null;
      if (commit !== null) state.report({ checkout: { branch, commit } });
      return commit;
    },
    commitsSince: async (commit) => (await work?.commitsSince(commit)) ?? [],
    push: async (turnId) => {
      await tellAside(turnId).catch((error: unknown) => log.warn('HEAD cannot be read', { err: error }));
      const result = await work?.push();
      if (result === undefined || result.kind === 'nothing') return;
      const place = { threadId: ROOT_THREAD, turnId };
      if (result.kind === 'pushed') {
        state.report({ pushError: null });
        log.info('branch pushed', { branch, commit: result.commit });
        ports.emit({ type: 'workspace.pushed', data: { branch, commit: result.commit } }, place);
        return;
      }
      const message = ports.redact(result.message);
      log.warn('the push failed', { branch, reason: message });
      state.report({ pushError: message });
      ports.emit({ type: 'workspace.push_failed', data: { branch, message } }, place);
    },
    onBranch: async () => {
      try {
        if ((await currentBranch(run)) !== branch) {
          await restored();
          await tellAside(null);
          await ensureBranch(run, branch);
        }
        const { onBranch, bootError, checkout } = state.read();
        if (!onBranch) {
          const commit = (await work?.head()) ?? checkout?.commit ?? '';
          const cleared = bootError?.category === 'CloneFailed' ? { bootError: null } : {};
          state.report({ onBranch: true, checkout: { branch, commit }, ...cleared });
        }
        return true;
      } catch (error) {
        log.error('the session branch is not checked out', { err: error });
        const message = ports.redact(error instanceof Error ? error.message : 'git failed');
        // Another branch is a state of its own; anything else keeps the repository from being there.
        if (error instanceof ConflictError) {
          const other = (await currentBranch(run).catch(() => undefined)) ?? 'a detached commit';
          state.report({ onBranch: false, checkout: { branch: other, commit: state.read().checkout?.commit ?? '' } });
        } else {
          state.report({ onBranch: false, bootError: { category: 'CloneFailed', message } });
        }
        return false;
      }
    },
  };
};
