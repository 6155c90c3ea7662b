// `beeuni sessions search`. Source: 20-control-plane §8.
import { searchSessionRoute } from '#schema/rest/transcript.ts';
import { defineCommand, JSON_OPTION } from '../command.ts';
import { printList } from '../print-page.ts';
import { SESSION_ARGUMENT } from '../session-names.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'search the visible text of a session',
  arguments: [SESSION_ARGUMENT, { name: 'WORDS', summary: 'words, "phrases", -without, or', rest: true }],
  options: JSON_OPTION,
  needsApi: true,
  run: async (call) => {
    const [session = '', ...words] = call.args;
    const params = call.api.nameOf(session);
    const query = { q: words.join(' ') };
    const { items } = (await (await call.api.client()).call(searchSessionRoute, { params, query })).body;
    printList(
      call,
      call.options.json,
      items,
      [
        { head: 'MESSAGE', cell: ({ messageId }) => messageId },
        { head: 'ROLE', cell: ({ role }) => role },
        { head: 'TEXT', cell: ({ snippet }) => snippet },
      ],
      'nothing was found',
    );
    return undefined;
  },
});
