// Session routes: declared state goes to the custom resource, the view joins what Kubernetes and the event log know.
// Source: 20-control-plane §3, A188 to A190. The bodies are the custom resource's own spec, checked by the API server.
import { z } from 'zod';
import { defineRoute } from '../define-route.ts';
import { healthDocument } from '../wire/health.ts';
import { objectParams, pageOf, pageQuery } from './lists.ts';

const namespaceParams = objectParams.pick({ namespace: true });
const specBody = z.record(z.string(), z.unknown());

/** One session as clients read it. `conditions` are those of the custom resource. */
export const sessionView = z.object({
  namespace: z.string(),
  name: z.string(),
  uid: z.string(),
  title: z.string().nullable().describe('made once from the first prompt; null until then'),
  project: z.string(),
  createdAt: z.string(),
  phase: z.string().nullable(),
  ready: z.enum(['True', 'False', 'Unknown']),
  readyReason: z.string().nullable(),
  message: z.string().nullable(),
  harness: z.string().nullable(),
  agent: z.string().nullable(),
  model: z.string().nullable(),
  branch: z.string().nullable(),
  commit: z.string().nullable(),
  activity: z.string().nullable(),
  spec: specBody,
  status: z.record(z.string(), z.unknown()),
});

/** `GET /v1/sessions?project=`: of all namespaces, for who may list sessions of the whole cluster. */
export const listAllSessionsRoute = defineRoute({
  operationId: 'listAllSessions',
  listener: 'public',
  method: 'GET',
  path: '/v1/sessions',
  summary: 'List sessions of all namespaces',
  auth: { kind: 'resource', resource: 'sessions', verb: 'list' },
  query: pageQuery.extend({ project: z.string().max(46).optional() }),
  responses: { 200: pageOf(sessionView) },
});

/** `GET /v1/namespaces/{ns}/sessions?project=`. */
export const listSessionsRoute = defineRoute({
  operationId: 'listSessions',
  listener: 'public',
  method: 'GET',
  path: '/v1/namespaces/:namespace/sessions',
  summary: 'List sessions of a namespace',
  auth: { kind: 'resource', resource: 'sessions', verb: 'list' },
  params: namespaceParams,
  query: pageQuery.extend({ project: z.string().max(46).optional() }),
  responses: { 200: pageOf(sessionView) },
});

/** `POST /v1/namespaces/{ns}/sessions`: a server-side apply with field manager `beeuni-api`; 409 when it exists. */
export const createSessionRoute = defineRoute({
  operationId: 'createSession',
  listener: 'public',
  method: 'POST',
  path: '/v1/namespaces/:namespace/sessions',
  summary: 'Create a session',
  auth: { kind: 'resource', resource: 'sessions', verb: 'create' },
  params: namespaceParams,
  body: z.object({ name: objectParams.shape.name, spec: specBody }),
  responses: { 201: sessionView },
});

/** `GET …/sessions/{name}`. */
export const getSessionRoute = defineRoute({
  operationId: 'getSession',
  listener: 'public',
  method: 'GET',
  path: '/v1/namespaces/:namespace/sessions/:name',
  summary: 'Read a session',
  auth: { kind: 'resource', resource: 'sessions', verb: 'get' },
  params: objectParams,
  responses: { 200: sessionView },
});

/**
 * `PATCH …/sessions/{name}`: a JSON merge patch of the spec; fields that are not named stay, null removes one. Agent and model count
 * from the next turn. Source: A192, K19.
 */
export const patchSessionRoute = defineRoute({
  operationId: 'patchSession',
  listener: 'public',
  method: 'PATCH',
  path: '/v1/namespaces/:namespace/sessions/:name',
  summary: 'Change fields of a session',
  auth: { kind: 'resource', resource: 'sessions', verb: 'patch' },
  params: objectParams,
  body: z.object({ spec: specBody }),
  responses: { 200: sessionView },
});

/** `DELETE …/sessions/{name}`: asks Kubernetes to delete it; the clean-up goes on behind. */
export const deleteSessionRoute = defineRoute({
  operationId: 'deleteSession',
  listener: 'public',
  method: 'DELETE',
  path: '/v1/namespaces/:namespace/sessions/:name',
  summary: 'Delete a session',
  auth: { kind: 'resource', resource: 'sessions', verb: 'delete' },
  params: objectParams,
  responses: { 202: z.object({ uid: z.string() }) },
});

const verb = (operationId: string, last: string, summary: string) =>
  defineRoute({
    operationId,
    listener: 'public',
    method: 'POST',
    path: `/v1/namespaces/:namespace/sessions/:name/${last}`,
    summary,
    auth: { kind: 'resource', resource: 'sessions', verb: 'patch' },
    params: objectParams,
    body: z.object({}),
    responses: { 202: sessionView },
  });

/** `POST …/start`: `operatingMode: Running`, and wakes an idle session. */
export const startSessionRoute = verb('startSession', 'start', 'Start a suspended session');
/** `POST …/stop`: `operatingMode: Suspended`; the turn ends at once, files stay. */
export const suspendSessionRoute = verb('suspendSession', 'stop', 'Suspend a session, keeping its files');
/** `POST …/restart`: a new `restartToken`. */
export const restartSessionRoute = verb('restartSession', 'restart', 'Restart the sandbox of a session');

/** `GET …/health`: the newest health report with its age; 503 `sandbox_unreachable` when there is none. */
export const sessionHealthRoute = defineRoute({
  operationId: 'getSessionHealth',
  listener: 'public',
  method: 'GET',
  path: '/v1/namespaces/:namespace/sessions/:name/health',
  summary: 'The health document of the running sandbox',
  auth: { kind: 'resource', resource: 'sessions', verb: 'get' },
  params: objectParams,
  responses: { 200: z.object({ health: healthDocument, reportedAt: z.iso.datetime(), silent: z.boolean() }) },
});

/** See sessionView. */
export type SessionView = z.output<typeof sessionView>;
