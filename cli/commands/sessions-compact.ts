// `beeuni sessions compact`. Source: A135, A136.
import type { StoredEvent } from '#schema/events/envelope.ts';
import { summarizeSessionRoute } from '#schema/rest/session-verbs.ts';
import { defineCommand } from '../command.ts';
import { EXIT } from '../failure.ts';
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
    let isShrunk = false;
    const onEvent = ({ type }: StoredEvent): void => {
      isShrunk ||= type === 'session.compacted';
    };
    const exitCode = await sendAndWatch(api, params, send, { io, note, onEvent });
    // The event log says it where it was; a harness that finds nothing to leave out only ends its turn.
    if (exitCode === EXIT.done && !isShrunk) note('nothing to summarise: the conversation stays as it is');
    return exitCode;
  },
});
