// `beeuni projects get`.
import { getProjectRoute } from '#schema/rest/projects.ts';
import { defineCommand, JSON_OPTION, PROJECT_OPTION } from '../command.ts';
import { factLines } from '../facts.ts';
import { plainJson } from '../plain-text.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'show one project',
  arguments: [{ name: 'PROJECT', summary: 'NAME or NAMESPACE/NAME; the chosen one otherwise', optional: true }],
  options: { ...JSON_OPTION, ...PROJECT_OPTION },
  needsApi: true,
  run: async ({ api, args, options, print }) => {
    const params = api.requireProject(args[0] ?? options.project);
    const { body } = await (await api.client()).call(getProjectRoute, { params });
    if (options.json) {
      print(plainJson(body, 2));
      return undefined;
    }
    print(
      ...factLines([
        ['project', `${body.namespace}/${body.name}`],
        ['ready', [body.ready, body.readyReason].filter((word) => word !== null).join(', ')],
        ['message', body.message],
        ['repository', body.repositoryUrl],
        ['commit', body.commit],
        ['harness', body.harness],
        ['created', body.createdAt],
      ]),
    );
    return undefined;
  },
});
