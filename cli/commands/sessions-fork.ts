// `beeuni sessions fork`: the conversation goes on from before a message, and what was said stays readable. Source: A62.
import { forkSessionRoute } from '#schema/rest/session-verbs.ts';
import { defineCommand, JSON_OPTION } from '../command.ts';
import { plainJson, plainLine } from '../plain-text.ts';
import { SESSION_ARGUMENT } from '../session-names.ts';

/** The harness copies the conversation. Units: milliseconds. */
const LIMIT_MS = 120_000;

/** See the file. */
export const command = defineCommand({
  summary: 'go on from before a message as another conversation; the files stay as they are',
  arguments: [
    SESSION_ARGUMENT,
    { name: 'MESSAGE', summary: 'id of the message; without it all that was said is kept', optional: true },
  ],
  options: JSON_OPTION,
  needsApi: true,
  details: [
    'The conversation so far stays readable: beeuni sessions children. beeuni sessions search names the messages. A harness that cannot do it refuses.',
  ],
  run: async ({ api, args, options, print, note }) => {
    const [session = '', messageId] = args;
    const params = api.nameOf(session);
    const body = messageId === undefined ? {} : { messageId };
    const client = await api.client();
    const forked = (await client.call(forkSessionRoute, { params, body }, { timeoutMs: LIMIT_MS })).body;
    if (options.json) print(plainJson(forked, 2));
    else {
      const from = messageId === undefined ? 'from here' : `from before ${messageId}`;
      const kept = `beeuni sessions children ${params.name} ${plainLine(forked.threadId, 128)}`;
      note(`the conversation goes on ${from}; the one so far: ${kept}`);
    }
    return undefined;
  },
});
