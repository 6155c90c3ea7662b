// `beeuni sessions shell`: a terminal in the sandbox. Source: A201.
import { getTerminalsRoute } from '#schema/rest/terminals.ts';
import { defineCommand, JSON_OPTION } from '../command.ts';
import { useTerminal } from '../open-terminal.ts';
import { printList } from '../print-page.ts';
import { SESSION_ARGUMENT } from '../session-names.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'open a shell in the sandbox of a session',
  arguments: [SESSION_ARGUMENT],
  options: {
    command: { summary: 'run this command line of a shell in place of a login shell', value: 'LINE', short: 'c' },
    id: { summary: 'attach to this terminal, or make it', value: 'ID' },
    list: { summary: 'list the terminals of the sandbox', short: 'l' },
    ...JSON_OPTION,
  },
  needsApi: true,
  details: [
    'The shell has the environment that commands of the agent have, granted secrets included. Ctrl-] leaves it running; attach again with --id. The exit code is that of the program.',
  ],
  examples: ['beeuni sessions shell fix-login', 'beeuni sessions shell fix-login -c "npm test"'],
  run: async (call) => {
    const { api, args, options, io, note } = call;
    const params = api.nameOf(args[0] ?? '');
    if (options.list) {
      const { terminals } = (await (await api.client()).call(getTerminalsRoute, { params })).body;
      printList(
        call,
        options.json,
        terminals,
        [
          { head: 'ID', cell: ({ id }) => id },
          { head: 'STATUS', cell: ({ status }) => status },
          { head: 'EXIT', cell: ({ exitCode }) => exitCode },
          { head: 'VIEWERS', cell: ({ attachedViewers }) => attachedViewers },
          { head: 'COMMAND', cell: ({ title }) => title },
        ],
        'the sandbox has no terminals',
      );
      return undefined;
    }
    return useTerminal(api, params, { id: options.id, command: options.command }, io, note);
  },
});
