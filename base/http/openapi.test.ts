// The OpenAPI document as a projection of routes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { defineRoute, type Route } from '#schema/define-route.ts';
import { openApiDocument } from './openapi.ts';

const routes: readonly Route[] = [
  defineRoute({
    operationId: 'makeThing',
    listener: 'public',
    method: 'POST',
    path: '/v1/things/:id',
    summary: 'Make a thing',
    auth: { kind: 'resource', resource: 'sessions', subresource: 'prompts', verb: 'create' },
    params: z.object({ id: z.string().max(9) }),
    query: z.object({ dry: z.enum(['true', 'false']).default('false'), since: z.string() }),
    body: z.object({ size: z.int().default(1) }),
    responses: { 201: z.object({ size: z.int() }), 204: z.null() },
  }),
  defineRoute({
    operationId: 'follow',
    listener: 'public',
    method: 'GET',
    path: '/v1/things/:id',
    summary: 'Follow',
    auth: { kind: 'anyone' },
    stream: 'sse',
    responses: { 200: z.object({ n: z.int() }) },
  }),
];
const info = { title: 't', version: '1', description: 'd', error: z.object({ error: z.string() }) };
type Operation = Record<string, never> & {
  parameters: { name: string; required: boolean }[];
  requestBody: { content: Record<string, { schema: { required?: string[] } }> };
  responses: Record<string, { content?: Record<string, unknown> }>;
  security?: unknown[];
  description: string;
};
const operation = (method: string): Operation => {
  const paths = openApiDocument(routes, info)['paths'] as Record<string, Record<string, Operation>>;
  const found = paths['/v1/things/{id}']?.[method];
  assert.ok(found !== undefined);
  return found;
};

test('both methods of a path are there, with who may call', () => {
  assert.match(operation('post').description, /verb create on sessions\/prompts of beeuni\.dev/);
  assert.deepEqual(operation('get').security, []);
  assert.equal(operation('post').security, undefined);
});

test('a field with a default may be left out, one without may not', () => {
  const required = Object.fromEntries(operation('post').parameters.map(({ name, required }) => [name, required]));
  assert.deepEqual(required, { id: true, dry: false, since: true, 'Idempotency-Key': false });
  assert.equal(operation('post').requestBody.content['application/json']?.schema.required, undefined);
});

test('answers have their media type, an empty one has none, and a route names how it can fail', () => {
  assert.deepEqual(
    Object.keys(operation('post').responses),
    '201 204 400 401 402 403 404 405 408 409 413 415 422 429 431 501 502 503 504'.split(' '),
  );
  assert.deepEqual(Object.keys(operation('get').responses), ['200', '400', '405', '408', '431']);
  assert.equal(operation('post').responses['204']?.content, undefined);
  const content = operation('get').responses['200']?.content ?? {};
  assert.deepEqual(Object.keys(content), ['text/event-stream']);
  const { schema } = content['text/event-stream'] as { schema: Record<string, { properties: { data: object } }> };
  const { contentMediaType, contentSchema } = (schema['then']?.properties.data ?? {}) as Record<string, unknown>;
  assert.equal(contentMediaType, 'application/json');
  assert.ok('n' in (contentSchema as { properties: object }).properties, 'an event is described, its data inside');
});
