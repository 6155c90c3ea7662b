// `beeuni sessions ls`.
import { listAllSessionsRoute, listSessionsRoute } from '#schema/rest/sessions.ts';
import { ALL_OPTION, defineCommand, JSON_OPTION } from '../command.ts';
import { printList, readPages } from '../print-page.ts';
import { stateText } from '../session-names.ts';
import { ageText } from '../table.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'list the sessions of the namespace',
  options: {
    ...JSON_OPTION,
    ...ALL_OPTION,
    project: { summary: 'only those of this project', value: 'NAME', short: 'p' },
  },
  needsApi: true,
  run: async (call) => {
    const { api, options } = call;
    const client = await api.client();
    const given = options.project === undefined ? undefined : api.nameOf(options.project);
    const params = { namespace: given?.namespace ?? api.namespace() };
    const filter = given === undefined ? {} : { project: given.name };
    const isAll = options['all-namespaces'];
    const sessions = await readPages(async (page) => {
      const query = { ...page, ...filter };
      if (isAll) return (await client.call(listAllSessionsRoute, { query })).body;
      return (await client.call(listSessionsRoute, { params, query })).body;
    });
    const nowMs = Date.now();
    printList(
      call,
      options.json,
      sessions,
      [
        { head: 'NAME', cell: ({ namespace, name }) => (isAll ? `${namespace}/${name}` : name) },
        { head: 'PROJECT', cell: ({ project }) => project },
        { head: 'STATE', cell: stateText },
        { head: 'ACTIVITY', cell: ({ activity }) => activity },
        { head: 'HARNESS', cell: ({ harness }) => harness },
        { head: 'AGENT', cell: ({ agent }) => agent },
        { head: 'AGE', cell: ({ createdAt }) => ageText(createdAt, nowMs) },
        { head: 'BRANCH', cell: ({ branch }) => branch },
        { head: 'TITLE', cell: ({ title }) => title },
      ],
      isAll ? 'no sessions' : `no sessions in namespace ${params.namespace}`,
    );
    return undefined;
  },
});
