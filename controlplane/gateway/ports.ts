// What the gateway needs from outside. Must not know SQL, Kubernetes or how a credential is proven.
import type { Clock } from '#base/clock.ts';
import type { ExchangeRequest, ExchangeResponse } from '#base/http/exchange.ts';
import type { Logger } from '#base/log.ts';
import type { SandboxIdentity } from '../app/ports.ts';
import type { ReadProviderKeys, ReadRegistry } from '../app/provider-ports.ts';
import type { CeilingOfRun } from '../app/run-ceiling.ts';
import type { RunningCalls } from '../app/running-calls.ts';
import type { BudgetRefusal, Budgets, Limits } from './budgets.ts';
import type { Upstreams } from './upstream.ts';

/** One call from a sandbox, as it is mounted. */
export type GatewayCall = Readonly<{
  identity: SandboxIdentity;
  requestId: string;
  request: ExchangeRequest;
  response: ExchangeResponse;
}>;

/** One model call, as it is kept. Units: tokens, bytes, milliseconds, micro-USD. `at` is when it began, RFC 3339. */
export type UsageRow = Readonly<{
  /** A UUID; of a call of a sandbox it is the id of its request, as in logs and in `x-request-id`. */
  id: string;
  at: string;
  namespace: string;
  projectUid: string;
  sessionUid: string;
  generation: number;
  turnId: string | null;
  /** Name of the agent that called, as the relay says; for sums only. */
  agent: string | null;
  /** The model that was asked for, as `provider/model`. */
  model: string;
  /** The model that answered, as its provider calls it. */
  servedModel: string | null;
  /** The model that was asked for when another one of the fallback list answered; null otherwise. */
  fallbackFrom: string | null;
  status: number;
  code: string | null;
  promptTokens: number;
  cachedTokens: number;
  completionTokens: number;
  estimated: boolean;
  costMicroUsd: number;
  firstByteMs: number | null;
  durationMs: number;
  requestBytes: number;
  responseBytes: number;
}>;

/** Keeps usage rows: in memory until they are stored, on disk while the database is away. */
export type UsageRecorder = Readonly<{
  /** Never waits and never throws. */
  record: (row: UsageRow) => void;
  /** True when so much waits for the database that no more calls may be made. */
  isFull: () => boolean;
}>;

/** Whether a project uses the gateway, and for which models; `allowed` null is all. Undefined: no such project. */
export type FindProjectPolicy = (
  projectUid: string,
) => Readonly<{ gateway: boolean; allowed: readonly string[] | null }> | undefined;

/** The model that a role name stands for now, as `provider/model`; undefined for a role that is unknown or off. */
export type ResolveRole = (role: string, identity: SandboxIdentity) => Promise<string | undefined>;

/** The limits that count for a session's calls now. */
export type FindLimits = (identity: SandboxIdentity, atMs: number) => Limits;

/** Is told that a call was refused for a budget; never waits and never throws. */
export type OnBudgetReached = (
  reached: Readonly<{ identity: SandboxIdentity; turnId: string | null; refusal: BudgetRefusal }>,
) => void;

/** What happened to a call, for metrics. */
export type GatewayOutcome =
  | 'ok'
  | 'refused'
  | 'budget'
  | 'provider_error'
  | 'incomplete'
  | 'client_left'
  | 'revoked'
  | 'timed_out';

/** What is told of an ended call, for metrics. `provider`: that of the last attempt; empty before any. */
export type CallEnded = Readonly<{
  provider: string;
  outcome: GatewayOutcome;
  firstByteMs: number | null;
  durationMs: number;
  promptTokens: number;
  completionTokens: number;
  costMicroUsd: number;
}>;

/** Sees what happens, for metrics; must not throw. */
export type ObserveGateway = Readonly<{
  ended: (call: CallEnded) => void;
  /** A call went to a model of the fallback list. */
  fellBack: (reason: 'rate_limited' | 'provider_failed' | 'provider_timed_out' | 'provider_auth_failed') => void;
  /** A call was made again with another key of the pool. */
  rotated: () => void;
}>;

/** The gateway's ports. `maxRequestBytes`: the request ceiling; 0 is none but the gateway's own. */
export type GatewayPorts = Readonly<{
  readRegistry: ReadRegistry;
  findProjectPolicy: FindProjectPolicy;
  readKeys: ReadProviderKeys;
  resolveRole: ResolveRole;
  findLimits: FindLimits;
  budgets: Budgets;
  onBudgetReached: OnBudgetReached;
  /** Takes one call of a session: undefined when it may go on, else how long to wait. Units: milliseconds. */
  takeCall: (sessionUid: string) => number | undefined;
  upstreams: Upstreams;
  /** Is told of each call while it runs. */
  running: Pick<RunningCalls, 'begin' | 'end'>;
  usage: UsageRecorder;
  clock: Clock;
  log: Logger;
  maxRequestBytes: number;
  /** Largest request of a run, by the settings that it was given; absent is `maxRequestBytes` alone. Units: bytes. */
  ceilingOfRun?: CeilingOfRun | undefined;
  observe: ObserveGateway;
}>;
