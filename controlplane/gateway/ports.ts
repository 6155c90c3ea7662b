// What the gateway needs from outside. Must not know SQL, Kubernetes or how a credential is proven.
import type { Clock } from '#base/clock.ts';
import type { Logger } from '#base/log.ts';
import type { ReadProviderKeys, ReadRegistry } from '../app/provider-ports.ts';
import type { Upstreams } from './upstream.ts';

/** One model call, as it is kept. Units: tokens, bytes, milliseconds, micro-USD. `at` is when it began, RFC 3339. */
export type UsageRow = Readonly<{
  id: string;
  at: string;
  namespace: string;
  projectUid: string;
  sessionUid: string;
  generation: number;
  turnId: string | null;
  model: string;
  servedModel: string | null;
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

/** What happened to a call, for metrics. */
export type GatewayOutcome = 'ok' | 'refused' | 'provider_error' | 'incomplete' | 'client_left' | 'timed_out';

/** The gateway's ports. `maxRequestBytes`: the request ceiling; 0 is none but the gateway's own. */
export type GatewayPorts = Readonly<{
  readRegistry: ReadRegistry;
  findProjectPolicy: FindProjectPolicy;
  readKeys: ReadProviderKeys;
  upstreams: Upstreams;
  usage: UsageRecorder;
  clock: Clock;
  newId: () => string;
  log: Logger;
  maxRequestBytes: number;
  onOutcome: (outcome: GatewayOutcome, firstByteMs: number | null) => void;
}>;
