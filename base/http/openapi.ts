// The OpenAPI 3.1 document of a list of routes: pure, a projection of the same values that are mounted.
// Must not know any route.
import { z } from 'zod';
import type { Route, RouteAuth } from '#schema/define-route.ts';

/** An OpenAPI document as plain JSON. */
export type OpenApiDocument = Readonly<Record<string, unknown>>;

/** What the document says about itself. `error` is the body of every answer that is not declared. */
export type OpenApiInfo = Readonly<{ title: string; version: string; description: string; error: z.ZodType }>;

type Json = Readonly<Record<string, unknown>>;

const ERROR: Json = { $ref: '#/components/schemas/Error' };

const jsonSchema = (schema: z.ZodType, io: 'input' | 'output'): Json => {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as Json;
  return rest;
};

/** `/v1/things/:id` as `/v1/things/{id}`. */
export const openApiPath = (path: string): string => path.replace(/:([A-Za-z]+)/g, '{$1}');

const parameters = (place: 'path' | 'query', schema: z.ZodObject | undefined): readonly Json[] =>
  Object.entries(schema?.shape ?? {}).map(([name, field]) => {
    const type = field as z.ZodType;
    return {
      name,
      in: place,
      required: place === 'path' || !type.safeParse(undefined).success,
      schema: jsonSchema(type, 'input'),
    };
  });

/** A change of what has an ETag may name the one that it is based on. */
const preconditions = (route: Route): readonly Json[] =>
  route.etag === undefined || route.method === 'GET'
    ? []
    : [{ name: 'If-Match', in: 'header', required: false, schema: { type: 'string' } }];

const MEDIA = { sse: 'text/event-stream', ndjson: 'application/x-ndjson', websocket: 'application/json' } as const;

/** What each status of an error means, whatever its code. Source: schema/problem.ts. */
const ERROR_WORDS: Readonly<Record<number, string>> = {
  400: 'The request is wrong; the message names the field',
  401: 'No valid credential was sent',
  402: 'A budget is used up',
  403: 'The caller may not do this, or a policy forbids it',
  404: 'There is no such object',
  405: 'The path does not take this method; Allow names those that it takes',
  408: 'The request took too long to arrive',
  409: 'The state of the object does not allow this',
  412: 'The object is not the one that the caller read',
  413: 'The body, or a part of it, is too large',
  415: 'The body is not application/json',
  422: 'The API server refused the object, or an idempotency key was used for another call',
  429: 'Too many calls, or a limit is reached; Retry-After says when to come back',
  431: 'The request line and headers are above 16 KiB, for instance because of a very long token',
  501: 'The harness or the installation does not offer this',
  502: 'A provider or a harness failed',
  503: 'Something that is needed does not answer; Retry-After says when to come back',
  504: 'Something that is needed took too long',
};

/** The statuses with which a call of the route can fail, by what the route is. 500 is always a fault of ours. */
export const errorStatuses = (route: Route): readonly number[] => {
  const { auth, method } = route;
  const statuses = new Set([400, 405, 408, 431]);
  const add = (...more: readonly number[]): void => more.forEach((status) => statuses.add(status));
  if (auth.kind !== 'anyone') add(401, 403, 429, 503);
  if (route.params !== undefined) add(404, 409);
  if (route.body !== undefined) add(413, 415);
  if (method !== 'GET') add(409, 422);
  if (method !== 'GET' && route.etag !== undefined) add(412);
  // The sandbox of a session stands behind its routes.
  if (auth.kind === 'resource' && auth.resource === 'sessions') add(402, 413, 501, 502, 504);
  return [...statuses].filter((status) => !(status in route.responses)).sort((a, b) => a - b);
};

/** Header that every write takes. Source: 20-control-plane §2. */
const idempotency = (route: Route): readonly Json[] =>
  route.method === 'GET'
    ? []
    : [
        {
          name: 'Idempotency-Key',
          in: 'header',
          required: false,
          description: 'The same key and call give the same answer for 24 hours; the key with another call is 422.',
          schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]+$' },
        },
      ];

const STATUS_WORDS: Readonly<Record<string, string>> = {
  200: 'OK',
  201: 'Created',
  202: 'Accepted',
  204: 'No content',
};

/** A body of server-sent events is described by one of its events: of the log, or about the stream itself. */
const eventSchema = (data: Json): Json => {
  const json = { type: 'string', contentMediaType: 'application/json' };
  return {
    type: 'object',
    required: ['event', 'data'],
    properties: { id: { type: 'string' }, event: { type: 'string' }, data: json },
    if: { required: ['id'] },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema; nobody awaits it.
    then: { properties: { data: { ...json, contentSchema: data } } },
    description:
      'An event with an id can be resumed after. One without says something of the stream: hello, reset, error.',
  };
};

const responses = (route: Route): Json => {
  const declared = Object.entries(route.responses).map(([status, schema]) => {
    const description = STATUS_WORDS[status] ?? 'Answer';
    if (status === '204') return [status, { description }];
    const media = route.stream === undefined ? 'application/json' : MEDIA[route.stream];
    const headers = route.etag === undefined ? {} : { headers: { ETag: { schema: { type: 'string' } } } };
    const json = jsonSchema(schema, 'output');
    const shown = route.stream === 'sse' ? eventSchema(json) : json;
    return [status, { description, ...headers, content: { [media]: { schema: shown } } }];
  });
  const failed = errorStatuses(route).map((status) => [status, { $ref: `#/components/responses/Error${status}` }]);
  return Object.fromEntries([...declared, ...failed]);
};

/** Who may call, in words. */
export const describeAuth = (auth: RouteAuth): string => {
  switch (auth.kind) {
    case 'anyone':
      return 'Anyone.';
    case 'resource': {
      const what = auth.subresource === undefined ? auth.resource : `${auth.resource}/${auth.subresource}`;
      return `Kubernetes RBAC: verb ${auth.verb} on ${what} of beeuni.dev.`;
    }
    case 'non-resource':
      return `Kubernetes RBAC: verb ${auth.verb} on the non-resource URL ${auth.path}.`;
    case 'user':
      return 'Anybody whom the cluster knows; the answer holds only what Kubernetes RBAC lets the caller have.';
    case 'pod':
      return 'A service-account token that is bound to a pod.';
    case 'sandbox':
      return 'A session credential.';
    case 'operator':
      return "The operator's service-account token.";
    case 'control-plane':
      return 'The credential that the claim gave.';
  }
};

const operation = (route: Route): Json => ({
  operationId: route.operationId,
  summary: route.summary,
  description: describeAuth(route.auth),
  ...(route.auth.kind === 'anyone' ? { security: [] } : {}),
  parameters: [
    ...parameters('path', route.params),
    ...parameters('query', route.query),
    ...preconditions(route),
    ...idempotency(route),
  ],
  ...(route.body === undefined
    ? {}
    : {
        requestBody: { required: true, content: { 'application/json': { schema: jsonSchema(route.body, 'input') } } },
      }),
  responses: responses(route),
});

/** The document of the routes, paths in the order given. */
export const openApiDocument = (routes: readonly Route[], info: OpenApiInfo): OpenApiDocument => {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    const path = openApiPath(route.path);
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route) };
  }
  return {
    openapi: '3.1.0',
    info: { title: info.title, version: info.version, description: info.description },
    security: [{ bearer: [] }],
    paths,
    components: {
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer', description: 'A Kubernetes bearer token.' } },
      schemas: { Error: jsonSchema(info.error, 'output') },
      responses: Object.fromEntries(
        Object.entries(ERROR_WORDS).map(([status, description]) => [
          `Error${status}`,
          { description, content: { 'application/json': { schema: ERROR } } },
        ]),
      ),
    },
  };
};
