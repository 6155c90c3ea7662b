// `beeuni connect`: the terminal client of a session that is there already. Source: A237.
import { getSessionRoute } from '#schema/rest/sessions.ts';
import { chat } from '../chat.ts';
import { defineCommand } from '../command.ts';
import { usageError } from '../failure.ts';
import { useTerminal } from '../open-terminal.ts';
import { SESSION_ARGUMENT } from '../session-names.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'show what was said and done in a session so far, then talk',
  arguments: [SESSION_ARGUMENT],
  options: { native: { summary: 'the harness’s own terminal client, in the sandbox' } },
  needsApi: true,
  details: [
    'The same as beeuni sessions chat, with the log of the session before it. It works with every harness. With --native the harness’s own client runs in a terminal of the sandbox; a harness without one refuses.',
  ],
  run: async ({ api, args, options, io, note }) => {
    if (!io.isTerminal.stdin || !io.isTerminal.stdout) {
      throw usageError('connect needs a terminal', 'beeuni sessions log prints, beeuni sessions chat sends');
    }
    const session = api.nameOf(args[0] ?? '');
    if (options.native) return useTerminal(api, session, { client: true }, io, note);
    await (await api.client()).call(getSessionRoute, { params: session });
    const settings = {
      since: undefined,
      withPrompts: true,
      delivery: 'queue',
      agent: undefined,
      model: undefined,
    } as const;
    return chat(api, session, io, settings);
  },
});
