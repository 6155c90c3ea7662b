// The control plane as the operator sees it: calls as ports, and the stream of facts.
// Must not know plans. Source: 10-kubernetes §6.
import { NotFoundError } from '#base/errors.ts';
import { type Client, createClient } from '#base/http/client.ts';
import {
  closeProjectRoute,
  closeSessionRoute,
  FACTS_HEARTBEAT_INTERVAL_MS,
  type FactsFrame,
  factsRoute,
  type ProjectFact,
  podGoneRoute,
  type SyncRequest,
  secretChangedRoute,
  stopSessionRoute,
  syncProjectRoute,
} from '#schema/wire/sync.ts';

/** What ends an attempt. */
export type StopRequest = Readonly<{
  podUid: string;
  attempt: number;
  reason: string;
  turn: 'none' | 'wait' | 'abort';
  deadlineSeconds: number;
}>;

/**
 * The calls. All are idempotent and reject with BeeuniErrors: UnavailableError when the control plane does not answer,
 * ConflictError `not_idle` for a fence that was refused.
 */
export type InternalApi = Readonly<{
  syncProject: (namespace: string, name: string, request: SyncRequest, signal: AbortSignal) => Promise<ProjectFact>;
  stopSession: (uid: string, request: StopRequest, signal: AbortSignal) => Promise<'stopped' | 'draining'>;
  closeSession: (uid: string, reason: string, signal: AbortSignal) => Promise<void>;
  reportPodGone: (uid: string, podUid: string, reason: string, signal: AbortSignal) => Promise<void>;
  closeProject: (uid: string, reason: string, signal: AbortSignal) => Promise<void>;
  secretChanged: (uid: string, secretName: string, resourceVersion: string, signal: AbortSignal) => Promise<void>;
  /** Frames after a cursor; rejects when nothing comes for longer than two heartbeats. */
  facts: (after: string | undefined, signal: AbortSignal) => Promise<AsyncGenerator<FactsFrame>>;
}>;

/** Where the control plane is. `token` gives the operator's service-account token of the moment. */
export type InternalApiOptions = Readonly<{
  baseUrl: string;
  token: () => Promise<string | undefined>;
  fetch?: typeof fetch | undefined;
}>;

/** Of one call; the sync has a longer one, as it may fetch a repository. Units: milliseconds. */
const CALL_TIMEOUT_MS = 10_000;
const SYNC_TIMEOUT_MS = 25_000;

/** What the control plane does not know needs no ending. */
const unknownIsDone = async (call: Promise<unknown>): Promise<void> => {
  try {
    await call;
  } catch (error) {
    if (!(error instanceof NotFoundError)) throw error;
  }
};

/** The internal API over HTTP. */
export const makeInternalApi = (options: InternalApiOptions): InternalApi => {
  const client: Client = createClient({
    baseUrl: options.baseUrl,
    token: options.token,
    peer: 'the control plane',
    unreachable: 'control_plane_unavailable',
    fetch: options.fetch,
  });
  const settings = (signal: AbortSignal) => ({ signal, timeoutMs: CALL_TIMEOUT_MS });
  return {
    syncProject: async (namespace, name, body, signal) => {
      const input = { params: { namespace, name }, body };
      return (await client.call(syncProjectRoute, input, { signal, timeoutMs: SYNC_TIMEOUT_MS })).body;
    },
    stopSession: async (uid, body, signal) => {
      const answer = await client.call(stopSessionRoute, { params: { uid }, body }, settings(signal));
      return answer.body.state;
    },
    closeSession: (uid, reason, signal) =>
      unknownIsDone(client.call(closeSessionRoute, { params: { uid }, body: { reason } }, settings(signal))),
    reportPodGone: (uid, podUid, reason, signal) =>
      unknownIsDone(client.call(podGoneRoute, { params: { uid }, body: { podUid, reason } }, settings(signal))),
    closeProject: (uid, reason, signal) =>
      unknownIsDone(client.call(closeProjectRoute, { params: { uid }, body: { reason } }, settings(signal))),
    secretChanged: async (uid, secretName, resourceVersion, signal) => {
      const body = { secretName, resourceVersion };
      await client.call(secretChangedRoute, { params: { uid }, body }, settings(signal));
    },
    facts: (after, signal) =>
      client.ndjson(
        factsRoute,
        { query: after === undefined ? {} : { after } },
        { signal, timeoutMs: CALL_TIMEOUT_MS, silenceMs: FACTS_HEARTBEAT_INTERVAL_MS * 2 },
      ),
  };
};
