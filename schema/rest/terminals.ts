// Terminals of a running session. Source: 20-control-plane §3, A201; frames: schema/wire/terminals.ts.
import { z } from 'zod';
import { defineRoute } from '../define-route.ts';
import { listTerminalsRoute, terminalNotice, terminalQuery } from '../wire/terminals.ts';
import { objectParams } from './lists.ts';

/**
 * `GET S/terminal` as a WebSocket: attaches to the terminal `id`, or makes it. The caller is recognised and allowed before the
 * upgrade; a page of another origin is refused. A plain GET answers 400.
 */
export const openTerminalRoute = defineRoute({
  operationId: 'openSessionTerminal',
  listener: 'public',
  method: 'GET',
  path: '/v1/namespaces/:namespace/sessions/:name/terminal',
  summary: 'Attach to a terminal of the sandbox, or make one (WebSocket)',
  auth: { kind: 'resource', resource: 'sessions', subresource: 'terminal', verb: 'create' },
  params: objectParams,
  query: terminalQuery,
  stream: 'websocket',
  responses: { 200: terminalNotice },
});

/** `GET S/terminals`. */
export const getTerminalsRoute = defineRoute({
  operationId: 'getSessionTerminals',
  listener: 'public',
  method: 'GET',
  path: '/v1/namespaces/:namespace/sessions/:name/terminals',
  summary: 'The terminals of the sandbox',
  auth: { kind: 'resource', resource: 'sessions', subresource: 'terminal', verb: 'list' },
  params: objectParams,
  responses: { 200: listTerminalsRoute.responses[200] },
});

/** `DELETE S/terminals/{id}`: ends a terminal. 404 `not_found`. */
export const deleteTerminalRoute = defineRoute({
  operationId: 'deleteSessionTerminal',
  listener: 'public',
  method: 'DELETE',
  path: '/v1/namespaces/:namespace/sessions/:name/terminals/:id',
  summary: 'End a terminal of the sandbox',
  auth: { kind: 'resource', resource: 'sessions', subresource: 'terminal', verb: 'delete' },
  params: objectParams.extend({ id: z.string().max(63) }),
  responses: { 204: z.null() },
});
