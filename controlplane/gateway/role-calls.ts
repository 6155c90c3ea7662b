// Calls that the control plane makes itself for a role: a short answer, or the size of a vector, over the gateway's checked
// connections and the provider's own keys. Must not know what the answer is for. Source: 40-settings B4.

import type { Clock } from '#base/clock.ts';
import { BeeuniError, LimitError, UnavailableError } from '#base/errors.ts';
import { completeMessage } from '#base/model/anthropic.ts';
import { completeText, embeddingSize, type OpenAiEndpoint, type TextAnswer } from '#base/model/openai.ts';
import { checkModelName } from '#schema/rules/check-model.ts';
import type { ReadProviderKeys, ReadRegistry, RegisteredProvider } from '../app/provider-ports.ts';
import type { Budgets, Limits } from './budgets.ts';
import type { KeyPools } from './key-pool.ts';
import { costMicroUsd, estimateMicroUsd } from './meter.ts';
import type { ObserveGateway, UsageRecorder } from './ports.ts';
import type { Upstreams } from './upstream.ts';

/** What calls are made with. */
export type RoleCallPorts = Readonly<{
  readRegistry: ReadRegistry;
  readKeys: ReadProviderKeys;
  /** The memory of resting keys that the gateway's own calls use. */
  keyPools: KeyPools;
  upstreams: Upstreams;
  usage: UsageRecorder;
  budgets: Pick<Budgets, 'take'>;
  findLimits: (payer: RolePayer, atMs: number) => Limits;
  clock: Clock;
  newId: () => string;
  observe: Pick<ObserveGateway, 'ended' | 'rotated'>;
}>;

/** For whom a question is asked: who pays. */
export type RolePayer = Readonly<{ namespace: string; projectUid: string; sessionUid: string }>;

/** One question to `model`, a registered `provider/model`. */
export type RoleQuestion = Readonly<{ model: string; system: string; user: string; maxOutputTokens: number }>;

/**
 * The calls. Keys are chosen as in the gateway: the session's first, the next one after a 429. Errors of both, whose message
 * holds no key: UnavailableError; LimitError `rate_limited` when every key rests.
 */
export type RoleCalls = Readonly<{
  /**
   * Money is set aside before, and one usage row without a turn is written whatever comes of it.
   * Errors also: LimitError `budget_reached`.
   */
  ask: (payer: RolePayer, question: RoleQuestion, signal: AbortSignal) => Promise<TextAnswer>;
  /** Size of the vector that the model makes of a word. */
  probeEmbedding: (model: string, signal: AbortSignal) => Promise<number>;
}>;

/** Longest wait for a provider. Units: milliseconds. */
const LIMIT_MS = 60_000;

type Found = Readonly<{ provider: RegisteredProvider; model: string }>;

/** Makes the calls. */
export const makeRoleCalls = (ports: RoleCallPorts): RoleCalls => {
  const { usage, clock, newId } = ports;
  const found = async (name: string): Promise<Found> => {
    const { providers } = await ports.readRegistry();
    const verdict = checkModelName(name, providers);
    const provider = verdict.valid ? providers.find(({ id }) => id === verdict.provider) : undefined;
    if (!verdict.valid || provider === undefined) {
      throw new UnavailableError('provider_failed', verdict.valid ? 'the provider is gone' : verdict.message);
    }
    return { provider, model: verdict.model };
  };

  const withKey = async <T>(
    { provider, model }: Found,
    key: string | undefined,
    call: (endpoint: OpenAiEndpoint, model: string) => Promise<T>,
  ): Promise<T> => {
    const endpoint = {
      baseUrl: provider.base_url,
      apiKey: key,
      headers: provider.headers as Readonly<Record<string, string>>,
      timeoutMs: Math.min(provider.timeouts.total_ms, LIMIT_MS),
      fetch: ports.upstreams.fetchOf(provider),
    };
    try {
      return await call(endpoint, model);
    } catch (error) {
      if (!(error instanceof Error) || key === undefined || !error.message.includes(key)) throw error;
      throw new UnavailableError('provider_failed', error.message.replaceAll(key, '[key]'));
    }
  };

  /** Tries the keys of the pool until one is not asked to slow down. */
  const over = async <T>(
    target: Found,
    subject: string,
    call: (endpoint: OpenAiEndpoint, model: string) => Promise<T>,
  ): Promise<T> => {
    const { id, generation } = target.provider;
    const pool = `${id} ${generation}`;
    const keys = await ports.readKeys(target.provider);
    if (keys.length === 0) return withKey(target, undefined, call);
    let last: unknown = new LimitError('rate_limited', 'every key of the provider rests', {
      retryAfterMs: ports.keyPools.waitMs(pool, keys),
    });
    for (const [at, key] of ports.keyPools.usable(pool, keys, subject).entries()) {
      if (at > 0) ports.observe.rotated();
      try {
        return await withKey(target, key.secret, call);
      } catch (error) {
        if (!(error instanceof LimitError)) throw error;
        if (keys.length > 1) ports.keyPools.rest(pool, key.id, error.retryAfterMs);
        last = error;
      }
    }
    throw last;
  };

  return {
    ask: async (payer, { model: name, ...question }, signal) => {
      const target = await found(name);
      const requestBytes = Buffer.byteLength(question.system) + Buffer.byteLength(question.user);
      const listed = target.provider.models.find(({ id }) => id === target.model);
      if (listed === undefined) throw new UnavailableError('provider_failed', 'the model is gone');
      const size = { requestBytes, maxOutputTokens: question.maxOutputTokens, modelMaxOutput: listed.max_output };
      const { budgets: limits } = ports.findLimits(payer, clock.nowMs());
      const taken = await ports.budgets.take(
        { budgets: limits, runs: undefined },
        estimateMicroUsd(size, listed),
        null,
      );
      if ('reason' in taken)
        throw new LimitError('budget_reached', 'a budget of the session or its project is used up');
      const began = { at: new Date(clock.nowMs()).toISOString(), ms: clock.monotonicMs() };
      const meter = (answer: TextAnswer | undefined, code: string | null): void => {
        const responseBytes = Buffer.byteLength(answer?.text ?? '');
        const promptTokens = answer === undefined ? 0 : (answer.promptTokens ?? Math.ceil(requestBytes / 4));
        const completionTokens = answer?.completionTokens ?? Math.ceil(responseBytes / 4);
        const tokens = { promptTokens, cachedTokens: 0, completionTokens };
        const cost = costMicroUsd(tokens, listed);
        const durationMs = clock.monotonicMs() - began.ms;
        taken.settle(cost);
        usage.record({
          id: newId(),
          at: began.at,
          ...payer,
          generation: 0,
          turnId: null,
          agent: null,
          fallbackFrom: null,
          model: name,
          servedModel: answer?.servedModel ?? null,
          status: answer === undefined ? 502 : 200,
          code,
          ...tokens,
          estimated: answer === undefined || answer.promptTokens === null || answer.completionTokens === null,
          costMicroUsd: cost,
          firstByteMs: null,
          durationMs: Math.round(durationMs),
          requestBytes,
          responseBytes,
        });
        const outcome = answer === undefined ? 'provider_error' : 'ok';
        const { id: provider } = target.provider;
        ports.observe.ended({ provider, outcome, firstByteMs: null, durationMs, ...tokens, costMicroUsd: cost });
      };
      try {
        const complete = target.provider.kind === 'anthropic' ? completeMessage : completeText;
        const request = { ...question, isReasoning: listed.reasoning };
        const answer = await over(target, payer.sessionUid, (endpoint, model) =>
          complete(endpoint, { ...request, model }, signal),
        );
        meter(answer, null);
        return answer;
      } catch (error) {
        meter(undefined, error instanceof BeeuniError ? error.code : 'internal');
        throw error;
      }
    },
    probeEmbedding: async (name, signal) =>
      over(await found(name), name, (endpoint, model) => embeddingSize(endpoint, { model, text: 'ping' }, signal)),
  };
};
