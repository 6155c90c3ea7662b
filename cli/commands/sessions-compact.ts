// `beeuni sessions compact`. Source: A135, A136.
import { summarizeSessionRoute } from '#schema/rest/session-verbs.ts';
import { defineCommand } from '../command.ts';
import { newMessageId, sendAndWatch } from '../send-prompt.ts';
import { SESSION_ARGUMENT } from '../session-names.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'shrink the conversation of a session, as a turn',
  arguments: [SESSION_ARGUMENT],
  options: {},
  needsApi: true,
  run: async ({ api, args, io, note }) => {
    const params = api.nameOf(args[0] ?? '');
    const send = async () => {
      const client = await api.client();
      return (await client.call(summarizeSessionRoute, { params, body: { messageId: newMessageId() } })).body;
    };
    return sendAndWatch(api, params, send, { io, note });
  },
});
