// The few requests that starting a cluster needs, as its administrator. Tests of the product use the room `kube` instead.
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';

/** A GET or a write as cluster administrator. `status` is 0 when nothing answered within 5 s. */
export type AdminRequest = (
  method: string,
  path: string,
  body?: unknown,
) => Promise<{ readonly status: number; readonly body: string }>;

/** A function that calls the API server at `url` with the certificates `ca.crt`, `admin.crt` and `admin.key` of `dir`. It never rejects. */
export function adminRequests(url: string, dir: string): AdminRequest {
  const tls = {
    ca: readFileSync(join(dir, 'ca.crt')),
    cert: readFileSync(join(dir, 'admin.crt')),
    key: readFileSync(join(dir, 'admin.key')),
  };
  return (method, path, body) =>
    new Promise((resolve) => {
      const silence = { status: 0, body: '' };
      const headers = body === undefined ? {} : { 'content-type': 'application/json' };
      const outgoing = request(
        new URL(path, url),
        { method, headers, agent: false, timeout: 5000, ...tls },
        (incoming) => {
          const chunks: Buffer[] = [];
          incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
          incoming.on('error', () => resolve(silence));
          incoming.on('end', () =>
            resolve({ status: incoming.statusCode ?? 0, body: Buffer.concat(chunks).toString() }),
          );
        },
      );
      outgoing.on('timeout', () => outgoing.destroy());
      outgoing.on('error', () => resolve(silence));
      outgoing.end(body === undefined ? undefined : JSON.stringify(body));
    });
}
