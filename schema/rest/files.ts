// Files, changes and log lines of a running session. A session without a sandbox answers 503 `sandbox_unreachable`.
// Source: 20-control-plane §3, A200.
import { z } from 'zod';
import { defineRoute } from '../define-route.ts';
import { FILE_BODY_BYTES, fileContent, filePath, fileView, workspaceDiff, writtenFile } from '../wire/files.ts';
import { logsRoute } from '../wire/turns.ts';
import { objectParams } from './lists.ts';

/** `GET S/files?path=`: lists a folder, or reads a file up to 1 MiB. Links are shown and never followed. */
export const getFilesRoute = defineRoute({
  operationId: 'getSessionFiles',
  listener: 'public',
  method: 'GET',
  path: '/v1/namespaces/:namespace/sessions/:name/files',
  summary: 'Read a file or list a folder of the workspace',
  auth: { kind: 'resource', resource: 'sessions', subresource: 'files', verb: 'get' },
  params: objectParams,
  query: z.object({ path: filePath.default('') }),
  responses: { 200: fileView },
});

/** `PUT S/files?path=`: replaces a file of at most 1 MiB as a whole, or makes it. `.git` is left to git. */
export const putFilesRoute = defineRoute({
  operationId: 'putSessionFiles',
  listener: 'public',
  method: 'PUT',
  path: '/v1/namespaces/:namespace/sessions/:name/files',
  summary: 'Write a file of the workspace',
  auth: { kind: 'resource', resource: 'sessions', subresource: 'files', verb: 'update' },
  bodyLimitBytes: FILE_BODY_BYTES,
  params: objectParams,
  query: z.object({ path: filePath }),
  body: fileContent,
  responses: { 200: writtenFile },
});

/** `GET S/diff`: the changes of the session against its base commit, committed or not. */
export const getDiffRoute = defineRoute({
  operationId: 'getSessionDiff',
  listener: 'public',
  method: 'GET',
  path: '/v1/namespaces/:namespace/sessions/:name/diff',
  summary: 'What the session has changed',
  auth: { kind: 'resource', resource: 'sessions', subresource: 'files', verb: 'get' },
  params: objectParams,
  responses: { 200: workspaceDiff },
});

/** `GET S/logs`: the newest lines of daemon and harness, without known secrets. */
export const getLogsRoute = defineRoute({
  operationId: 'getSessionLogs',
  listener: 'public',
  method: 'GET',
  path: '/v1/namespaces/:namespace/sessions/:name/logs',
  summary: 'The newest log lines of the sandbox',
  auth: { kind: 'resource', resource: 'sessions', subresource: 'logs', verb: 'get' },
  params: objectParams,
  query: logsRoute.query,
  responses: { 200: logsRoute.responses[200] },
});
