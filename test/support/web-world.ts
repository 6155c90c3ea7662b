// A small web for tests: a SearXNG instance and pages, scripted, on a loopback port. Must not know what is tested.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Answers one request. */
export type PageHandler = (request: IncomingMessage, response: ServerResponse) => void;

/** A running web. `requests`: method, path and query of all requests, in order. */
export type WebWorld = Readonly<{ port: number; requests: readonly string[]; stop: () => Promise<void> }>;

/** What a search finds, by category, as SearXNG's JSON has it. */
export type ScriptedResults = Readonly<Record<'general' | 'images', readonly unknown[]>>;

/** Starts it. `pages`: path to handler; `/search` is the search engine. */
export const startWebWorld = async (
  settings: Readonly<{ results?: ScriptedResults; pages?: Readonly<Record<string, PageHandler>> }>,
): Promise<WebWorld> => {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    const url = new URL(request.url ?? '/', 'http://web');
    const page = settings.pages?.[url.pathname];
    if (page !== undefined) page(request, response);
    else if (url.pathname === '/search' && settings.results !== undefined) {
      const category = url.searchParams.get('categories') === 'images' ? 'images' : 'general';
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ query: url.searchParams.get('q'), results: settings.results[category] }));
    } else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    requests,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};
