// `beeuni sessions children`: the conversations below a session, of subagents and before a fork, or one of them. Source: A125.
import { listChildrenRoute, listMessagesRoute } from '#schema/rest/transcript.ts';
import { defineCommand, JSON_OPTION } from '../command.ts';
import { messagesText } from '../event-view.ts';
import { plainJson } from '../plain-text.ts';
import { printList, readPages } from '../print-page.ts';
import { SESSION_ARGUMENT } from '../session-names.ts';
import { writeFully } from '../write-fully.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'list the conversations below a session, or print one',
  arguments: [
    SESSION_ARGUMENT,
    { name: 'THREAD', summary: 'id of a conversation; root is that of the session itself', optional: true },
  ],
  options: JSON_OPTION,
  needsApi: true,
  run: async (call) => {
    const { api, args, io, options } = call;
    const [session = '', thread] = args;
    const params = api.nameOf(session);
    const client = await api.client();
    if (thread === undefined) {
      const { items } = (await client.call(listChildrenRoute, { params })).body;
      printList(
        call,
        options.json,
        items,
        [
          { head: 'THREAD', cell: ({ threadId }) => threadId },
          { head: 'TITLE', cell: ({ title }) => title },
        ],
        'the session has no conversations below its own',
      );
      return undefined;
    }
    // Pages go back from the newest one, and each is in order.
    const pages = await readPages(async (page) => {
      const { items, cursor } = (await client.call(listMessagesRoute, { params, query: { ...page, thread } })).body;
      return { items: [items], cursor };
    });
    const messages = pages.toReversed().flat();
    if (options.json) call.print(plainJson(messages, 2));
    else if (messages.length === 0) call.note(`nothing was said in ${thread}`);
    else await writeFully(io.stdout, messagesText(messages));
    return undefined;
  },
});
