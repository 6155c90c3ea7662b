// `beeuni sessions runs`: every attempt of every prompt, newest first.
import { listRunsRoute } from '#schema/rest/transcript.ts';
import { defineCommand, JSON_OPTION } from '../command.ts';
import { printList, readPages } from '../print-page.ts';
import { SESSION_ARGUMENT } from '../session-names.ts';
import { ageText } from '../table.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'list the runs of a session with their outcomes, newest first',
  arguments: [SESSION_ARGUMENT],
  options: JSON_OPTION,
  needsApi: true,
  run: async (call) => {
    const params = call.api.nameOf(call.args[0] ?? '');
    const client = await call.api.client();
    const runs = await readPages(async (query) => (await client.call(listRunsRoute, { params, query })).body);
    const nowMs = Date.now();
    printList(
      call,
      call.options.json,
      runs,
      [
        { head: 'ID', cell: ({ id }) => id },
        { head: 'TRY', cell: ({ attempt }) => attempt },
        { head: 'OUTCOME', cell: ({ outcome }) => outcome },
        { head: 'AGE', cell: ({ takenAt }) => ageText(takenAt, nowMs) },
        { head: 'COMMIT', cell: ({ commit }) => commit?.slice(0, 12) },
        { head: 'MESSAGE', cell: ({ message, summary }) => message ?? summary },
      ],
      `session ${params.name} has run nothing yet`,
    );
    return undefined;
  },
});
