// The health document from what the parts of the daemon reported: nothing is asked, so it never waits.
// Pure. Must not know who reports. Source: A19 to A28.
import type { HarnessHealth } from '#daemon/harness/contract/adapter.ts';
import type { HealthDocument, RuntimeTruth, TurnBlock } from '#schema/wire/health.ts';

/** What is known at one moment. `null` in `harness`: none was started yet. Times: milliseconds. */
export type DaemonFacts = Readonly<{
  daemonVersion: string;
  harnessId: string;
  hostCapabilities: readonly string[];
  harnessCapabilities: readonly string[];
  harness: HarnessHealth | null;
  bootError: Readonly<{ category: NonNullable<HealthDocument['boot_error_category']>; message: string }> | null;
  checkout: Readonly<{ branch: string; commit: string }> | null;
  /** What the claim said of the configuration; null before it. `fallbackReason`: why the project's own was left out. */
  configuration: Readonly<{
    repository: string | null;
    commit: string;
    agentConfigEtag: string;
    catalogEtag: string;
    fallbackReason: string | null;
  }> | null;
  /** The workspace is on the session branch. */
  onBranch: boolean;
  sessionBranch: string | null;
  /** Why the newest push failed; null: it did not, or there was none. */
  pushError: string | null;
  /** How a turn stands, when somebody asked. */
  turn: TurnBlock | null;
  activity: Readonly<{ turnId: string | null; sinceMs: number; openRequests: number }>;
  timeline: readonly Readonly<{ stage: string; atMs: number }>[];
  isolation: HealthDocument['isolation'];
  hasCredential: boolean;
  uptimeMs: number;
}>;

/** Without its control-plane part a harness is only starting. */
const harnessOf = (facts: DaemonFacts): HealthDocument['harness'] => {
  const { harness } = facts;
  const state = harness?.state ?? (facts.bootError === null ? 'starting' : 'error');
  return {
    id: facts.harnessId,
    version: harness?.version ?? null,
    state,
    ready: state === 'ok',
    error: harness?.error?.slice(0, 1_024) ?? null,
    session: { id: harness?.sessionId ?? null, required: true },
    turn: facts.turn,
    details: { ...harness?.details },
  };
};

type Known = NonNullable<DaemonFacts['configuration']>;

/** Daemon, command line and managed skills come with one image, so they have one version. Source: A20. */
const truthOf = ({ catalogEtag }: Known, daemonVersion: string): RuntimeTruth => {
  const image = { value: daemonVersion, state: 'converged' as const };
  return {
    release: { value: null, state: 'unknown' },
    catalog: { value: catalogEtag, state: 'converged' },
    daemon: image,
    cli: image,
    managed_skills: image,
  };
};

const configurationOf = (
  facts: DaemonFacts,
  isReady: boolean,
): Pick<
  HealthDocument,
  | 'repo'
  | 'compiled_boot_mode'
  | 'compiled_checkout'
  | 'agent_config_etag'
  | 'runtime'
  | 'runtime_truth'
  | 'config_provider'
> => {
  const known = facts.configuration;
  const etag = known?.agentConfigEtag ?? null;
  const running = {
    harness: facts.harnessId,
    version: facts.harness?.version ?? null,
    release_id: null,
    agent_config_etag: etag,
  };
  return {
    repo: known?.repository ?? null,
    compiled_boot_mode: known === null ? null : 'claim',
    compiled_checkout: known?.commit ?? null,
    agent_config_etag: etag,
    runtime: { state: isReady ? 'converged' : 'starting', running: isReady ? running : null },
    runtime_truth: known === null ? null : truthOf(known, facts.daemonVersion),
    config_provider:
      known === null
        ? null
        : {
            provider: 'git',
            expected_sha: known.commit,
            actual_sha: facts.checkout === null || known.fallbackReason !== null ? null : known.commit,
            fallback_reason: known.fallbackReason?.slice(0, 512) ?? null,
          },
  };
};

/** The document. `runtimeReady` needs the session branch, no boot error and a ready harness. Source: A21, A22. */
export const healthDocumentOf = (facts: DaemonFacts): HealthDocument => {
  const harness = harnessOf(facts);
  const repoReady = facts.checkout !== null && facts.onBranch;
  const runtimeReady = repoReady && harness.ready && facts.bootError === null;
  const { turnId, sinceMs, openRequests } = facts.activity;
  const working = turnId === null ? 'Idle' : openRequests > 0 ? 'WaitingForInput' : 'Working';
  return {
    daemon: 'ok',
    daemon_version: facts.daemonVersion,
    capabilities: [...facts.hostCapabilities, ...facts.harnessCapabilities],
    status: runtimeReady
      ? 'ok'
      : facts.bootError !== null
        ? 'error'
        : harness.state === 'ok'
          ? 'starting'
          : harness.state,
    runtimeReady,
    boot_error: facts.bootError?.message.slice(0, 1_024) ?? null,
    boot_error_category: facts.bootError?.category ?? null,
    workload: 'session',
    uptime_s: Math.floor(facts.uptimeMs / 1_000),
    static_web_port: null,
    repo_required: true,
    repo_ready: repoReady,
    ...configurationOf(facts, harness.ready),
    branch: facts.checkout?.branch ?? facts.sessionBranch,
    commit_sha: facts.checkout?.commit ?? null,
    push_error: facts.pushError?.slice(0, 1_024) ?? null,
    harness,
    config: {
      release_id: null,
      desired_release_id: null,
      source: 'workspace',
      mode: 'off',
      proven: harness.ready,
      fallback_reason: null,
      failed_release_id: null,
    },
    turn_in_flight: facts.turn?.in_flight ?? null,
    turn_end: facts.turn?.end ?? null,
    turn_orphaned_prompt: facts.turn?.orphaned_prompt ?? null,
    activity: { state: working, since: new Date(sinceMs).toISOString(), turnId },
    boot_timeline: facts.timeline.slice(0, 64).map(({ stage, atMs }) => ({ stage, atMs: Math.round(atMs) })),
    isolation: facts.isolation,
    auth: facts.hasCredential ? 'configured' : 'unconfigured',
  };
};

/** What of a document is news: everything but the running clock. */
export const newsOf = (document: HealthDocument): string => JSON.stringify({ ...document, uptime_s: 0 });
