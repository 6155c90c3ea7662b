// What the parts of the daemon have reported, in one place for the health document. Whoever listens is told of changes.
// Must not decide anything. Source: A19 to A28, A190.
import type { HarnessHealth } from '#daemon/harness/contract/adapter.ts';
import type { DaemonFacts } from './health/health-document.ts';

/** What can be reported. */
export type Reported = {
  harnessId: string;
  harness: HarnessHealth | null;
  harnessCapabilities: readonly string[];
  bootError: DaemonFacts['bootError'];
  checkout: DaemonFacts['checkout'];
  configuration: DaemonFacts['configuration'];
  onBranch: boolean;
  sessionBranch: string | null;
  pushError: string | null;
  isolation: DaemonFacts['isolation'];
  hasCredential: boolean;
  turnId: string | null;
  sinceMs: number;
  openRequests: number;
};

/** The state of one daemon. */
export type DaemonState = Readonly<{
  /** Takes over what is given and tells the listener. */
  report: (news: Partial<Reported>) => void;
  read: () => Readonly<Reported>;
  /** Notes that a stage of the boot is through, once. Stages: listening, claimed, isolated, checked-out, ready. */
  reach: (stage: string) => void;
  /** `turn`: how a turn stands, when somebody asked. */
  facts: (turn?: DaemonFacts['turn']) => DaemonFacts;
  onChange: (listener: () => void) => void;
}>;

/** The state of a daemon that has just begun. `uptimeMs` counts from the start of the process. */
export const createDaemonState = (
  ports: Readonly<{ daemonVersion: string; harnessId: string; uptimeMs: () => number; nowMs: () => number }>,
): DaemonState => {
  const reported: Reported = {
    harnessId: ports.harnessId,
    harness: null,
    harnessCapabilities: [],
    bootError: null,
    checkout: null,
    configuration: null,
    onBranch: false,
    sessionBranch: null,
    pushError: null,
    isolation: 'not-probed',
    hasCredential: false,
    turnId: null,
    sinceMs: ports.nowMs(),
    openRequests: 0,
  };
  const timeline: Readonly<{ stage: string; atMs: number }>[] = [];
  let listener = (): void => {};
  return {
    report: (news) => {
      Object.assign(reported, news);
      listener();
    },
    read: () => reported,
    reach: (stage) => {
      if (timeline.some((entry) => entry.stage === stage)) return;
      timeline.push({ stage, atMs: ports.uptimeMs() });
      listener();
    },
    facts: (turn = null) => ({
      turn,
      daemonVersion: ports.daemonVersion,
      harnessId: reported.harnessId,
      hostCapabilities: [],
      harnessCapabilities: reported.harnessCapabilities,
      harness: reported.harness,
      bootError: reported.bootError,
      checkout: reported.checkout,
      configuration: reported.configuration,
      onBranch: reported.onBranch,
      sessionBranch: reported.sessionBranch,
      pushError: reported.pushError,
      activity: { turnId: reported.turnId, sinceMs: reported.sinceMs, openRequests: reported.openRequests },
      timeline: [...timeline],
      isolation: reported.isolation,
      hasCredential: reported.hasCredential,
      uptimeMs: ports.uptimeMs(),
    }),
    onChange: (next) => {
      listener = next;
    },
  };
};
