// The OpenAPI 3.1 document of a list of routes: pure, a projection of the same values that are mounted.
// Must not know any route.
import { z } from 'zod';
import type { Route, RouteAuth } from '#schema/define-route.ts';

/** An OpenAPI document as plain JSON. */
export type OpenApiDocument = Readonly<Record<string, unknown>>;

/** What the document says about itself. `error` is the body of every answer that is not declared. */
export type OpenApiInfo = Readonly<{ title: string; version: string; description: string; error: z.ZodType }>;

type Json = Readonly<Record<string, unknown>>;

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

const STATUS_WORDS: Readonly<Record<string, string>> = {
  200: 'OK',
  201: 'Created',
  202: 'Accepted',
  204: 'No content',
};

const responses = (route: Route): Json => {
  const declared = Object.entries(route.responses).map(([status, schema]) => {
    const description = STATUS_WORDS[status] ?? 'Answer';
    if (status === '204') return [status, { description }];
    const media = route.stream === undefined ? 'application/json' : MEDIA[route.stream];
    const headers = route.etag === undefined ? {} : { headers: { ETag: { schema: { type: 'string' } } } };
    return [status, { description, ...headers, content: { [media]: { schema: jsonSchema(schema, 'output') } } }];
  });
  return { ...Object.fromEntries(declared), default: { $ref: '#/components/responses/Error' } };
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
  parameters: [...parameters('path', route.params), ...parameters('query', route.query), ...preconditions(route)],
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
      responses: {
        Error: {
          description: 'An error',
          content: { 'application/json': { schema: jsonSchema(info.error, 'output') } },
        },
      },
    },
  };
};
