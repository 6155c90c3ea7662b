// A container registry in memory: what a push needs of the OCI distribution specification, and nothing else. It refuses
// what is pushed below `denied/`.
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';

/** A running registry. `stored`: digests of blobs, and manifests by `<name>:<reference>`. */
export type Registry = Readonly<{
  port: number;
  blobs: ReadonlyMap<string, Buffer>;
  manifests: ReadonlyMap<string, Buffer>;
  stop: () => Promise<void>;
}>;

const digestOf = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

/** Starts one on a free port of 127.0.0.1. */
export const startRegistry = async (): Promise<Registry> => {
  const blobs = new Map<string, Buffer>();
  const manifests = new Map<string, Buffer>();
  const uploads = new Map<string, Buffer[]>();
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(request.url ?? '/', 'http://registry');
    const body = await buffer(request);
    const answer = (status: number, headers: Record<string, string> = {}): void =>
      void response.writeHead(status, { 'content-length': '0', ...headers }).end();
    const [, name, kind, reference] = /^\/v2\/(.+)\/(blobs|manifests)\/(.+)$/.exec(url.pathname) ?? [];
    if (url.pathname === '/v2/') return answer(200);
    if (kind === undefined || name === undefined || reference === undefined) return answer(404);
    if (name.startsWith('denied/')) return answer(403);
    if (request.method === 'POST') {
      const id = `upload-${uploads.size + 1}`;
      uploads.set(id, []);
      return answer(202, { location: `/v2/${name}/blobs/uploads/${id}` });
    }
    const id = reference.split('/').at(-1) ?? '';
    const upload = uploads.get(id);
    if (request.method === 'PATCH' && upload !== undefined) {
      upload.push(body);
      return answer(202, { location: url.pathname, range: `0-${Buffer.concat(upload).length - 1}` });
    }
    if (request.method === 'PUT') {
      const bytes = upload === undefined ? body : Buffer.concat([...upload, body]);
      const digest = digestOf(bytes);
      if (upload !== undefined && digest !== url.searchParams.get('digest')) return answer(400);
      if (upload === undefined) manifests.set(`${name}:${reference}`, bytes);
      else blobs.set(digest, bytes);
      return answer(201, { 'docker-content-digest': digest });
    }
    return answer(kind === 'blobs' && blobs.has(reference) ? 200 : 404);
  };
  const server = createServer((request, response) => void serve(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    port,
    blobs,
    manifests,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};
