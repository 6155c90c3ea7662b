// `beeuni projects ls`.
import { listProjectsRoute } from '#schema/rest/projects.ts';
import { defineCommand, JSON_OPTION } from '../command.ts';
import { printList, readPages } from '../print-page.ts';
import { ageText } from '../table.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'list the projects of the namespace',
  options: JSON_OPTION,
  needsApi: true,
  run: async (call) => {
    const client = await call.api.client();
    const params = { namespace: call.api.namespace() };
    const projects = await readPages(async (query) => (await client.call(listProjectsRoute, { params, query })).body);
    const nowMs = Date.now();
    printList(
      call,
      call.options.json,
      projects,
      [
        { head: 'NAME', cell: ({ name }) => name },
        { head: 'READY', cell: ({ ready }) => ready },
        { head: 'REASON', cell: ({ readyReason }) => readyReason },
        { head: 'COMMIT', cell: ({ commit }) => commit?.slice(0, 12) },
        { head: 'AGE', cell: ({ createdAt }) => ageText(createdAt, nowMs) },
        { head: 'REPOSITORY', cell: ({ repositoryUrl }) => repositoryUrl },
      ],
      `no projects in namespace ${params.namespace}`,
    );
    return undefined;
  },
});
