// The health document from what the parts of the daemon reported: nothing is asked, so it never waits.
// Pure. Must not know who reports. Source: A19 to A28.
import type { HarnessHealth } from '#daemon/harness/contract/adapter.ts';
import type { HealthDocument, TurnBlock } from '#schema/wire/health.ts';

/** What is known at one moment. `null` in `harness`: none was started yet. Times: milliseconds. */
export type DaemonFacts = Readonly<{
  daemonVersion: string;
  harnessId: string;
  hostCapabilities: readonly string[];
  harnessCapabilities: readonly string[];
  harness: HarnessHealth | null;
  bootError: Readonly<{ category: NonNullable<HealthDocument['boot_error_category']>; message: string }> | null;
  checkout: Readonly<{ branch: string; commit: string }> | null;
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
    repo: null,
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
