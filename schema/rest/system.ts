// Routes about the process itself: its description, liveness, readiness and metrics. Source: 20-control-plane §1, K34.
import { z } from 'zod';
import { defineRoute } from '../define-route.ts';

/** `GET /openapi.json` on the public listener. */
export const openApiRoute = defineRoute({
  operationId: 'getOpenApi',
  listener: 'public',
  method: 'GET',
  path: '/openapi.json',
  summary: 'This description of the API',
  auth: { kind: 'anyone' },
  responses: { 200: z.record(z.string(), z.unknown()) },
});

/** `GET /docs` on the public listener: the same as an HTML page. */
export const docsRoute = defineRoute({
  operationId: 'getDocs',
  listener: 'public',
  method: 'GET',
  path: '/docs',
  summary: 'This description of the API, to be read',
  auth: { kind: 'anyone' },
  responses: { 200: z.string() },
});

/** `GET /healthz` on the metrics listener: the event loop turns; nothing outside is asked. */
export const healthzRoute = defineRoute({
  operationId: 'getHealthz',
  listener: 'metrics',
  method: 'GET',
  path: '/healthz',
  summary: 'Whether the process lives',
  auth: { kind: 'anyone' },
  responses: { 200: z.object({ status: z.literal('ok') }) },
});

/** `waitingFor` names what is missing; with `ready` true it names what is impaired, while everything else is served. */
const readiness = z.object({ ready: z.boolean(), waitingFor: z.array(z.string()) });

/** `GET /readyz` on the metrics listener: 503 names what is missing. */
export const readyzRoute = defineRoute({
  operationId: 'getReadyz',
  listener: 'metrics',
  method: 'GET',
  path: '/readyz',
  summary: 'Whether the process can serve',
  auth: { kind: 'anyone' },
  responses: { 200: readiness, 503: readiness },
});

/** `GET /metrics` on the metrics listener, in Prometheus' text format. */
export const metricsRoute = defineRoute({
  operationId: 'getMetrics',
  listener: 'metrics',
  method: 'GET',
  path: '/metrics',
  summary: 'Metrics',
  auth: { kind: 'anyone' },
  responses: { 200: z.string() },
});
