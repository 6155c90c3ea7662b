// The workspace of a claimed session for people: its files, its changes, and terminals in it. Puts the parts together.
// Must not know HTTP or the harness. Source: A200 to A202.
import type { Clock } from '#base/clock.ts';
import type { DaemonConfig } from '../config.ts';
import type { AttachCommand } from '../harness/contract/capabilities.ts';
import { makeWorkspaceFiles } from './files/workspace-files.ts';
import { makeRunGit } from './git/run-git.ts';
import { diffWorkspace } from './git/workspace-diff.ts';
import type { Workspace } from './http/workspace-routes.ts';
import { startPty } from './terminal/pty.ts';
import { createTerminals } from './terminal/terminals.ts';

/** What the workspace is made from. `commandEnvironment` is asked at each start of a terminal, so that a new secret is in it. */
export type WorkspacePorts = Readonly<{
  config: Pick<DaemonConfig, 'workspaceDir' | 'homeDir' | 'temporaryDir' | 'searchPath'>;
  baseCommit: string;
  commandEnvironment: () => Readonly<Record<string, string>>;
  harnessClient: (signal: AbortSignal) => Promise<AttachCommand>;
  randomName: () => string;
  clock: Clock;
}>;

/** Nothing runs before it is asked for. */
export const makeWorkspace = (ports: WorkspacePorts): Workspace => {
  const { workspaceDir, homeDir, temporaryDir, searchPath } = ports.config;
  const run = makeRunGit(workspaceDir, searchPath);
  return {
    files: makeWorkspaceFiles(workspaceDir),
    diff: () => diffWorkspace(run, workspaceDir, ports.baseCommit),
    terminals: createTerminals({
      startPty,
      cwd: workspaceDir,
      environment: () => ({
        ...ports.commandEnvironment(),
        PATH: searchPath,
        HOME: homeDir,
        TMPDIR: temporaryDir,
        LANG: 'C.UTF-8',
      }),
      harnessClient: ports.harnessClient,
      newId: () => `t-${ports.randomName()}`,
      clock: ports.clock,
    }),
  };
};
