// The claim: a pod proves who it is and becomes the one daemon of its session, or waits until it has one.
// Must not know tokens, SQL or HTTP. Source: D6, D7, 10-kubernetes §8.
import type { Clock } from '#base/clock.ts';
import { ConflictError } from '#base/errors.ts';
import { defaultBranchName } from '#kube/names.ts';
import type { Session } from '#schema/resources/session.ts';
import type { ClaimAnswer, ClaimRequest } from '#schema/wire/claim.ts';
import type { CallerOf } from './caller.ts';
import type { ClaimConfig, ClaimSettings, FindProject, FindSessionByPodUid } from './ports.ts';
import type { ClaimInput, SessionKey, StoredClaim, StoredCredential } from './session-records.ts';
import type { Waker } from './waker.ts';

/** What claims need. */
export type ClaimsPorts = Readonly<{
  findSessionByPodUid: FindSessionByPodUid;
  findProject: FindProject;
  claimConfig: ClaimConfig;
  keyOf: (session: Session) => SessionKey;
  /** The next generation, or undefined for a session that is closed. */
  storeClaim: (input: ClaimInput) => Promise<StoredClaim | undefined>;
  /** A new session credential: the text for the daemon, and what is stored of it. */
  newCredential: () => Readonly<{ text: string; stored: StoredCredential }>;
  /** A new random text that the control plane will present to the daemon. */
  newDaemonCredential: () => string;
  /** Makes that text safe to store for this session. */
  sealDaemonCredential: (text: string, sessionUid: string) => Buffer;
  /** Woken with pod uids and project uids when something about them changed. */
  waker: Waker;
  clock: Clock;
  /** Paths on the sandbox listener. */
  gitPath: (session: Session) => string;
  gatewayPath: string;
  /** Told after a claim, so that answers about older credentials are not remembered. */
  onClaimed: (sessionUid: string) => void;
}>;

/** A pod's caller identity. */
export type PodCaller = CallerOf<'pod'>;

/** Why a claim has to be sent again. */
export type ClaimWait = Readonly<{ state: 'wait'; reason: 'not_assigned' | 'project_not_synced' }>;

/** Answers a claim. Errors: ConflictError `harness_mismatch`, `superseded`; UnavailableError. */
export type Claim = (caller: PodCaller, request: ClaimRequest, signal: AbortSignal) => Promise<ClaimAnswer | ClaimWait>;

/** Longest time that a claim is held. Source: schema/wire/claim.ts. Units: milliseconds. */
export const CLAIM_HOLD_MS = 25_000;

const isUnattended = ({ spec }: Session): boolean => spec.mode === 'Task' || spec.source.kind !== 'User';

const checkHarness = (session: Session, harness: string, request: ClaimRequest): void => {
  if (request.harness === undefined || request.harness === harness) return;
  throw new ConflictError(
    'harness_mismatch',
    `the pod was made for harness ${request.harness}, session ${session.metadata.name} runs ${harness}`,
  );
};

type Ready = Readonly<{
  session: Session;
  project: SessionKey & { projectName: string };
  repository: string;
  harness: string;
  settings: ClaimSettings;
}>;

/** Makes the claim. */
export const makeClaim = (ports: ClaimsPorts): Claim => {
  const assigned = (caller: PodCaller): Session | undefined => {
    const session = ports.findSessionByPodUid(caller.podUid);
    const isOurs = session?.metadata.namespace === caller.namespace && session.status?.pod?.name === caller.podName;
    return isOurs && session.metadata.deletionTimestamp === undefined ? session : undefined;
  };

  const look = async (caller: PodCaller, request: ClaimRequest): Promise<Ready | ClaimWait> => {
    const session = assigned(caller);
    const harness = session?.status?.harness?.id;
    if (session === undefined || harness === undefined) return { state: 'wait', reason: 'not_assigned' };
    checkHarness(session, harness, request);
    const project = ports.findProject(session.metadata.namespace, session.spec.projectRef.name);
    const settings = project === undefined ? undefined : await ports.claimConfig(session, project);
    if (project === undefined || settings === undefined || 'wait' in settings) {
      return { state: 'wait', reason: 'project_not_synced' };
    }
    const names = { ...ports.keyOf(session), projectUid: project.metadata.uid, projectName: project.metadata.name };
    return { session, project: names, repository: project.spec.repository.url, harness, settings };
  };

  const bind = async (caller: PodCaller, ready: Ready): Promise<ClaimAnswer> => {
    const { session, project, repository, harness, settings } = ready;
    const { uid, namespace, name } = session.metadata;
    const credential = ports.newCredential();
    const daemonCredential = ports.newDaemonCredential();
    const stored = await ports.storeClaim({
      session: { uid, namespace, name, projectUid: project.projectUid },
      podUid: caller.podUid,
      harness,
      credential: credential.stored,
      daemonCredential: ports.sealDaemonCredential(daemonCredential, uid),
      at: new Date(ports.clock.nowMs()).toISOString(),
      agentRepoint: settings.agentRepoint,
    });
    if (stored === undefined) throw new ConflictError('superseded', `session ${name} is closed`);
    ports.onClaimed(uid);
    return {
      state: 'claimed',
      session: { namespace, name, uid },
      project: { name: project.projectName, uid: project.projectUid },
      generation: stored.generation,
      headSeq: stored.headSeq,
      previous: stored.previous,
      credential: credential.text,
      daemonCredential,
      harness,
      branch: session.spec.branch?.name ?? defaultBranchName(name, uid),
      baseBranch: session.spec.branch?.base ?? settings.baseBranch,
      baseCommit: settings.baseCommit,
      repository,
      gitPath: ports.gitPath(session),
      gatewayPath: ports.gatewayPath,
      author: settings.author,
      agent: settings.agent,
      agents: [...settings.agents],
      ...(settings.beeuniTools === undefined ? {} : { beeuniTools: [...settings.beeuniTools] }),
      projectTools: [...(settings.projectTools ?? [])],
      configDirs: settings.configDirs ?? { opencode: null, pi: null },
      piPackages: [...(settings.piPackages ?? [])],
      model: settings.model,
      models: [...settings.models],
      maxModelRequestBytes: settings.maxModelRequestBytes,
      roles: [...(settings.roles ?? [])],
      ...(settings.limits === undefined ? {} : { limits: { ...settings.limits } }),
      env: { ...settings.env },
      envRevision: settings.envRevision,
      unattended: isUnattended(session),
    };
  };

  /** Keys that may make a waiting claim succeed: its pod's Session, and that Session's Project. */
  const keysOf = (caller: PodCaller): string[] => {
    const session = assigned(caller);
    const project = session && ports.findProject(session.metadata.namespace, session.spec.projectRef.name);
    return project === undefined ? [caller.podUid] : [caller.podUid, project.metadata.uid];
  };

  return async (caller, request, signal) => {
    const end = ports.clock.monotonicMs() + CLAIM_HOLD_MS;
    for (;;) {
      const change = ports.waker.begin(keysOf(caller));
      try {
        const found = await look(caller, request);
        if (!('state' in found)) return await bind(caller, found);
        const leftMs = end - ports.clock.monotonicMs();
        if (leftMs <= 0 || signal.aborted) return found;
        await change.until(leftMs, signal);
      } finally {
        change.cancel();
      }
    }
  };
};
