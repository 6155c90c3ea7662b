// `beeuni providers ls`. Keys are never shown: the server does not give them away.
import { listProvidersRoute } from '#schema/rest/workspace.ts';
import { defineCommand, JSON_OPTION } from '../command.ts';
import { printList, readPages } from '../print-page.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'list the model providers',
  options: JSON_OPTION,
  needsApi: true,
  run: async (call) => {
    const client = await call.api.client();
    const providers = await readPages(async (query) => (await client.call(listProvidersRoute, { query })).body);
    printList(
      call,
      call.options.json,
      providers,
      [
        { head: 'ID', cell: ({ id }) => id },
        { head: 'KIND', cell: ({ kind }) => kind },
        { head: 'ENABLED', cell: ({ enabled }) => (enabled ? 'yes' : 'no') },
        { head: 'MODELS', cell: ({ models }) => models.length },
        { head: 'ADDRESS', cell: (provider) => provider.base_url },
      ],
      'no provider is registered; an administrator adds one through PUT /v1/workspace/providers/ID',
    );
    return undefined;
  },
});
