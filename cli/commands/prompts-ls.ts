// `beeuni prompts ls`.
import { listPromptsRoute } from '#schema/rest/prompts.ts';
import { defineCommand, JSON_OPTION } from '../command.ts';
import { printList, readPages } from '../print-page.ts';
import { SESSION_ARGUMENT } from '../session-names.ts';
import { ageText } from '../table.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'list the prompts of a session, newest first',
  arguments: [SESSION_ARGUMENT],
  options: JSON_OPTION,
  needsApi: true,
  run: async (call) => {
    const params = call.api.nameOf(call.args[0] ?? '');
    const client = await call.api.client();
    const prompts = await readPages(async (query) => (await client.call(listPromptsRoute, { params, query })).body);
    const nowMs = Date.now();
    printList(
      call,
      call.options.json,
      prompts,
      [
        { head: 'ID', cell: ({ id }) => id },
        { head: 'STATE', cell: ({ state }) => state },
        { head: 'OUTCOME', cell: ({ outcome }) => outcome },
        { head: 'ORIGIN', cell: ({ origin }) => origin },
        { head: 'AGE', cell: ({ createdAt }) => ageText(createdAt, nowMs) },
        { head: 'TURN', cell: ({ turnId }) => turnId },
      ],
      `session ${params.name} has no prompts`,
    );
    return undefined;
  },
});
