// `beeuni sessions rewind`: back to before a message, with the files, and forth again. Source: A62.
import { revertSessionRoute, unrevertSessionRoute } from '#schema/rest/session-verbs.ts';
import { defineCommand } from '../command.ts';
import { usageError } from '../failure.ts';
import { SESSION_ARGUMENT } from '../session-names.ts';

/** Files are put back too, which may take its time. Units: milliseconds. */
const LIMIT_MS = 120_000;

/** See the file. */
export const command = defineCommand({
  summary: 'go back to before a message, with the files, or take that back',
  arguments: [SESSION_ARGUMENT, { name: 'MESSAGE', summary: 'id of the message', optional: true }],
  options: { undo: { summary: 'take the last rewind back' } },
  needsApi: true,
  details: [
    'beeuni sessions search and beeuni sessions log --json name the messages. A harness that cannot do it refuses.',
  ],
  run: async ({ api, args, options, note }) => {
    const params = api.nameOf(args[0] ?? '');
    const messageId = args[1];
    if (options.undo === (messageId !== undefined)) throw usageError('give a MESSAGE, or --undo');
    const client = await api.client();
    const limit = { timeoutMs: LIMIT_MS };
    if (messageId === undefined) await client.call(unrevertSessionRoute, { params, body: {} }, limit);
    else await client.call(revertSessionRoute, { params, body: { messageId } }, limit);
    note(messageId === undefined ? 'the rewind was taken back' : `back to before ${messageId}`);
    return undefined;
  },
});
