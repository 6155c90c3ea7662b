// `beeuni sessions todo`: the plan of the agent.
import { getTodoRoute } from '#schema/rest/transcript.ts';
import { defineCommand, JSON_OPTION } from '../command.ts';
import { printList } from '../print-page.ts';
import { SESSION_ARGUMENT } from '../session-names.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'show the plan of the agent',
  arguments: [SESSION_ARGUMENT],
  options: JSON_OPTION,
  needsApi: true,
  run: async (call) => {
    const params = call.api.nameOf(call.args[0] ?? '');
    const { todos } = (await (await call.api.client()).call(getTodoRoute, { params })).body;
    printList(
      call,
      call.options.json,
      todos,
      [
        { head: 'STATUS', cell: ({ status }) => status },
        { head: 'PRIORITY', cell: ({ priority }) => priority },
        { head: 'WHAT', cell: ({ content }) => content },
      ],
      'the agent keeps no plan',
    );
    return undefined;
  },
});
