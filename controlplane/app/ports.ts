// What the rules of the control plane need from outside, as function types. Whoever fills them is wired in main.ts.
// Must not know SQL, Kubernetes clients, git or HTTP.
import type { TurnErrorCode, TurnOutcome } from '#schema/events/envelope.ts';
import type { Project } from '#schema/resources/project.ts';
import type { Session } from '#schema/resources/session.ts';
import type { ProcessLimits } from '#schema/settings/budgets.ts';
import type {
  ClaimedModel,
  ClaimedPackage,
  ClaimedProjectTool,
  ClaimedRole,
  CompiledAgent,
  ConfigDirs,
} from '#schema/wire/claim.ts';

/** The Session whose `status.pod.uid` is this pod, from the cache. */
export type FindSessionByPodUid = (podUid: string) => Session | undefined;
/** The Session of this uid, from the cache. */
export type FindSessionByUid = (uid: string) => Session | undefined;
/** The Project of this namespace and name, from the cache. */
export type FindProject = (namespace: string, name: string) => Project | undefined;

/** A session that was moved to another agent. */
export type AgentRepoint = Readonly<{ from: string; to: string }>;

/** What a claim needs to know of project and session beyond the custom resources. */
export type ClaimSettings = Readonly<{
  baseBranch: string;
  /** Commit of the base branch that configuration was read from. */
  baseCommit: string;
  agents: readonly CompiledAgent[];
  agent: string | null;
  /** The session names an agent that is not declared any more, and runs on another one. Source: A105. */
  agentRepoint?: AgentRepoint | undefined;
  /** Tools of Beeuni that are loaded; absent is all of them. */
  beeuniTools?: readonly string[] | undefined;
  projectTools?: readonly ClaimedProjectTool[] | undefined;
  configDirs?: ConfigDirs | undefined;
  /** Packages of the harness pi for the session's agent. */
  piPackages?: readonly ClaimedPackage[] | undefined;
  model: ClaimedModel | null;
  models: readonly ClaimedModel[];
  author: Readonly<{ name: string; email: string }>;
  /** Granted project secrets. */
  env: Readonly<Record<string, string>>;
  envRevision: number;
  maxModelRequestBytes: number;
  roles?: readonly ClaimedRole[] | undefined;
  limits?: ProcessLimits | undefined;
}>;

/** Settings of a claim, or why it has to wait. Errors: UnavailableError. */
export type ClaimConfig = (
  session: Session,
  project: Project,
) => Promise<ClaimSettings | Readonly<{ wait: 'project_not_synced' }>>;

/** Who calls with a session credential. */
export type SandboxIdentity = Readonly<{
  sessionUid: string;
  generation: number;
  podUid: string;
  namespace: string;
  projectUid: string;
}>;

/**
 * The session behind a credential, or undefined for one that nobody issued. Cached for at most 5 s.
 * Errors: ConflictError `superseded` when a newer claim exists, UnavailableError `database_unavailable`.
 */
export type FindSessionByCredential = (
  credential: string,
) => Promise<SandboxIdentity | undefined> | SandboxIdentity | undefined;

/** Turns a secret text into bytes that are safe to store; `context` must be given again to open it. */
export type Seal = (plain: string, context: string) => Buffer;
/** Opens what `Seal` made. Errors: a plain Error when key, context or bytes do not fit. */
export type Unseal = (sealed: Buffer, context: string) => string;

/** Random bytes from the system. */
export type RandomBytes = (count: number) => Buffer;

/** What is known when a turn ends. `attempt` counts the tries of its prompt, from 1. */
export type EndedTurn = Readonly<{
  outcome: TurnOutcome;
  code: TurnErrorCode | null;
  message: string | null;
  abortAsked: boolean;
  attempt: number;
  harness: string | null;
  /** RFC 3339. `startedAt` is null for a turn that never began. */
  startedAt: string | null;
  endedAt: string;
}>;

/** What becomes of it. `requeue`: the prompt waits again, so this end is not final. */
export type TurnVerdict = Readonly<{
  requeue: boolean;
  outcome: TurnOutcome;
  code: TurnErrorCode | null;
  message: string | null;
}>;

/** Decides about the end of a turn; pure. */
export type DecideTurnEnd = (ended: EndedTurn) => TurnVerdict;
