// `beeuni projects ls`.
import { listAllProjectsRoute, listProjectsRoute } from '#schema/rest/projects.ts';
import { ALL_OPTION, defineCommand, JSON_OPTION } from '../command.ts';
import { printList, readPages } from '../print-page.ts';
import { ageText } from '../table.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'list the projects of the namespace',
  options: { ...JSON_OPTION, ...ALL_OPTION },
  needsApi: true,
  run: async (call) => {
    const client = await call.api.client();
    const params = { namespace: call.api.namespace() };
    const isAll = call.options['all-namespaces'];
    const projects = await readPages(async (query) =>
      isAll
        ? (await client.call(listAllProjectsRoute, { query })).body
        : (await client.call(listProjectsRoute, { params, query })).body,
    );
    const nowMs = Date.now();
    printList(
      call,
      call.options.json,
      projects,
      [
        { head: 'NAME', cell: ({ namespace, name }) => (isAll ? `${namespace}/${name}` : name) },
        { head: 'READY', cell: ({ ready }) => ready },
        { head: 'REASON', cell: ({ readyReason }) => readyReason },
        { head: 'COMMIT', cell: ({ commit }) => commit?.slice(0, 12) },
        { head: 'AGE', cell: ({ createdAt }) => ageText(createdAt, nowMs) },
        { head: 'REPOSITORY', cell: ({ repositoryUrl }) => repositoryUrl },
      ],
      isAll ? 'no projects' : `no projects in namespace ${params.namespace}`,
    );
    return undefined;
  },
});
