// Raw requests to a test API server as administrator or as somebody else, with JSON in and out.
// For tests of schemas and policies, where the exact answer of the server is what is tested; our own client is not between.
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import type { Apiserver } from '#test/cluster/cluster.ts';

/** An answer; `body` is parsed JSON. */
export type ApiAnswer = Readonly<{ status: number; body: Record<string, unknown> }>;

/** One request. `as` is a user name to impersonate, in group system:masters, so that only policies can refuse it. */
export type ApiCall = Readonly<{
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  path: string;
  body?: unknown;
  contentType?: string;
  accept?: string;
  as?: string;
}>;

/** Requests over kept connections; `close` ends them. */
export type ApiRequests = Readonly<{ call: (call: ApiCall) => Promise<ApiAnswer>; close: () => void }>;

/** A field and its message, of an answer that refuses an object. */
export type Cause = Readonly<{ field: string; message: string }>;

/** The causes that a 422 answer lists. */
export function causesOf(answer: ApiAnswer): readonly Cause[] {
  const details = answer.body['details'] as { causes?: readonly Cause[] } | undefined;
  return details?.causes ?? [];
}

/** Content type of a server-side apply. */
export const APPLY = 'application/apply-patch+yaml';
/** Content type of a merge patch. */
export const MERGE = 'application/merge-patch+json';

/** Requests to `api` with the administrator's certificate. */
export function apiRequests(api: Apiserver): ApiRequests {
  const read = (name: string) => readFileSync(join(api.dir, 'pki', name));
  const agent = new Agent({ keepAlive: true, ca: read('ca.crt'), cert: read('admin.crt'), key: read('admin.key') });
  const call = ({ method, path, body, contentType, accept, as }: ApiCall): Promise<ApiAnswer> =>
    new Promise((resolve, reject) => {
      const outgoing = request(
        new URL(path, api.url),
        {
          method,
          agent,
          timeout: 20_000,
          headers: {
            accept: accept ?? 'application/json',
            ...(body === undefined ? {} : { 'content-type': contentType ?? 'application/json' }),
            ...(as === undefined ? {} : { 'impersonate-user': as, 'impersonate-group': 'system:masters' }),
          },
        },
        (incoming) => {
          const chunks: Buffer[] = [];
          incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
          incoming.on('error', reject);
          incoming.on('end', () => {
            const text = Buffer.concat(chunks).toString();
            resolve({ status: incoming.statusCode ?? 0, body: JSON.parse(text === '' ? '{}' : text) });
          });
        },
      );
      outgoing.on('timeout', () => outgoing.destroy(new Error(`${method} ${path} was not answered in 20 s`)));
      outgoing.on('error', reject);
      outgoing.end(body === undefined ? undefined : JSON.stringify(body));
    });
  return { call, close: () => agent.destroy() };
}
