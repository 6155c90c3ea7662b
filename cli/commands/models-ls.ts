// `beeuni models ls`.
import { listModelsRoute } from '#schema/rest/workspace.ts';
import { defineCommand, JSON_OPTION } from '../command.ts';
import { printList, readPages } from '../print-page.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'list every registered model with its state',
  options: JSON_OPTION,
  needsApi: true,
  run: async (call) => {
    const client = await call.api.client();
    const models = await readPages(async (query) => (await client.call(listModelsRoute, { query })).body);
    printList(
      call,
      call.options.json,
      models,
      [
        { head: 'NAME', cell: ({ name }) => name },
        { head: 'STATE', cell: ({ state }) => state },
        { head: 'CONTEXT', cell: (model) => model.context_window },
        { head: 'INPUT', cell: ({ input }) => input?.join(',') },
      ],
      'no model is registered; an administrator adds providers through PUT /v1/workspace/providers/ID',
    );
    return undefined;
  },
});
