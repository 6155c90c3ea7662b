// `beeuni sessions commands`: the slash commands of a session, or one of them as a turn. Source: A134.
import { listCommandsRoute, runCommandRoute } from '#schema/rest/session-verbs.ts';
import { defineCommand, JSON_OPTION } from '../command.ts';
import { printList } from '../print-page.ts';
import { newMessageId, sendAndWatch } from '../send-prompt.ts';
import { SESSION_ARGUMENT } from '../session-names.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'list the slash commands of a session, or run one',
  arguments: [
    SESSION_ARGUMENT,
    {
      name: 'COMMAND',
      summary: 'name of the command, and what follows it; without it they are listed',
      optional: true,
      rest: true,
    },
  ],
  options: JSON_OPTION,
  needsApi: true,
  examples: ['beeuni sessions commands fix-login', 'beeuni sessions commands fix-login review main'],
  run: async (call) => {
    const { api, args, io, note } = call;
    const [session = '', given, ...words] = args;
    const params = api.nameOf(session);
    if (given !== undefined) {
      const body = { name: given.replace(/^\//, ''), arguments: words.join(' '), messageId: newMessageId() };
      const send = async () => (await (await api.client()).call(runCommandRoute, { params, body })).body;
      return sendAndWatch(api, params, send, { io, note });
    }
    const { items } = (await (await api.client()).call(listCommandsRoute, { params })).body;
    printList(
      call,
      call.options.json,
      items,
      [
        { head: 'NAME', cell: ({ name }) => `/${name}` },
        { head: 'SOURCE', cell: ({ source }) => source },
        { head: 'DESCRIPTION', cell: ({ description }) => description },
      ],
      'the session has no slash commands',
    );
    return undefined;
  },
});
