// What harnesses ask people: open permissions and questions of all sessions, and the answers to them.
// Source: 20-control-plane §3, §9; A116 to A123.
import { z } from 'zod';
import { defineRoute } from '../define-route.ts';
import { permissionAnswer, questionAnswer, requestKind } from '../wire/requests.ts';
import { objectParams, pageOf, pageQuery } from './lists.ts';

/**
 * One request. `data` is what the harness said: permission, patterns, metadata, or questions. `answered`: a person has
 * answered and the sandbox has not confirmed it yet. `outcome` of a question that nobody answered is `reject`.
 */
export const humanRequestView = z.object({
  id: z.string(),
  kind: requestKind,
  namespace: z.string(),
  session: z.string(),
  sessionUid: z.string(),
  threadId: z.string(),
  turnId: z.string().nullable(),
  data: z.record(z.string(), z.unknown()),
  askedAt: z.iso.datetime(),
  deadlineAt: z.iso.datetime().nullable(),
  state: z.enum(['open', 'answered', 'ended']),
  outcome: z.enum(['once', 'always', 'reject', 'answered']).nullable(),
  answeredBy: z.string().nullable(),
  answeredAt: z.iso.datetime().nullable(),
  endedAt: z.iso.datetime().nullable(),
});

/** `GET /v1/requests`: open ones of every session in which the caller may answer, oldest first. */
export const listRequestsRoute = defineRoute({
  operationId: 'listRequests',
  listener: 'public',
  method: 'GET',
  path: '/v1/requests',
  summary: 'List what waits for an answer of the caller',
  auth: { kind: 'user' },
  query: pageQuery,
  responses: { 200: pageOf(humanRequestView) },
});

const params = objectParams.extend({ id: z.string().min(1).max(128) });

/** `GET …/permissions/{id}`: 404 `request_not_found`. */
export const getPermissionRoute = defineRoute({
  operationId: 'getPermission',
  listener: 'public',
  method: 'GET',
  path: '/v1/namespaces/:namespace/sessions/:name/permissions/:id',
  summary: 'Read a permission request',
  auth: { kind: 'resource', resource: 'sessions', subresource: 'permissions', verb: 'get' },
  params,
  responses: { 200: humanRequestView },
});

/**
 * `POST …/permissions/{id}`: 200 once the sandbox has the answer, 202 when it will get it; the same answer again is the
 * same answer. 404 `request_not_found`, 409 `request_ended`.
 */
export const answerPermissionRoute = defineRoute({
  operationId: 'answerPermission',
  listener: 'public',
  method: 'POST',
  path: '/v1/namespaces/:namespace/sessions/:name/permissions/:id',
  summary: 'Answer a permission request',
  auth: { kind: 'resource', resource: 'sessions', subresource: 'permissions', verb: 'create' },
  params,
  body: permissionAnswer,
  responses: { 200: humanRequestView, 202: humanRequestView },
});

/** `GET …/questions/{id}`: 404 `request_not_found`. */
export const getQuestionRoute = defineRoute({
  operationId: 'getQuestion',
  listener: 'public',
  method: 'GET',
  path: '/v1/namespaces/:namespace/sessions/:name/questions/:id',
  summary: 'Read a question',
  auth: { kind: 'resource', resource: 'sessions', subresource: 'questions', verb: 'get' },
  params,
  responses: { 200: humanRequestView },
});

/** `POST …/questions/{id}`: like a permission; `{"answers": [["B"]]}`, one list per question, or `{"reject": true}`. */
export const answerQuestionRoute = defineRoute({
  operationId: 'answerQuestion',
  listener: 'public',
  method: 'POST',
  path: '/v1/namespaces/:namespace/sessions/:name/questions/:id',
  summary: 'Answer a question, or dismiss it',
  auth: { kind: 'resource', resource: 'sessions', subresource: 'questions', verb: 'create' },
  params,
  body: questionAnswer,
  responses: { 200: humanRequestView, 202: humanRequestView },
});

/** See humanRequestView. */
export type HumanRequestView = z.output<typeof humanRequestView>;
