// `beeuni sessions rm`. Asks before it deletes, where somebody can answer.
import { createInterface } from 'node:readline/promises';
import { deleteSessionRoute } from '#schema/rest/sessions.ts';
import { defineCommand } from '../command.ts';
import { CommandError, EXIT, usageError } from '../failure.ts';
import { SESSION_ARGUMENT } from '../session-names.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'delete a session with its sandbox, files and event log; what was pushed stays',
  arguments: [SESSION_ARGUMENT],
  options: { yes: { summary: 'do not ask', short: 'y' } },
  needsApi: true,
  run: async ({ api, args, options, io, note }) => {
    const params = api.nameOf(args[0] ?? '');
    if (!options.yes) {
      if (!io.isTerminal.stdin) throw usageError('deleting needs --yes where nobody can be asked');
      const lines = createInterface({ input: io.stdin, output: io.stderr });
      const answer = await lines.question(`delete session ${params.namespace}/${params.name} with its files? [y/N] `);
      lines.close();
      if (!/^y(es)?$/i.test(answer.trim())) throw new CommandError(EXIT.refused, 'nothing was deleted');
    }
    await (await api.client()).call(deleteSessionRoute, { params });
    note(`session ${params.name} is being deleted`);
    return undefined;
  },
});
