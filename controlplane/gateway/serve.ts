// One model call from its first byte to its usage row: admitted, paid for, tried with the keys of the pool and once more
// with the fallback, answered, metered. Must not know SQL, Kubernetes or fastify. Source: 20-control-plane §5.
import { BeeuniError } from '#base/errors.ts';
import { TURN_HEADER } from '#schema/wire/gateway.ts';
import type { ProviderKey } from '../app/provider-ports.ts';
import type { Revocation } from '../app/running-calls.ts';
import { type Admitted, isGatewayError, makeAdmit, type Target } from './admit.ts';
import { type Attempt, type AttemptEnd, startAttempt, type WholeAnswer } from './attempt.ts';
import { makeBrokenStreams } from './broken-streams.ts';
import type { Hold } from './budgets.ts';
import { takesTier } from './effort.ts';
import { errorBody, errorEvent } from './error-shape.ts';
import { refusedBudget, revokedError, silentError, wordOf } from './failures.ts';
import { makeKeyMasks } from './key-mask.ts';
import type { KeyPools } from './key-pool.ts';
import { type Leaving, leavingOf } from './leaving.ts';
import { costMicroUsd, estimateMicroUsd, type Metered, tokensOf } from './meter.ts';
import { withModel } from './model-span.ts';
import type { GatewayCall, GatewayOutcome, GatewayPorts, ObserveGateway } from './ports.ts';
import { makeTimeText } from './time-text.ts';
import { makeTurnEnd } from './turn-end.ts';
import { makeWatches } from './watch.ts';
import { makeHeadersFor, type Wire } from './wires.ts';
import { type GatewayError, refusalError, retryableError, waitSecondsOf } from './wording.ts';

/** Header by which an answer says which model gave it, when that is not the one that was asked for. */
const SERVED_MODEL_HEADER = 'x-beeuni-served-model';
/** Header by which the relay names the agent. */
const AGENT_HEADER = 'x-beeuni-agent';

/** What a call came to. `code` is null for an answer that is whole, and for a client that left. */
type Outcome = Readonly<{
  kind: GatewayOutcome;
  target: Target;
  status: number;
  code: string | null;
  metered: Metered | undefined;
  firstByteMs: number | null;
}>;

/** What the tries of one target came to: an end, or why another target may be tried. */
type Tried =
  | Readonly<{ outcome: Outcome }>
  | Readonly<{ error: GatewayError; kind: GatewayOutcome; mayFallBack: boolean }>;

const FALLBACK_REASONS = {
  rate_limited: 'rate_limited',
  provider_timed_out: 'provider_timed_out',
  provider_auth_failed: 'provider_auth_failed',
} as const satisfies Readonly<Record<string, Parameters<ObserveGateway['fellBack']>[0]>>;

const headerText = (call: GatewayCall, name: string, most: number): string | null => {
  const value = call.request.header(name);
  return value === undefined ? null : value.replace(/[^\x20-\x7e]/g, '').slice(0, most);
};

/** Answers with an error, if nothing was sent yet. */
const answerError = (call: GatewayCall, errors: Wire['errors'], error: GatewayError): void => {
  const { response, requestId } = call;
  if (response.headersSent || response.destroyed) return;
  const body = errorBody(errors, error);
  response.writeHead(error.status, {
    ...error.headers,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
    'x-request-id': requestId,
    ...(call.request.isComplete() ? {} : { connection: 'close' }),
  });
  response.end(body);
};

/** What ends an event that was cut, so that the next one is an event of its own; behind a whole one it says nothing. */
const endOfEvent = ({ isInLine }: Metered): string => (isInLine ? '\n\n' : '\n');

/** Makes the handler of one wire. It answers every call itself and does not reject. */
export const makeServeCall = (
  ports: GatewayPorts & Readonly<{ keyPools: KeyPools }>,
  wire: Wire,
): ((call: GatewayCall) => Promise<void>) => {
  const { clock, keyPools, observe } = ports;
  const admit = makeAdmit(ports);
  const headersFor = makeHeadersFor(wire);
  const brokenStreams = makeBrokenStreams(clock);
  const timeText = makeTimeText();
  const endLater = makeTurnEnd(({ response, body }: WholeAnswer) => {
    if (!response.destroyed) response.end(body);
  });
  const attempts = { clock, startWatch: makeWatches(clock), maskOf: makeKeyMasks(), endLater };

  /** Starts an attempt with one key. Errors: those of taking a place at the provider. */
  const startTry = (
    call: GatewayCall,
    admitted: Admitted,
    target: Target,
    key: ProviderKey | undefined,
    startedMs: number,
  ): Attempt => {
    const slot = ports.upstreams.take(target.provider);
    try {
      const { model } = target;
      const body = withModel(admitted.bytes, admitted.span, target.sentName, (tier) => !takesTier(tier, model));
      return startAttempt(attempts, {
        wire,
        slot,
        headers: headersFor(target.provider, {
          key: key?.secret,
          isStream: admitted.span.stream,
          client: call.request,
        }),
        key,
        body,
        limits: target.provider.timeouts,
        response: call.response,
        answerHeaders: [
          'cache-control',
          'no-store',
          'x-request-id',
          call.requestId,
          ...(target === admitted.target ? [] : [SERVED_MODEL_HEADER, target.name]),
        ],
        startedMs,
      });
    } catch (error) {
      slot.release();
      throw error;
    }
  };

  /** The end of an answer of which a part was sent. */
  const endBroken = (
    call: GatewayCall,
    target: Target,
    end: Extract<AttemptEnd, { kind: 'broken' }>,
    revoked: Revocation | undefined,
  ): Outcome => {
    const { response } = call;
    const { metered, firstByteMs, why } = end;
    const outcome = (kind: GatewayOutcome, status: number, code: string | null): Outcome => ({
      kind,
      target,
      status,
      code,
      metered,
      firstByteMs: Math.round(firstByteMs),
    });
    if (why === 'client_left') return outcome('client_left', 499, null);
    if (why === 'revoked') {
      const error = revokedError(revoked ?? 'unauthenticated');
      ports.log.info('a model call was ended, as it may not go on', { requestId: call.requestId, code: error.code });
      if (end.isStream) response.end(endOfEvent(metered) + errorEvent(wire, error));
      else response.destroy();
      return outcome('revoked', error.status, error.code);
    }
    const code = why === undefined ? 'provider_failed' : 'provider_timed_out';
    const kind = why !== undefined ? 'timed_out' : metered.hasError ? 'provider_error' : 'incomplete';
    ports.log.warn('an answer of a provider broke', {
      provider: target.provider.id,
      requestId: call.requestId,
      why: kind,
    });
    if (!end.isStream) {
      // A cut JSON body cannot be mended: closing the connection is the only way to say so.
      response.destroy();
      return outcome(kind, 502, code);
    }
    if (!metered.hasError) {
      const error = brokenStreams.broke(call.identity.sessionUid, why);
      response.write(endOfEvent(metered) + errorEvent(wire, error));
    }
    response.end();
    return outcome(kind, 502, code);
  };

  const allRest = (pool: string, keys: readonly ProviderKey[]): Tried => ({
    error: retryableError(
      429,
      'rate_limited',
      'every key of the provider rests; try again later',
      keyPools.waitMs(pool, keys) / 1_000,
    ),
    kind: 'refused',
    mayFallBack: true,
  });

  /** Tries the keys of a target until one is not asked to slow down. */
  const tryTarget = async (
    call: GatewayCall,
    admitted: Admitted,
    target: Target,
    startedMs: number,
    leaving: Leaving,
  ): Promise<Tried> => {
    const { provider } = target;
    const pool = `${provider.id} ${provider.generation}`;
    let keys: readonly ProviderKey[];
    try {
      const read = ports.readKeys(provider);
      keys = read instanceof Promise ? await read : read;
    } catch (error) {
      return { error: wordOf(error), kind: 'refused', mayFallBack: true };
    }
    const usable: readonly (ProviderKey | undefined)[] =
      keys.length === 0 ? [undefined] : keyPools.usable(pool, keys, call.identity.sessionUid);
    let last: Tried | undefined;
    for (let at = 0; at < usable.length; at += 1) {
      if (leaving.isGone || leaving.revoked !== undefined) break;
      if (at > 0) observe.rotated();
      const key = usable[at];
      let end: AttemptEnd;
      try {
        leaving.current = startTry(call, admitted, target, key, startedMs);
        leaving.use = { providerId: provider.id, key: key?.secret };
        end = await leaving.current.end;
      } catch (error) {
        return { error: wordOf(error), kind: 'refused', mayFallBack: true };
      } finally {
        leaving.current = undefined;
        leaving.use = undefined;
      }
      if (end.kind === 'whole') {
        brokenStreams.whole(call.identity.sessionUid);
        const { metered } = end;
        const outcome = {
          kind: 'ok',
          target,
          status: 200,
          code: null,
          metered,
          firstByteMs: Math.round(end.firstByteMs),
        } as const;
        return { outcome };
      }
      if (end.kind === 'broken') return { outcome: endBroken(call, target, end, leaving.revoked) };
      if (end.kind === 'silent') {
        if (end.why === 'client_left') {
          const { metered } = end;
          return { outcome: { kind: 'client_left', target, status: 499, code: null, metered, firstByteMs: null } };
        }
        if (end.why === 'revoked') break;
        ports.log.warn('a call to a provider broke', {
          provider: provider.id,
          requestId: call.requestId,
          err: end.error,
        });
        const kind = end.why === undefined ? 'provider_error' : 'timed_out';
        return { error: silentError(end), kind, mayFallBack: true };
      }
      const { refusal } = end;
      const { status } = refusal;
      const isOurs = status === 401 || status === 403 || status === 408 || status === 429 || status >= 500;
      last = { error: refusalError(refusal, clock.nowMs()), kind: 'provider_error', mayFallBack: isOurs };
      if (status !== 429) return last;
      const waitSeconds = waitSecondsOf(refusal, clock.nowMs());
      if (key !== undefined && keys.length > 1) keyPools.rest(pool, key.id, waitSeconds && waitSeconds * 1_000);
    }
    if (leaving.revoked !== undefined) {
      return { error: revokedError(leaving.revoked), kind: 'revoked', mayFallBack: false };
    }
    if (!leaving.isGone) return last ?? allRest(pool, keys);
    return { outcome: { kind: 'client_left', target, status: 499, code: null, metered: undefined, firstByteMs: null } };
  };

  const forward = async (
    call: GatewayCall,
    admitted: Admitted,
    startedMs: number,
    leaving: Leaving,
  ): Promise<Outcome> => {
    call.response.on('close', () => {
      if (call.response.writableFinished) return;
      leaving.isGone = true;
      leaving.current?.leave('client_left');
    });
    let target = admitted.target;
    let tried = await tryTarget(call, admitted, target, startedMs, leaving);
    if ('error' in tried && tried.mayFallBack && admitted.fallback !== undefined) {
      const { code } = tried.error;
      observe.fellBack(
        code in FALLBACK_REASONS ? FALLBACK_REASONS[code as keyof typeof FALLBACK_REASONS] : 'provider_failed',
      );
      ports.log.info('a model of the fallback list answers', {
        requestId: call.requestId,
        provider: target.provider.id,
        fallback: admitted.fallback.provider.id,
        code,
      });
      target = admitted.fallback;
      tried = await tryTarget(call, admitted, target, startedMs, leaving);
    }
    if ('outcome' in tried) return tried.outcome;
    const { error, kind } = tried;
    answerError(call, wire.errors, error);
    return { kind, target, status: error.status, code: error.code, metered: undefined, firstByteMs: null };
  };

  const settle = (
    call: GatewayCall,
    admitted: Admitted,
    outcome: Outcome,
    startedMs: number,
    at: string,
    hold: Hold,
  ): void => {
    const { identity } = call;
    const { target, metered } = outcome;
    const requestBytes = admitted.bytes.length;
    const tokens = tokensOf(metered, requestBytes);
    const cost = costMicroUsd(tokens, target.model);
    const durationMs = clock.monotonicMs() - startedMs;
    hold.settle(cost);
    ports.usage.record({
      id: call.requestId,
      at,
      namespace: identity.namespace,
      projectUid: identity.projectUid,
      sessionUid: identity.sessionUid,
      generation: identity.generation,
      turnId: headerText(call, TURN_HEADER, 64),
      agent: headerText(call, AGENT_HEADER, 128),
      model: admitted.target.name,
      servedModel: metered?.servedModel ?? null,
      fallbackFrom: target === admitted.target ? null : admitted.target.name,
      status: outcome.status,
      code: outcome.code,
      ...tokens,
      costMicroUsd: cost,
      firstByteMs: outcome.firstByteMs,
      durationMs: Math.round(durationMs),
      requestBytes,
      responseBytes: metered?.bytes ?? 0,
    });
    observe.ended({
      provider: target.provider.id,
      outcome: outcome.kind,
      firstByteMs: outcome.firstByteMs,
      durationMs,
      promptTokens: tokens.promptTokens,
      completionTokens: tokens.completionTokens,
      costMicroUsd: cost,
    });
  };

  const refuse = (
    call: GatewayCall,
    error: GatewayError,
    kind: GatewayOutcome,
    provider: string,
    startedMs: number,
  ): void => {
    answerError(call, wire.errors, error);
    const durationMs = clock.monotonicMs() - startedMs;
    const none = { firstByteMs: null, promptTokens: 0, completionTokens: 0, costMicroUsd: 0 };
    observe.ended({ provider, outcome: kind, durationMs, ...none });
  };

  return async (call) => {
    const startedMs = clock.monotonicMs();
    let provider = '';
    try {
      const admitted = await admit(call, wire);
      if (isGatewayError(admitted)) return refuse(call, admitted, 'refused', provider, startedMs);
      provider = admitted.target.provider.id;
      const nowMs = clock.nowMs();
      const at = timeText(nowMs);
      const { target, span, bytes } = admitted;
      const estimate = estimateMicroUsd(
        { requestBytes: bytes.length, maxOutputTokens: span.maxOutputTokens, modelMaxOutput: target.model.max_output },
        target.model,
      );
      const turnId = headerText(call, TURN_HEADER, 64);
      const taken = ports.budgets.take(ports.findLimits(call.identity, nowMs), estimate, turnId);
      const hold = taken instanceof Promise ? await taken : taken;
      if ('reason' in hold) {
        if (hold.reason === 'reached') ports.onBudgetReached({ identity: call.identity, turnId, refusal: hold });
        return refuse(call, refusedBudget(hold), 'budget', provider, startedMs);
      }
      let outcome: Outcome = {
        kind: 'provider_error',
        target,
        status: 500,
        code: 'internal',
        metered: undefined,
        firstByteMs: null,
      };
      const leaving = leavingOf(call);
      ports.running.begin(leaving);
      try {
        outcome = await forward(call, admitted, startedMs, leaving);
      } finally {
        ports.running.end(leaving);
        settle(call, admitted, outcome, startedMs, at, hold);
      }
    } catch (error) {
      if (call.response.destroyed) return;
      if (!(error instanceof BeeuniError))
        ports.log.error('a model call failed', { requestId: call.requestId, err: error });
      refuse(call, wordOf(error), 'refused', provider, startedMs);
    }
  };
};
