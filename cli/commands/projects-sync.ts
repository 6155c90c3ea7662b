// `beeuni projects sync`.
import { syncNowRoute } from '#schema/rest/projects.ts';
import { defineCommand, JSON_OPTION, PROJECT_OPTION } from '../command.ts';
import { plainJson } from '../plain-text.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'look at the repository of a project now',
  arguments: [{ name: 'PROJECT', summary: 'NAME or NAMESPACE/NAME; the chosen one otherwise', optional: true }],
  options: { ...JSON_OPTION, ...PROJECT_OPTION },
  needsApi: true,
  run: async ({ api, args, options, print, note }) => {
    const params = api.requireProject(args[0] ?? options.project);
    const { body } = await (await api.client()).call(syncNowRoute, { params, body: {} });
    if (options.json) print(plainJson(body, 2));
    else note(`asked for; beeuni projects get ${params.namespace}/${params.name} shows the outcome`);
    return undefined;
  },
});
