// `beeuni sessions abort`.
import { abortRoute } from '#schema/rest/prompts.ts';
import { defineCommand } from '../command.ts';
import { SESSION_ARGUMENT } from '../session-names.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'end the running turn of a session',
  arguments: [SESSION_ARGUMENT],
  options: {},
  needsApi: true,
  run: async ({ api, args, note }) => {
    const params = api.nameOf(args[0] ?? '');
    const { body } = await (await api.client()).call(abortRoute, { params, body: {} });
    note(`turn ${body.turnId} is being ended`);
    return undefined;
  },
});
