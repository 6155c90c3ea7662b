// One sandbox with everything around it: repository, provider, control plane double, folders and the real daemon.
// Must not know what is tested.
import {
  type DaemonProcess,
  type InnerFolders,
  type Launch,
  makeSandboxFolders,
  type SandboxFolders,
  startDaemon,
} from '#test/support/daemon-process.ts';
import { type GitBackend, makeGitBackend } from '#test/support/git-backend.ts';
import {
  type ClaimOverrides,
  type ControlPlaneOptions,
  type ScriptedControlPlane,
  startScriptedControlPlane,
} from '#test/support/scripted-control-plane.ts';
import { type ScriptedProvider, startScriptedProvider } from '#test/support/scripted-provider.ts';

/** Unique texts that stand for each credential; a scan for them shows where one went. */
export const CANARY = {
  podToken: 'canary-pod-token-2f6d1c',
  providerKey: 'sk-canary-provider-key-9ab3e4',
  grantedSecret: 'canary-granted-secret-51c7aa',
} as const;

/** The branch of the double's session. */
export const BRANCH = 'beeuni/fix-login-11111';

/** A rig; `start` starts a further daemon on the same folders. */
export type Rig = Readonly<{
  git: GitBackend;
  provider: ScriptedProvider;
  controlPlane: ScriptedControlPlane;
  folders: SandboxFolders;
  /** The same folders as the daemon sees them. */
  inner: InnerFolders;
  start: (environment?: Readonly<Record<string, string | undefined>>) => DaemonProcess;
  stop: () => Promise<void>;
}>;

/** Sets up everything but a daemon. */
export const makeRig = async (
  options: Readonly<{
    files?: Readonly<Record<string, string>>;
    claim?: ClaimOverrides;
    searchResults?: ControlPlaneOptions['searchResults'];
    /** Where daemons run; absent: as processes of this machine. */
    launch?: Launch | undefined;
  }> = {},
): Promise<Rig> => {
  const git = makeGitBackend(
    options.files ?? { 'README.md': '# Shop\n', 'AGENTS.md': 'Marker of the rules: bumblebee.\n' },
  );
  const provider = await startScriptedProvider({ key: CANARY.providerKey });
  const controlPlane = await startScriptedControlPlane({
    token: CANARY.podToken,
    git,
    provider: { url: provider.url, key: CANARY.providerKey },
    claim: options.claim,
    searchResults: options.searchResults,
  });
  const folders = makeSandboxFolders(CANARY.podToken);
  const daemons: DaemonProcess[] = [];
  return {
    git,
    provider,
    controlPlane,
    folders,
    inner: options.launch?.inner(folders) ?? folders,
    start: (environment) => {
      const daemon = startDaemon(folders, controlPlane.url, environment, options.launch);
      daemons.push(daemon);
      return daemon;
    },
    stop: async () => {
      for (const daemon of daemons) await daemon.cleanUp();
      await controlPlane.stop();
      await provider.close();
      git.remove();
      folders.remove();
    },
  };
};
