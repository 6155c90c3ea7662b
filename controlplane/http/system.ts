// Handlers about the process itself. Must not know what it is made of.
import type { ServerResponse } from 'node:http';
import type { Guard as BaseGuard } from '#base/http/mount.ts';
import { answer, mount } from '#base/http/mount.ts';
import type { OpenApiDocument } from '#base/http/openapi.ts';
import { openApiPage } from '#base/http/openapi-page.ts';
import { mountRaw } from '#base/http/raw-route.ts';
import type { HttpServer } from '#base/http/server.ts';
import { docsRoute, healthzRoute, metricsRoute, openApiRoute, readyzRoute } from '#schema/rest/system.ts';
import type { Caller } from '../app/caller.ts';

/** Whether the process serves, and what is missing or impaired. */
export type Readiness = Readonly<{ ready: boolean; waitingFor: readonly string[] }>;

/** What the metrics listener shows. */
export type SystemPorts = Readonly<{
  readiness: () => Readiness;
  metricsPage: Readonly<{ contentType: string; render: () => Promise<string> }>;
}>;

const open: BaseGuard<Caller> = {
  authenticate: async () => ({ kind: 'anyone' }),
  authorize: async () => {},
};

/** Serves /healthz, /readyz and /metrics. */
export const mountSystem = (server: HttpServer, ports: SystemPorts): void => {
  mount(server, healthzRoute, async () => answer(200, { status: 'ok' } as const), open);
  mount(
    server,
    readyzRoute,
    async () => {
      const { ready, waitingFor } = ports.readiness();
      return answer(ready ? 200 : 503, { ready, waitingFor: [...waitingFor] });
    },
    open,
  );
  mountRaw(
    server,
    {
      route: metricsRoute,
      handler: async ({ response }) => {
        const page = await ports.metricsPage.render();
        response.writeHead(200, { 'content-type': ports.metricsPage.contentType });
        response.end(page);
      },
    },
    open,
  );
};

/** Serves /openapi.json and /docs. */
export const mountApiDocument = (server: HttpServer, document: OpenApiDocument): void => {
  mount(server, openApiRoute, async () => answer(200, { ...document }), open);
  const { html, contentSecurityPolicy } = openApiPage(document);
  const handler = async ({ response }: Readonly<{ response: ServerResponse }>): Promise<void> => {
    response.writeHead(200, {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': contentSecurityPolicy,
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
    });
    response.end(html);
  };
  mountRaw(server, { route: docsRoute, handler }, open);
  // What people type who are used to folders.
  mountRaw(server, { route: { ...docsRoute, path: `${docsRoute.path}/` }, handler }, open);
};
