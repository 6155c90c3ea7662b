// `beeuni sessions stop`.
import { suspendSessionRoute } from '#schema/rest/sessions.ts';
import { defineCommand, JSON_OPTION } from '../command.ts';
import { plainJson } from '../plain-text.ts';
import { SESSION_ARGUMENT } from '../session-names.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'stop a session; its turn ends at once, its files are kept',
  arguments: [SESSION_ARGUMENT],
  options: JSON_OPTION,
  needsApi: true,
  run: async ({ api, args, options, print, note }) => {
    const params = api.nameOf(args[0] ?? '');
    const { body } = await (await api.client()).call(suspendSessionRoute, { params, body: {} });
    if (options.json) print(plainJson(body, 2));
    else note(`session ${params.name} stops`);
    return undefined;
  },
});
