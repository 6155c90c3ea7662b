// One model call: judged by registry and project, sent on with the provider's key, streamed back byte for byte, metered
// from a copy. The upstream comes from the registry alone; nothing in a request can change host, headers or key.
// Must not know SQL, Kubernetes or fastify. Source: 20-control-plane §5.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Dispatcher } from 'undici';
import { BeeuniError, ForbiddenError, LimitError, UnavailableError } from '#base/errors.ts';
import { checkModelName, isModelAllowed } from '#schema/rules/check-model.ts';
import { TURN_HEADER } from '#schema/wire/gateway.ts';
import type { SandboxIdentity } from '../app/ports.ts';
import type { RegisteredProvider } from '../app/provider-ports.ts';
import { readBounded } from './body.ts';
import { costMicroUsd, type Meter, type Metered, makeJsonMeter, makeSseMeter, tokensOf } from './meter.ts';
import { findModelSpan, withModel } from './model-span.ts';
import type { GatewayOutcome, GatewayPorts } from './ports.ts';
import { type CallWatch, watchCall } from './watch.ts';
import { bodyOf, errorBody, finalError, type GatewayError, refusalError, retryableError } from './wording.ts';

/** One call from a sandbox, as mountRaw gives it. */
export type GatewayCall = Readonly<{
  identity: SandboxIdentity;
  requestId: string;
  /** Fires when the response closed before it was finished: the client left. */
  signal: AbortSignal;
  request: IncomingMessage;
  response: ServerResponse;
}>;

/** Largest body, whatever the ceiling says. Units: bytes. */
export const MAX_GATEWAY_BODY_BYTES = 268_435_456;
/** Most of an error answer that is read. Units: bytes. */
const MAX_ERROR_BYTES = 65_536;

/** A call that passed every check. */
type Admitted = Readonly<{
  provider: RegisteredProvider;
  model: RegisteredProvider['models'][number];
  name: string;
  body: readonly Uint8Array[];
  requestBytes: number;
  stream: boolean;
}>;

type Outcome = Readonly<{
  kind: GatewayOutcome;
  status: number;
  code: string | null;
  metered: Metered | undefined;
  firstByteMs: number | null;
}>;

const JSON_TYPE = /^application\/json(?:; ?charset=utf-8)?$/i;

const isGatewayError = (value: unknown): value is GatewayError =>
  typeof value === 'object' && value !== null && 'type' in value && 'status' in value;

/** Answers with an error in OpenAI's shape, if nothing was sent yet. */
const answerError = (call: GatewayCall, error: GatewayError): void => {
  const { response, requestId } = call;
  if (response.headersSent || response.destroyed) return;
  const body = bodyOf(error);
  response.writeHead(error.status, {
    ...error.headers,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    'x-request-id': requestId,
    ...(call.request.complete ? {} : { connection: 'close' }),
  });
  response.end(body);
};

/** An error of ours in the words of the gateway. */
const wordOf = (error: unknown): GatewayError => {
  if (error instanceof ForbiddenError && error.code === 'address_not_allowed') return finalError('address_not_allowed');
  if (error instanceof LimitError)
    return retryableError(429, error.code, error.message, (error.retryAfterMs ?? 1_000) / 1000);
  if (error instanceof UnavailableError) {
    return retryableError(503, error.code, `${error.message}; try again later`, (error.retryAfterMs ?? 2_000) / 1000);
  }
  const code = error instanceof BeeuniError ? error.code : 'internal';
  return retryableError(502, code, 'the gateway could not make this call; try again later', 2);
};

const rootOf = (error: unknown): unknown => {
  let at = error;
  for (let depth = 0; at instanceof Error && at.cause instanceof Error && depth < 8; depth += 1) at = at.cause;
  return at;
};

/** Makes the handler of `POST /gateway/v1/chat/completions`. It answers every call itself and does not reject. */
export const makeChatHandler = (ports: GatewayPorts): ((call: GatewayCall) => Promise<void>) => {
  const { clock } = ports;
  const ceiling = Math.min(
    ports.maxRequestBytes === 0 ? MAX_GATEWAY_BODY_BYTES : ports.maxRequestBytes,
    MAX_GATEWAY_BODY_BYTES,
  );

  const admit = async (call: GatewayCall): Promise<Admitted | GatewayError> => {
    const { headers } = call.request;
    if (!JSON_TYPE.test(headers['content-type'] ?? '') || (headers['content-encoding'] ?? 'identity') !== 'identity') {
      return finalError('unsupported_media_type');
    }
    if (ports.usage.isFull()) {
      return retryableError(503, 'database_unavailable', 'usage cannot be stored now; try again later', 10);
    }
    if (Number(headers['content-length'] ?? 0) > ceiling) return finalError('request_too_large');
    const bytes = await readBounded(call.request, ceiling);
    if (bytes === undefined) return finalError('request_too_large');
    const span = findModelSpan(bytes);
    if (!span.ok) return finalError('invalid_json', span.message);
    const project = ports.findProjectPolicy(call.identity.projectUid);
    if (project === undefined) return finalError('project_not_found');
    if (!project.gateway) return finalError('feature_disabled');
    const { providers } = await ports.readRegistry();
    const verdict = checkModelName(span.model, providers, 'served');
    if (!verdict.valid) return finalError(verdict.code);
    if (!isModelAllowed(span.model, project.allowed)) return finalError('model_not_allowed');
    const provider = providers.find((entry) => entry.id === verdict.provider);
    const model = provider?.models.find((entry) => entry.id === verdict.model);
    if (provider === undefined || model === undefined) return finalError('unknown_model');
    const body = withModel(bytes, span, model.id);
    return { provider, model, name: span.model, body, requestBytes: bytes.length, stream: span.stream };
  };

  const headersFor = async (
    provider: RegisteredProvider,
    stream: boolean,
    bytes: number,
  ): Promise<Record<string, string>> => {
    const [key] = await ports.readKeys(provider);
    return {
      ...(provider.headers as Readonly<Record<string, string>>),
      'content-type': 'application/json',
      'content-length': String(bytes),
      accept: stream ? 'text/event-stream' : 'application/json',
      'accept-encoding': 'identity',
      'user-agent': 'beeuni-gateway',
      ...(key === undefined ? {} : { authorization: `Bearer ${key.secret}` }),
    };
  };

  /** What to say when a limit was reached or the connection broke, before any byte was sent on. */
  const brokenError = (watch: CallWatch, error: unknown): GatewayError => {
    const root = rootOf(error);
    if (root instanceof BeeuniError) return wordOf(root);
    if (watch.ended() !== undefined) {
      return retryableError(504, 'provider_timed_out', 'the provider did not answer in time; try again later', 1);
    }
    return retryableError(502, 'provider_failed', 'the connection to the provider broke; try again later', 1);
  };

  const endKind = (watch: CallWatch, otherwise: GatewayOutcome): GatewayOutcome => {
    const end = watch.ended();
    return end === undefined ? otherwise : end === 'client_left' ? 'client_left' : 'timed_out';
  };

  /** Sends on what the provider streams. */
  const pass = async (
    call: GatewayCall,
    upstream: Dispatcher.ResponseData,
    watch: CallWatch,
    startedMs: number,
  ): Promise<Outcome> => {
    const { response } = call;
    const type = String(upstream.headers['content-type'] ?? 'application/json');
    const isStream = type.startsWith('text/event-stream');
    const meter: Meter = isStream ? makeSseMeter() : makeJsonMeter();
    let firstByteMs: number | null = null;
    let broken: unknown;
    const sendHead = (): void => {
      firstByteMs = Math.round(clock.monotonicMs() - startedMs);
      response.socket?.setNoDelay(true);
      response.writeHead(200, {
        'content-type': isStream ? 'text/event-stream; charset=utf-8' : 'application/json',
        'cache-control': 'no-store',
        'x-accel-buffering': 'no',
        'x-request-id': call.requestId,
      });
    };
    try {
      for await (const chunk of upstream.body as AsyncIterable<Buffer>) {
        if (firstByteMs === null) sendHead();
        watch.progress();
        meter.push(chunk);
        if (!response.write(chunk)) await drained(response, watch.signal);
      }
    } catch (error) {
      broken = error;
    }
    const metered = meter.result();
    const done = (kind: GatewayOutcome, status: number, code: string | null): Outcome => ({
      kind,
      status,
      code,
      metered,
      firstByteMs,
    });
    if (broken === undefined && metered.isEnded && !metered.hasError) {
      response.end();
      return done('ok', 200, null);
    }
    const kind = endKind(watch, metered.hasError ? 'provider_error' : 'incomplete');
    if (kind === 'client_left') return done(kind, 499, null);
    if (firstByteMs === null) {
      const error = brokenError(watch, broken);
      answerError(call, error);
      return done(kind, error.status, error.code);
    }
    const code = kind === 'timed_out' ? 'provider_timed_out' : 'provider_failed';
    if (!isStream) {
      // A cut JSON body cannot be mended: closing the connection is the only way to say so.
      response.destroy();
      return done(kind, 502, code);
    }
    if (!metered.hasError) {
      const message =
        kind === 'timed_out'
          ? 'the provider stopped sending before its answer was complete; try again later'
          : 'the stream of the provider ended before its answer was complete; try again later';
      response.write(
        `${metered.isInLine ? '\n\n' : ''}data: ${errorBody({ message, type: 'server_error', code })}\n\n`,
      );
    }
    response.end();
    return done(kind, 502, code);
  };

  const forward = async (call: GatewayCall, admitted: Admitted, startedMs: number): Promise<Outcome> => {
    const { provider } = admitted;
    const refused = (error: GatewayError, kind: GatewayOutcome): Outcome => {
      answerError(call, error);
      return { kind, status: error.status, code: error.code, metered: undefined, firstByteMs: null };
    };
    let slot: ReturnType<GatewayPorts['upstreams']['take']>;
    try {
      slot = ports.upstreams.take(provider);
    } catch (error) {
      return refused(wordOf(error), 'refused');
    }
    const watch = watchCall(clock, provider.timeouts, call.signal);
    try {
      const url = new URL(provider.base_url);
      const body = Buffer.concat(admitted.body);
      const upstream = await slot.dispatcher.request({
        origin: url.origin,
        path: `${url.pathname.replace(/\/$/, '')}/chat/completions`,
        method: 'POST',
        headers: await headersFor(provider, admitted.stream, body.length),
        body,
        signal: watch.signal,
      });
      if (upstream.statusCode === 200) return await pass(call, upstream, watch, startedMs);
      const text = (await readBounded(upstream.body, MAX_ERROR_BYTES))?.toString('utf8') ?? '';
      const retryAfter = upstream.headers['retry-after'];
      const refusal = {
        status: upstream.statusCode,
        retryAfter: retryAfter === undefined ? undefined : String(retryAfter),
        body: text,
      };
      return refused(refusalError(refusal, clock.nowMs()), 'provider_error');
    } catch (error) {
      const kind = endKind(watch, 'provider_error');
      if (kind === 'client_left') return { kind, status: 499, code: null, metered: undefined, firstByteMs: null };
      ports.log.warn('a call to a provider broke', { provider: provider.id, requestId: call.requestId, err: error });
      return refused(brokenError(watch, error), kind);
    } finally {
      watch.stop();
      slot.release();
    }
  };

  const record = (call: GatewayCall, admitted: Admitted, outcome: Outcome, startedMs: number, at: string): void => {
    const { identity } = call;
    const turn = call.request.headers[TURN_HEADER];
    const tokens =
      outcome.metered === undefined
        ? { promptTokens: 0, cachedTokens: 0, completionTokens: 0, estimated: true }
        : tokensOf(outcome.metered, admitted.requestBytes);
    ports.usage.record({
      id: ports.newId(),
      at,
      namespace: identity.namespace,
      projectUid: identity.projectUid,
      sessionUid: identity.sessionUid,
      generation: identity.generation,
      turnId: typeof turn === 'string' && /^[\w.:-]{1,64}$/.test(turn) ? turn : null,
      model: admitted.name,
      servedModel: outcome.metered?.servedModel ?? null,
      status: outcome.status,
      code: outcome.code,
      ...tokens,
      costMicroUsd: costMicroUsd(tokens, admitted.model),
      firstByteMs: outcome.firstByteMs,
      durationMs: Math.round(clock.monotonicMs() - startedMs),
      requestBytes: admitted.requestBytes,
      responseBytes: outcome.metered?.bytes ?? 0,
    });
  };

  return async (call) => {
    const startedMs = clock.monotonicMs();
    const at = new Date(clock.nowMs()).toISOString();
    let admitted: Admitted | GatewayError;
    try {
      admitted = await admit(call);
    } catch (error) {
      if (call.signal.aborted) return;
      if (!(error instanceof BeeuniError))
        ports.log.error('a model call failed', { requestId: call.requestId, err: error });
      admitted = wordOf(error);
    }
    if (isGatewayError(admitted)) {
      answerError(call, admitted);
      ports.onOutcome('refused', null);
      return;
    }
    const outcome = await forward(call, admitted, startedMs);
    ports.onOutcome(outcome.kind, outcome.firstByteMs);
    record(call, admitted, outcome, startedMs, at);
  };
};

const drained = (response: ServerResponse, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const settle = (): void => {
      response.off('drain', settle);
      response.off('close', settle);
      signal.removeEventListener('abort', settle);
      resolve();
    };
    response.once('drain', settle);
    response.once('close', settle);
    signal.addEventListener('abort', settle, { once: true });
  });
