// Handlers of the provider registry. Must not know its rules. Source: 20-control-plane §3.
import type {
  checkProviderRoute,
  createProviderRoute,
  deleteProviderRoute,
  discoverProviderRoute,
  getProviderRoute,
  listProvidersRoute,
  putProviderRoute,
} from '#schema/rest/workspace.ts';
import { parseConditions, parseIfMatch } from '../app/if-match.ts';
import type { ProvidersApp } from '../app/providers.ts';
import type { Handler } from './handler.ts';

/** The handlers, one per route of schema/rest/workspace.ts. */
export type ProviderHandlers = Readonly<{
  listProviders: Handler<typeof listProvidersRoute>;
  createProvider: Handler<typeof createProviderRoute>;
  getProvider: Handler<typeof getProviderRoute>;
  putProvider: Handler<typeof putProviderRoute>;
  deleteProvider: Handler<typeof deleteProviderRoute>;
  checkProvider: Handler<typeof checkProviderRoute>;
  discoverProvider: Handler<typeof discoverProviderRoute>;
}>;

/** Makes the handlers. Errors: those of the app. */
export const makeProviderHandlers = (app: ProvidersApp): ProviderHandlers => ({
  listProviders: async ({ query }) => {
    const page = await app.list(query);
    return { status: 200, body: { items: [...page.items], cursor: page.cursor } };
  },
  createProvider: async ({ body }) => ({ status: 201, body: await app.create(body) }),
  getProvider: async ({ params }) => ({ status: 200, body: await app.get(params.id) }),
  putProvider: async ({ params, query, body, header }) => {
    const expected = parseConditions(header('if-match'), header('if-none-match'));
    const { created, view } = await app.put(params.id, body, query.force === 'true', expected);
    return { status: created ? 201 : 200, body: view };
  },
  deleteProvider: async ({ params, query, header }) => {
    await app.remove(params.id, query.force === 'true', parseIfMatch(header('if-match')));
    return { status: 204, body: null };
  },
  checkProvider: async ({ params, signal }) => {
    const check = await app.check(params.id, signal);
    return { status: 200, body: { ...check, models: [...check.models] } };
  },
  discoverProvider: async ({ params, query, signal }) => {
    const found = await app.discover(
      params.id,
      { apply: query.apply === 'true', force: query.force === 'true' },
      signal,
    );
    const { added, retired, restored, references, leftOut: _inMessage, ...rest } = found;
    return {
      status: 200,
      body: {
        ...rest,
        added: [...added],
        retired: [...retired],
        restored: [...restored],
        references: [...references],
      },
    };
  },
});
