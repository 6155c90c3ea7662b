// One connection to the API server as requests and watches: time limits, retries, pacing, metrics, the server's clock.
// Must not know what the objects mean, nor how a verb is written; client.ts does.
import { backoffMs, REQUEST_BACKOFF } from '#base/backoff.ts';
import { type Clock, sleep } from '#base/clock.ts';
import { UnavailableError } from '#base/errors.ts';
import type { Instruments } from '#base/metrics.ts';
import { onAbort } from '#base/on-abort.ts';
import type { KUBE_METRICS } from '#schema/metrics.ts';
import type { Connection, RawResponse } from './connection.ts';
import { isServerFailure, KubeError, readKubeError, readRetryAfterMs, toBeeuniError } from './errors.ts';
import { FailureGate } from './failure-gate.ts';
import { pathOf, type ResourceType } from './resource-types.ts';
import { ServerTime } from './server-time.ts';
import { readWatchEvents, type WatchEvent } from './watch-stream.ts';

/** Verbs as they appear in metrics. */
export type KubeVerb = 'get' | 'list' | 'watch' | 'create' | 'delete' | 'apply' | 'patch';

/** Values of a query string; what is undefined is left out. */
export type KubeQuery = Readonly<Record<string, string | number | boolean | undefined>>;

/** One request with a JSON answer. */
export type KubeRequest = Readonly<{
  verb: KubeVerb;
  type: ResourceType;
  /** Absolute, without query. */
  path: string;
  query?: KubeQuery | undefined;
  body?: unknown;
  /** Of the body; `application/json` when absent. */
  contentType?: string | undefined;
  accept?: string | undefined;
  /** True when sending it twice does what sending it once does; then it is tried up to four times. C17. */
  idempotent: boolean;
  /** False for reads and reviews: they pass a closed write guard. */
  mutates: boolean;
  /** For all attempts together. Units: milliseconds; 30_000 when absent. */
  timeoutMs?: number | undefined;
  /** 4 when absent; 1 for callers that pace themselves. */
  attempts?: number | undefined;
  signal?: AbortSignal | undefined;
  /** Asked at the last moment before each attempt; when it says false, nothing is sent. Source: K29. */
  mayStart?: (() => boolean) | undefined;
}>;

/** Which objects a list or a watch covers. `metadataOnly` asks for PartialObjectMetadata. */
export type Selection = Readonly<{
  namespace?: string | undefined;
  labelSelector?: string | undefined;
  fieldSelector?: string | undefined;
  metadataOnly?: boolean | undefined;
}>;

/** How a watch is opened. `timeoutSeconds` is the server's limit; bookmarks are always asked for. */
export type WatchOptions = Selection &
  Readonly<{ resourceVersion: string; timeoutSeconds: number; signal: AbortSignal }>;

/** What a client needs. */
export type ClientPorts = Readonly<{
  connection: Connection;
  clock: Clock;
  random: () => number;
  metrics: Pick<
    Instruments<typeof KUBE_METRICS>,
    'k8sRequestsTotal' | 'k8sRequestDurationSeconds' | 'k8sConflictsTotal' | 'k8sThrottledTotal' | 'k8sOpenConnections'
  >;
  /** Sent as `User-Agent`, for example `beeuni-operator/0.1.0`. */
  userAgent: string;
}>;

/** Body type of everything but patches. */
export const JSON_TYPE = 'application/json';
/** Asks for one object as PartialObjectMetadata. */
export const METADATA_TYPE = `${JSON_TYPE};as=PartialObjectMetadata;g=meta.k8s.io;v=v1`;
const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_ATTEMPTS = 4;
const WATCH_HEADERS_TIMEOUT_MS = 30_000;

const METHODS = {
  get: 'GET',
  list: 'GET',
  watch: 'GET',
  create: 'POST',
  delete: 'DELETE',
  apply: 'PATCH',
  patch: 'PATCH',
} as const;

const withQuery = (path: string, query: KubeQuery): string => {
  const parts = Object.entries(query)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`);
  return parts.length === 0 ? path : `${path}?${parts.join('&')}`;
};

/** A signal that fires with the caller's or after a time; `done` must be called. */
const limited = (clock: Clock, timeoutMs: number, signal: AbortSignal | undefined) => {
  const controller = new AbortController();
  let timedOut = false;
  const cancel = clock.startTimer(timeoutMs, () => {
    timedOut = true;
    controller.abort();
  });
  const forget = signal && onAbort(signal, () => controller.abort(signal.reason));
  return {
    signal: controller.signal,
    timedOut: () => timedOut,
    /** Leaves the caller's signal linked. */
    stopTimer: cancel,
    done: () => {
      cancel();
      forget?.();
    },
  };
};

const noAnswer = (cause: unknown, timedOut: boolean): KubeError =>
  timedOut
    ? new KubeError(0, 'TimedOut', 'the API server did not answer in time', { cause })
    : new KubeError(0, 'NoAnswer', 'the connection to the API server broke', { cause });

const notHeld = (): UnavailableError =>
  new UnavailableError('not_ready', 'this process no longer surely holds its lease, so it writes nothing');

/** Sends one request; resolves with its parsed JSON answer. Errors: BeeuniError classes with a KubeError as cause. */
export type Send = (request: KubeRequest) => Promise<unknown>;

/** What the verbs of a client are made of. */
export type Transport = Readonly<{
  send: Send;
  /** Opens a watch; resolves when its headers are there. Ends when the server closes it, throws on anything else. */
  watch: (type: ResourceType, options: WatchOptions) => Promise<AsyncGenerator<WatchEvent, void>>;
  /** Time of the API server. Units: milliseconds since 1970; our wall clock before the first answer. Source: K20. */
  serverNowMs: () => number;
  /** Namespace of the kubeconfig's context or of the pod. */
  namespace: () => string | undefined;
  close: () => Promise<void>;
}>;

/** The transport over an open connection; it has no effect until it is used. */
export const makeTransport = (ports: ClientPorts): Transport => {
  const { connection, clock, random, metrics, userAgent } = ports;
  const time = new ServerTime();
  const gate = new FailureGate({ clock, onThrottled: () => metrics.k8sThrottledTotal.inc({}) });

  /** One attempt, and one more with fresh credentials after a 401. Errors: KubeError. */
  const exchange = async <T>(request: KubeRequest, signal: AbortSignal, read: (answer: RawResponse) => Promise<T>) => {
    const { verb, type } = request;
    const headers: Record<string, string> = { accept: request.accept ?? JSON_TYPE, 'user-agent': userAgent };
    if (request.body !== undefined) headers['content-type'] = request.contentType ?? JSON_TYPE;
    for (let reloaded = false; ; reloaded = true) {
      const sentMs = clock.monotonicMs();
      let code = 0;
      let started = false;
      try {
        const answer = await connection.send({
          method: METHODS[verb],
          path: withQuery(request.path, request.query ?? {}),
          headers,
          body: request.body === undefined ? undefined : JSON.stringify(request.body),
          stream: verb === 'watch',
          signal,
          onStart: () => {
            if (request.mayStart?.() === false) throw notHeld();
            started = true;
          },
        });
        code = answer.status;
        time.observe(answer.headers['date'], sentMs, clock.monotonicMs());
        if (code < 400) return await read(answer);
        const error = readKubeError(
          code,
          await answer.text(),
          readRetryAfterMs(answer.headers['retry-after'], clock.nowMs()),
        );
        if (code !== 401 || reloaded) throw error;
        await connection.reload();
      } finally {
        if (started) {
          metrics.k8sRequestsTotal.inc({ verb, kind: type.kind, code: String(code) });
          metrics.k8sRequestDurationSeconds.observe({ verb, kind: type.kind }, (clock.monotonicMs() - sentMs) / 1_000);
        }
        if (code === 409) metrics.k8sConflictsTotal.inc({ kind: type.kind });
        metrics.k8sOpenConnections.set({}, connection.openConnections());
      }
    }
  };

  const attempt = async <T>(
    request: KubeRequest,
    limit: ReturnType<typeof limited>,
    read: (answer: RawResponse) => Promise<T>,
  ): Promise<T> => {
    const { plural } = request.type;
    await gate.enter(plural, limit.signal);
    try {
      limit.signal.throwIfAborted();
      const result = await exchange(request, limit.signal, read);
      gate.succeeded(plural);
      return result;
    } catch (cause) {
      if (cause instanceof UnavailableError) throw cause;
      if (cause instanceof KubeError) {
        if (isServerFailure(cause)) gate.failed(plural, cause.retryAfterMs);
        else gate.succeeded(plural);
        throw cause;
      }
      // The caller's own abort says nothing about the server.
      if (request.signal?.aborted !== true) gate.failed(plural);
      throw noAnswer(cause, limit.timedOut());
    }
  };

  const call = async <T>(request: KubeRequest, read: (answer: RawResponse) => Promise<T>): Promise<T> => {
    const timeoutMs = request.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    const deadlineMs = clock.monotonicMs() + timeoutMs;
    const limit = limited(clock, timeoutMs, request.signal);
    try {
      const attempts = request.idempotent ? (request.attempts ?? DEFAULT_ATTEMPTS) : 1;
      for (let n = 1; ; n += 1) {
        try {
          return await attempt(request, limit, read);
        } catch (error) {
          if (!(error instanceof KubeError)) throw error;
          const pauseMs = Math.max(error.retryAfterMs ?? 0, backoffMs(REQUEST_BACKOFF, n, random));
          const again = n < attempts && isServerFailure(error) && clock.monotonicMs() + pauseMs < deadlineMs;
          if (!again || !(await sleep(clock, pauseMs, limit.signal))) {
            throw toBeeuniError(error, `${request.verb} ${request.type.kind} ${request.path}`);
          }
        }
      }
    } finally {
      limit.done();
    }
  };

  return {
    send: (request) =>
      call(request, async (answer) => {
        const text = await answer.text();
        try {
          return JSON.parse(text) as unknown;
        } catch (cause) {
          throw new KubeError(0, 'NoAnswer', 'the answer of the API server is not JSON', { cause });
        }
      }),
    watch: async (type, options) => {
      const request: KubeRequest = {
        verb: 'watch',
        type,
        path: pathOf(type, { namespace: options.namespace }),
        query: {
          watch: true,
          allowWatchBookmarks: true,
          resourceVersion: options.resourceVersion,
          timeoutSeconds: options.timeoutSeconds,
          labelSelector: options.labelSelector,
          fieldSelector: options.fieldSelector,
        },
        accept: options.metadataOnly === true ? METADATA_TYPE : JSON_TYPE,
        idempotent: true,
        mutates: false,
        signal: options.signal,
      };
      // The time limit ends with the headers; the body lives until the caller's signal or the server ends it.
      const limit = limited(clock, WATCH_HEADERS_TIMEOUT_MS, options.signal);
      try {
        const chunks = await attempt(request, limit, async (answer) => answer.chunks);
        limit.stopTimer();
        return readBody(chunks, options.signal, limit.done);
      } catch (error) {
        limit.done();
        throw error instanceof KubeError ? toBeeuniError(error, `watch ${type.kind}`) : error;
      }
    },
    serverNowMs: () => time.at(clock.monotonicMs()) ?? clock.nowMs(),
    namespace: connection.namespace,
    close: connection.close,
  };
};

const readBody = async function* (
  chunks: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
  done: () => void,
): AsyncGenerator<WatchEvent, void> {
  try {
    yield* readWatchEvents(chunks);
  } catch (cause) {
    if (signal.aborted) return;
    throw toBeeuniError(cause instanceof KubeError ? cause : noAnswer(cause, false), 'watch');
  } finally {
    done();
  }
};
