// Project routes: read, sync, and what a session started now would run. Source: 20-control-plane §3, J2.
import { z } from 'zod';
import { defineRoute } from '../define-route.ts';
import { nullableSwitch } from '../primitives.ts';
import { FEATURE_FLAGS } from '../resources/project.ts';
import { fileProblem, projectFact } from '../wire/sync.ts';
import { objectParams, pageOf, pageQuery } from './lists.ts';

const namespaceParams = objectParams.pick({ namespace: true });

/** One project as clients read it. */
export const projectView = z.object({
  namespace: z.string(),
  name: z.string(),
  uid: z.string(),
  createdAt: z.string(),
  phase: z.string().nullable(),
  ready: z.enum(['True', 'False', 'Unknown']),
  readyReason: z.string().nullable(),
  message: z.string().nullable(),
  repositoryUrl: z.string(),
  commit: z.string().nullable(),
  harness: z.string().nullable(),
  spec: z.record(z.string(), z.unknown()),
  status: z.record(z.string(), z.unknown()),
});

/** `GET /v1/namespaces/{ns}/projects`. */
export const listProjectsRoute = defineRoute({
  operationId: 'listProjects',
  listener: 'public',
  method: 'GET',
  path: '/v1/namespaces/:namespace/projects',
  summary: 'List projects of a namespace',
  auth: { kind: 'resource', resource: 'projects', verb: 'list' },
  params: namespaceParams,
  query: pageQuery,
  responses: { 200: pageOf(projectView) },
});

/** `GET /v1/projects`: of all namespaces, for who may list projects of the whole cluster; ordered by namespace and name. */
export const listAllProjectsRoute = defineRoute({
  operationId: 'listAllProjects',
  listener: 'public',
  method: 'GET',
  path: '/v1/projects',
  summary: 'List projects of all namespaces',
  auth: { kind: 'resource', resource: 'projects', verb: 'list' },
  query: pageQuery,
  responses: { 200: pageOf(projectView) },
});

/** `GET P`. */
export const getProjectRoute = defineRoute({
  operationId: 'getProject',
  listener: 'public',
  method: 'GET',
  path: '/v1/namespaces/:namespace/projects/:name',
  summary: 'Read a project',
  auth: { kind: 'resource', resource: 'projects', verb: 'get' },
  params: objectParams,
  responses: { 200: projectView },
});

const specBody = z.record(z.string(), z.unknown());

/** `POST P`: a server-side apply with field manager `beeuni-api`; 409 when it exists. */
export const createProjectRoute = defineRoute({
  operationId: 'createProject',
  listener: 'public',
  method: 'POST',
  path: '/v1/namespaces/:namespace/projects/:name',
  summary: 'Create a project',
  auth: { kind: 'resource', resource: 'projects', verb: 'create' },
  params: objectParams,
  body: z.object({ spec: specBody }),
  responses: { 201: projectView },
});

/** `PATCH P`: a JSON merge patch of the spec; fields that are not named stay, null removes one. */
export const patchProjectRoute = defineRoute({
  operationId: 'patchProject',
  listener: 'public',
  method: 'PATCH',
  path: '/v1/namespaces/:namespace/projects/:name',
  summary: 'Change fields of a project',
  auth: { kind: 'resource', resource: 'projects', verb: 'patch' },
  params: objectParams,
  body: z.object({ spec: specBody }),
  responses: { 200: projectView },
});

/** `DELETE P`: asks Kubernetes to delete it; with `deletionPolicy: Block` it waits for its sessions. */
export const deleteProjectRoute = defineRoute({
  operationId: 'deleteProject',
  listener: 'public',
  method: 'DELETE',
  path: '/v1/namespaces/:namespace/projects/:name',
  summary: 'Delete a project',
  auth: { kind: 'resource', resource: 'projects', verb: 'delete' },
  params: objectParams,
  responses: { 202: z.object({ uid: z.string() }) },
});

/** One flag of a project: what it is now, which layer decided, and what the project itself says (null: nothing). */
export const featureView = z.object({
  name: z.enum(FEATURE_FLAGS),
  enabled: z.boolean(),
  available: z.boolean(),
  source: z.enum(['Project', 'Platform', 'Unavailable']),
  override: z.boolean().nullable(),
  platformDefault: z.boolean(),
  enforcement: z.enum(['routes', 'behavioral', 'ui-only']),
  stability: z.enum(['experimental', 'beta', 'stable']),
  warning: z.string().nullable().describe('what the value that counts does not do; null when there is nothing to say'),
});

const featuresBody = z.object({ features: z.array(featureView) });

/** `GET P/features`: every flag as it counts now. */
export const getFeaturesRoute = defineRoute({
  operationId: 'getProjectFeatures',
  listener: 'public',
  method: 'GET',
  path: '/v1/namespaces/:namespace/projects/:name/features',
  summary: 'Feature flags of a project, and which layer decided each',
  auth: { kind: 'resource', resource: 'projects', verb: 'get' },
  params: objectParams,
  responses: { 200: featuresBody },
});

/** `PATCH P/features`: true, false, or null for "as the platform has it"; flags that are not named stay. Source: A208, A209. */
export const patchFeaturesRoute = defineRoute({
  operationId: 'patchProjectFeatures',
  listener: 'public',
  method: 'PATCH',
  path: '/v1/namespaces/:namespace/projects/:name/features',
  summary: 'Override feature flags of a project',
  auth: { kind: 'resource', resource: 'projects', verb: 'patch' },
  params: objectParams,
  body: z.partialRecord(z.enum(FEATURE_FLAGS), nullableSwitch),
  responses: { 200: featuresBody },
});

/** `GET P/manifest`: manifest of the newest commit with its errors; null before the first sync. */
export const getManifestRoute = defineRoute({
  operationId: 'getManifest',
  listener: 'public',
  method: 'GET',
  path: '/v1/namespaces/:namespace/projects/:name/manifest',
  summary: 'The manifest of the newest commit and its errors',
  auth: { kind: 'resource', resource: 'projects', verb: 'get' },
  params: objectParams,
  responses: { 200: z.object({ manifest: projectFact.shape.manifest.nullable() }) },
});

/** `GET P/harness`: level 1 decided now, with its reason. */
export const getProjectHarnessRoute = defineRoute({
  operationId: 'getProjectHarness',
  listener: 'public',
  method: 'GET',
  path: '/v1/namespaces/:namespace/projects/:name/harness',
  summary: 'Which harness a session started now would run, and why',
  auth: { kind: 'resource', resource: 'projects', verb: 'get' },
  params: objectParams,
  responses: {
    200: z.object({
      id: z.string(),
      reason: z.string(),
      flags: z.array(z.object({ name: z.string(), enabled: z.boolean(), layer: z.string() })),
    }),
  },
});

/** `POST P/sync`: a new `syncToken`. */
export const syncNowRoute = defineRoute({
  operationId: 'syncProjectNow',
  listener: 'public',
  method: 'POST',
  path: '/v1/namespaces/:namespace/projects/:name/sync',
  summary: 'Look at the repository now',
  auth: { kind: 'resource', resource: 'projects', verb: 'patch' },
  params: objectParams,
  body: z.object({}),
  responses: { 202: projectView },
});

/** `POST P/validate`: judges a manifest text against the project; nothing is saved. */
export const validateManifestRoute = defineRoute({
  operationId: 'validateManifest',
  listener: 'public',
  method: 'POST',
  path: '/v1/namespaces/:namespace/projects/:name/validate',
  summary: 'Check a manifest without saving it',
  auth: { kind: 'resource', resource: 'projects', verb: 'get' },
  params: objectParams,
  body: z.object({ text: z.string().max(1_048_576) }),
  responses: {
    200: z.object({
      verdict: z.enum(['ready', 'warning', 'blocked']),
      errors: z.array(fileProblem),
      warnings: z.array(fileProblem),
    }),
  },
});

/** See featureView. */
export type FeatureView = z.output<typeof featureView>;
/** See projectView. */
export type ProjectView = z.output<typeof projectView>;
