// `beeuni prompts rm`.
import { deletePromptRoute } from '#schema/rest/prompts.ts';
import { defineCommand } from '../command.ts';
import { SESSION_ARGUMENT } from '../session-names.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'withdraw a prompt that still waits',
  arguments: [SESSION_ARGUMENT, { name: 'PROMPT', summary: 'id of the prompt' }],
  options: {},
  needsApi: true,
  run: async ({ api, args, note }) => {
    const params = { ...api.nameOf(args[0] ?? ''), id: args[1] ?? '' };
    await (await api.client()).call(deletePromptRoute, { params });
    note(`prompt ${params.id} will not run`);
    return undefined;
  },
});
