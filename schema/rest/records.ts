// What was done through the API, and what model calls cost. Source: 20-control-plane §2, §3, §10.
import { z } from 'zod';
import { defineRoute } from '../define-route.ts';
import { objectParams, pageOf, pageQuery, queryText } from './lists.ts';

const name = queryText;
const period = {
  since: z.iso.datetime({ offset: true }).optional(),
  until: z.iso.datetime({ offset: true }).optional(),
};

/**
 * How a change ended; `open`: it has not yet; `unknown`: longer than any call takes, so its process died on the way and
 * the change was made or was not. A row that ends later after all says how. Source: B42, docs/decisions/0047.
 */
export const AUDIT_OUTCOMES = ['ok', 'refused', 'failed', 'open', 'unknown'] as const;

/**
 * One change. Digests are SHA-256 in hex: of call and body, and of the object's declared state before and after (null
 * when there was none). `before` and `after` hold values of workspace settings only; no row holds a body or a secret.
 */
export const auditRow = z.object({
  id: z.int(),
  at: z.iso.datetime(),
  requestId: z.string(),
  subject: z.string(),
  operation: z.string(),
  namespace: z.string().nullable(),
  name: z.string().nullable(),
  outcome: z.enum(AUDIT_OUTCOMES),
  status: z.int().nullable(),
  code: z.string().nullable(),
  endedAt: z.iso.datetime().nullable(),
  bodyDigest: z.string(),
  beforeDigest: z.string().nullable(),
  afterDigest: z.string().nullable(),
  before: z.unknown(),
  after: z.unknown(),
});

/** `GET /v1/audit`: newest first. */
export const listAuditRoute = defineRoute({
  operationId: 'listAudit',
  listener: 'public',
  method: 'GET',
  path: '/v1/audit',
  summary: 'List changes that were made through the API',
  auth: { kind: 'non-resource', path: '/v1/audit', verb: 'get' },
  query: pageQuery.extend({
    subject: name.optional(),
    operation: name.optional(),
    namespace: name.optional(),
    name: name.optional(),
    requestId: name.optional(),
    outcome: z.enum(AUDIT_OUTCOMES).optional(),
    ...period,
  }),
  responses: { 200: pageOf(auditRow) },
});

/** By what usage can be added up. A day is one of UTC. */
export const USAGE_GROUPS = ['project', 'agent', 'model', 'day'] as const;

/**
 * One sum. A field that was not grouped by is null; so are the agent of calls that named none, and the name of a project
 * that is gone. `estimatedCalls`: calls whose tokens the provider did not report. Money in micro-USD.
 */
export const usageSum = z.object({
  day: z.iso.date().nullable(),
  namespace: z.string().nullable(),
  project: z.string().nullable(),
  projectUid: z.string().nullable(),
  agent: z.string().nullable(),
  model: z.string().nullable(),
  calls: z.int().min(0),
  failedCalls: z.int().min(0),
  estimatedCalls: z.int().min(0),
  promptTokens: z.int().min(0),
  cachedTokens: z.int().min(0),
  completionTokens: z.int().min(0),
  costMicroUsd: z.int().min(0),
});

const usageQuery = pageQuery.extend({
  by: z
    .string()
    .regex(/^(project|agent|model|day)(,(project|agent|model|day)){0,3}$/, `must be some of ${USAGE_GROUPS.join(', ')}`)
    .default('project,model,day'),
  model: name.optional(),
  ...period,
});

/** `GET /v1/usage`: model calls of all projects, of the last 30 days unless `since` says otherwise, at most 400 days. */
export const listUsageRoute = defineRoute({
  operationId: 'listUsage',
  listener: 'public',
  method: 'GET',
  path: '/v1/usage',
  summary: 'Tokens and money of all projects',
  auth: { kind: 'non-resource', path: '/v1/usage', verb: 'get' },
  query: usageQuery.extend({ namespace: name.optional() }),
  responses: { 200: pageOf(usageSum) },
});

/** `GET P/usage`: as `GET /v1/usage`, of one project. */
export const projectUsageRoute = defineRoute({
  operationId: 'getProjectUsage',
  listener: 'public',
  method: 'GET',
  path: '/v1/namespaces/:namespace/projects/:name/usage',
  summary: 'Tokens and money of a project',
  auth: { kind: 'resource', resource: 'projects', verb: 'get' },
  params: objectParams,
  query: usageQuery,
  responses: { 200: pageOf(usageSum) },
});

/** See auditRow. */
export type AuditRow = z.output<typeof auditRow>;
/** See usageSum. */
export type UsageSum = z.output<typeof usageSum>;
/** See USAGE_GROUPS. */
export type UsageGroup = (typeof USAGE_GROUPS)[number];
