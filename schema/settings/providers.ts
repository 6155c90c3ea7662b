// The provider registry's words: providers, their models, and how a model name is judged.
// Source: 20-control-plane §4. Must not know the database, Kubernetes or HTTP.
import { z } from 'zod';

/** Lower-case id of a provider; first part of `provider/model`. */
export const providerId = z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/);

/** Header names that a provider may be sent besides our own. */
export const ALLOWED_PROVIDER_HEADERS = ['http-referer', 'x-title', 'openai-organization', 'openai-project'] as const;

/** One model of a provider. Prices in micro-USD per million tokens; sizes in tokens. */
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
  enabled: z.boolean().default(true),
});

/** Time limits of calls to a provider. Units: milliseconds. */
export const providerTimeouts = z.object({
  connect_ms: z.int().min(100).max(60_000).default(10_000),
  first_byte_ms: z.int().min(1_000).max(1_800_000).default(120_000),
  idle_ms: z.int().min(1_000).max(1_800_000).default(120_000),
  total_ms: z.int().min(1_000).max(7_200_000).default(1_200_000),
});

/** What may be written of a provider. `api_key` is write-only. */
export const providerInput = z.object({
  id: providerId,
  kind: z.enum(['openai-compatible']),
  base_url: z.string().min(8).max(1024),
  api_key: z.string().min(1).max(4096).optional(),
  headers: z.partialRecord(z.enum(ALLOWED_PROVIDER_HEADERS), z.string().max(512)).default({}),
  timeouts: providerTimeouts.prefault({}),
  models: z.array(providerModel).max(512).default([]),
  enabled: z.boolean().default(true),
});

/** What may be read of a provider: everything but the key. */
export const providerView = providerInput.omit({ api_key: true }).extend({
  has_key: z.boolean(),
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
