// The provider registry's words: providers, their models, and how a model name is judged.
// Source: 20-control-plane §4. Must not know the database, Kubernetes or HTTP.
import { z } from 'zod';

/** Lower-case id of a provider; first part of `provider/model`. */
export const providerId = z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/);

/** Ids that no provider may have: `role/title` is the model that the workspace settings give a role. */
export const RESERVED_PROVIDER_IDS: readonly string[] = ['role'];

/** Header names that a provider may be sent besides our own. */
export const ALLOWED_PROVIDER_HEADERS = ['http-referer', 'x-title', 'openai-organization', 'openai-project'] as const;

/** Names of the kinds of API that a provider speaks. */
export const PROVIDER_KINDS = ['openai-compatible', 'anthropic'] as const;

/** Most keys of one provider. Source: 20-control-plane §4, A217. */
export const MAX_PROVIDER_KEYS = 10;

/** Type of the Secrets that a provider may refer to: who makes such a Secret means it for this use. */
export const PROVIDER_SECRET_TYPE = 'beeuni.dev/provider-key';

/** Name of one key in the pool of a provider. */
export const providerKeyId = z.string().regex(/^[a-z0-9][a-z0-9._-]{0,62}$/);

/** A key as it is sent to a provider in a header: visible ASCII characters. */
const keyText = z
  .string()
  .min(1)
  .max(4096)
  .regex(/^[\x21-\x7e]+$/);

/** `provider/model`. */
const fullModelName = z
  .string()
  .max(256)
  .regex(/^[a-z0-9][a-z0-9-]{0,62}\/[A-Za-z0-9][A-Za-z0-9._:/@-]*$/);

/**
 * One model of a provider. Prices in micro-USD per million tokens, absent `price_cached_input_micro_usd` is that of input;
 * sizes in tokens. `retired`: the provider no longer lists it; new uses are refused, what runs goes on. `variants`: its
 * reasoning tiers.
 */
export const providerModel = z.object({
  id: z
    .string()
    .min(1)
    .max(192)
    .regex(/^[A-Za-z0-9][A-Za-z0-9._:/@-]*$/),
  context_window: z.int().min(1).max(100_000_000).default(128_000),
  max_output: z.int().min(1).max(100_000_000).default(16_384),
  input: z
    .array(z.enum(['text', 'image']))
    .min(1)
    .max(2)
    .default(['text']),
  reasoning: z.boolean().default(false),
  price_input_micro_usd: z.int().min(0).max(1e12).default(0),
  price_output_micro_usd: z.int().min(0).max(1e12).default(0),
  price_cached_input_micro_usd: z.int().min(0).max(1e12).optional(),
  variants: z
    .array(z.string().regex(/^[a-z0-9][a-z0-9_-]{0,31}$/))
    .max(16)
    .optional(),
  retired: z.object({ since: z.iso.datetime(), replacement: fullModelName.nullable() }).optional(),
  enabled: z.boolean().default(true),
});

/** Time limits of calls to a provider. Units: milliseconds. */
export const providerTimeouts = z.object({
  connect_ms: z.int().min(100).max(60_000).default(10_000),
  first_byte_ms: z.int().min(1_000).max(1_800_000).default(120_000),
  idle_ms: z.int().min(1_000).max(1_800_000).default(120_000),
  total_ms: z.int().min(1_000).max(7_200_000).default(1_200_000),
});

/**
 * The keys of a provider: a pool that is stored encrypted, or a Secret of the installation's namespace and of type
 * `beeuni.dev/provider-key`, whose entries are the pool. Values are write-only; an entry with `id` and no `value` keeps
 * the stored key, a value without `id` gets one.
 */
export const providerCredential = z.object({
  api_keys: z
    .array(z.object({ id: providerKeyId.optional(), value: keyText.optional() }))
    .max(MAX_PROVIDER_KEYS)
    .optional(),
  secret: z
    .object({
      name: z
        .string()
        .max(253)
        .regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/),
    })
    .optional(),
});

/**
 * What may be written of a provider. `base_url` ends before `/chat/completions`, `/messages` and `/models`. `api_key` is
 * short for a pool of one key with the id `default`; without it and without `credential` the stored ones stay.
 * `fallback`: what answers instead when this provider cannot, in order. `compatible_runtime_ids`: see C16.
 */
export const providerInput = z.object({
  id: providerId,
  kind: z.enum(PROVIDER_KINDS),
  base_url: z.string().min(8).max(1024),
  api_key: keyText.optional(),
  credential: providerCredential.optional(),
  headers: z
    .partialRecord(
      z.enum(ALLOWED_PROVIDER_HEADERS),
      z
        .string()
        .max(512)
        .regex(/^[\x20-\x7e]*$/),
    )
    .default({}),
  timeouts: providerTimeouts.prefault({}),
  models: z.array(providerModel).max(512).default([]),
  enabled: z.boolean().default(true),
  fallback: z.array(fullModelName).max(8).optional(),
  compatible_runtime_ids: z
    .array(z.string().regex(/^[a-z0-9][a-z0-9._-]{0,62}$/))
    .max(16)
    .optional(),
});

/** What may be read of the keys: never a value. `last_four` is null for a key of fewer than 16 characters. */
export const providerCredentialView = z.object({
  api_keys: z.array(
    z.object({ id: providerKeyId, last_four: z.string().length(4).nullable(), added_at: z.iso.datetime() }),
  ),
  secret: z.object({ name: z.string() }).nullable(),
});

/** What may be read of a provider: everything but the keys. `has_key`: a key is stored, or a Secret is named. */
export const providerView = providerInput.omit({ api_key: true, credential: true }).extend({
  has_key: z.boolean(),
  credential: providerCredentialView,
  generation: z.int().min(1),
  created_at: z.iso.datetime(),
  updated_at: z.iso.datetime(),
});

/** See providerInput, after defaults. */
export type ProviderInput = z.output<typeof providerInput>;
/** See providerView. */
export type ProviderView = z.output<typeof providerView>;
/** See providerModel. */
export type ProviderModel = z.output<typeof providerModel>;
