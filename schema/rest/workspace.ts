// Provider registry and model routes of the workspace. Source: 20-control-plane §3, §4.
import { z } from 'zod';
import { defineRoute } from '../define-route.ts';
import { providerId, providerInput, providerModel, providerView } from '../settings/providers.ts';
import { pageOf, pageQuery } from './lists.ts';

const providerParams = z.object({ id: providerId });
const auth = (path: string, verb: string) => ({ kind: 'non-resource', path, verb }) as const;

/** Verdict on one model name. */
export const modelVerdict = z.object({
  name: z.string(),
  valid: z.boolean(),
  code: z.enum(['unknown_model', 'model_disabled', 'provider_disabled']).nullable(),
  message: z.string().nullable(),
  suggestions: z.array(z.string()).max(3),
});

/** One registered model with its state. */
export const modelView = providerModel.extend({
  name: z.string(),
  provider: z.string(),
  state: z.enum(['enabled', 'retired', 'model_disabled', 'provider_disabled']),
});

/** `GET /v1/workspace/providers`. */
export const listProvidersRoute = defineRoute({
  operationId: 'listProviders',
  listener: 'public',
  method: 'GET',
  path: '/v1/workspace/providers',
  summary: 'List model providers',
  auth: auth('/v1/workspace/providers', 'get'),
  query: pageQuery,
  responses: { 200: pageOf(providerView) },
});

/** `POST /v1/workspace/providers`. 409 when the id exists. */
export const createProviderRoute = defineRoute({
  operationId: 'createProvider',
  listener: 'public',
  method: 'POST',
  path: '/v1/workspace/providers',
  summary: 'Register a model provider',
  auth: auth('/v1/workspace/providers', 'post'),
  body: providerInput,
  responses: { 201: providerView },
});

/** `GET /v1/workspace/providers/{id}`. */
export const getProviderRoute = defineRoute({
  operationId: 'getProvider',
  listener: 'public',
  method: 'GET',
  path: '/v1/workspace/providers/:id',
  summary: 'Read a model provider',
  auth: auth('/v1/workspace/providers', 'get'),
  params: providerParams,
  responses: { 200: providerView },
  etag: 'generation',
});

/**
 * `PUT /v1/workspace/providers/{id}`: whole definition; without `api_key` and `credential` the stored keys stay, and another
 * host in `base_url` does not get them. 409 `provider_referenced` when a model in use would go, be disabled or speak another API,
 * unless `force=true`. With `If-Match` only that generation is changed: else 412 `precondition_failed` with the last state.
 */
export const putProviderRoute = defineRoute({
  operationId: 'putProvider',
  listener: 'public',
  method: 'PUT',
  path: '/v1/workspace/providers/:id',
  summary: 'Create or replace a model provider',
  auth: auth('/v1/workspace/providers', 'put'),
  params: providerParams,
  query: z.object({ force: z.enum(['true', 'false']).default('false') }),
  body: providerInput.omit({ id: true }),
  responses: { 200: providerView, 201: providerView },
  etag: 'generation',
});

/** `DELETE /v1/workspace/providers/{id}`: 409 `provider_referenced` unless `force=true`; `If-Match` as for PUT. */
export const deleteProviderRoute = defineRoute({
  operationId: 'deleteProvider',
  listener: 'public',
  method: 'DELETE',
  path: '/v1/workspace/providers/:id',
  summary: 'Remove a model provider',
  auth: auth('/v1/workspace/providers', 'delete'),
  params: providerParams,
  query: z.object({ force: z.enum(['true', 'false']).default('false') }),
  responses: { 204: z.null() },
  etag: 'generation',
});

/** `POST /v1/workspace/providers/{id}/check`: asks the provider for its models with the stored key. */
export const checkProviderRoute = defineRoute({
  operationId: 'checkProvider',
  listener: 'public',
  method: 'POST',
  path: '/v1/workspace/providers/:id/check',
  summary: 'Reach a provider and list its models',
  auth: auth('/v1/workspace/providers', 'post'),
  params: providerParams,
  body: z.object({}),
  responses: {
    200: z.object({ reachable: z.boolean(), message: z.string().nullable(), models: z.array(z.string()).max(2000) }),
  },
});

/**
 * `POST /v1/workspace/providers/{id}/discover`: compares the provider's list of models with the registry. Without `apply=true`
 * nothing changes. With it, new models are added switched off, models that are gone are marked `retired` (409
 * `provider_referenced` when one is in use, unless `force=true`), and models that came back are restored.
 */
export const discoverProviderRoute = defineRoute({
  operationId: 'discoverProvider',
  listener: 'public',
  method: 'POST',
  path: '/v1/workspace/providers/:id/discover',
  summary: 'Compare the models of a provider with the registry',
  auth: auth('/v1/workspace/providers', 'post'),
  params: providerParams,
  query: z.object({
    apply: z.enum(['true', 'false']).default('false'),
    force: z.enum(['true', 'false']).default('false'),
  }),
  body: z.object({}),
  responses: {
    200: z.object({
      reachable: z.boolean(),
      message: z.string().nullable(),
      applied: z.boolean(),
      added: z.array(z.string()),
      retired: z.array(z.object({ id: z.string(), replacement: z.string().nullable() })),
      restored: z.array(z.string()),
      unusable: z.int().min(0),
      references: z.array(z.string()),
    }),
  },
});

/** `GET /v1/workspace/models`: every registered model name. */
export const listModelsRoute = defineRoute({
  operationId: 'listModels',
  listener: 'public',
  method: 'GET',
  path: '/v1/workspace/models',
  summary: 'List every registered model',
  auth: auth('/v1/workspace/models', 'get'),
  query: pageQuery,
  responses: { 200: pageOf(modelView) },
});

/** `POST /v1/workspace/models/validate`: one verdict per name, in order. */
export const validateModelsRoute = defineRoute({
  operationId: 'validateModels',
  listener: 'public',
  method: 'POST',
  path: '/v1/workspace/models/validate',
  summary: 'Check model names against the registry',
  auth: auth('/v1/workspace/models', 'get'),
  body: z.object({ names: z.array(z.string().min(1).max(256)).min(1).max(100) }),
  responses: { 200: z.object({ verdicts: z.array(modelVerdict), registryGeneration: z.int() }) },
});

/** See modelVerdict. */
export type ModelVerdict = z.output<typeof modelVerdict>;
