// `beeuni sessions mcp`: the MCP servers of the harness, as it sees them. Source: A62.
import { listMcpServersRoute } from '#schema/rest/session-verbs.ts';
import { defineCommand, JSON_OPTION } from '../command.ts';
import { printList } from '../print-page.ts';
import { SESSION_ARGUMENT } from '../session-names.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'list the MCP servers of a session with their states',
  arguments: [SESSION_ARGUMENT],
  options: JSON_OPTION,
  needsApi: true,
  run: async (call) => {
    const params = call.api.nameOf(call.args[0] ?? '');
    const { items } = (await (await call.api.client()).call(listMcpServersRoute, { params })).body;
    printList(
      call,
      call.options.json,
      items,
      [
        { head: 'NAME', cell: ({ name }) => name },
        { head: 'STATUS', cell: ({ status }) => status },
        { head: 'ERROR', cell: ({ error }) => error },
      ],
      'the harness has no MCP servers',
    );
    return undefined;
  },
});
