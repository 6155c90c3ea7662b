// The branch of a session as its turns and its end need it: where it stands, and its push, each told to health, log and events.
// Nothing can be pushed before the checkout is there. Must not know turns beyond their port. Source: D17, A22, A203.
import type { Logger } from '#base/log.ts';
import { ROOT_THREAD } from '#daemon/harness/contract/events.ts';
import type { DaemonState } from '../daemon-state.ts';
import type { EventLog } from '../event-log/event-log.ts';
import type { TurnWorkspace } from '../turns/turns.ts';
import type { BranchWork } from './branch-work.ts';
import { ensureBranch } from './checkout.ts';
import type { RunGit } from './run-git.ts';

/** Ports. `branch`: its name. */
export type SessionBranchPorts = Readonly<{
  run: RunGit;
  branch: string;
  state: DaemonState;
  emit: EventLog['emit'];
  redact: (text: string) => string;
  log: Logger;
}>;

/** The branch. None of its calls rejects. */
export type SessionBranch = TurnWorkspace & Readonly<{ checkedOut: (work: BranchWork) => void }>;

/** The branch before its checkout. */
export const makeSessionBranch = (ports: SessionBranchPorts): SessionBranch => {
  const { run, branch, state, log } = ports;
  let work: BranchWork | undefined;
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
        await ensureBranch(run, branch);
        if (!state.read().onBranch) state.report({ onBranch: true });
        return true;
      } catch (error) {
        log.error('the session branch is not checked out', { err: error });
        state.report({ onBranch: false });
        return false;
      }
    },
  };
};
