// Handlers about model names. Must not know the registry. Source: 20-control-plane §3.
import type { listModelsRoute, validateModelsRoute } from '#schema/rest/workspace.ts';
import type { ModelsApp } from '../app/models.ts';
import type { Handler } from './handler.ts';

/** The handlers, one per route of schema/rest/workspace.ts. */
export type ModelHandlers = Readonly<{
  listModels: Handler<typeof listModelsRoute>;
  validateModels: Handler<typeof validateModelsRoute>;
}>;

/** Makes the handlers. Errors: those of the app. */
export const makeModelHandlers = (app: ModelsApp): ModelHandlers => ({
  listModels: async ({ query }) => {
    const page = await app.list(query);
    return { status: 200, body: { items: [...page.items], cursor: page.cursor } };
  },
  validateModels: async ({ body }) => ({ status: 200, body: await app.validate(body.names) }),
});
