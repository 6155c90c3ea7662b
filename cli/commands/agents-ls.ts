// `beeuni agents ls`: the agents that the newest manifest of a project declares.
import { getManifestRoute } from '#schema/rest/projects.ts';
import { defineCommand, JSON_OPTION, PROJECT_OPTION } from '../command.ts';
import { CommandError, EXIT } from '../failure.ts';
import { printList } from '../print-page.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'list the agents of a project',
  options: { ...JSON_OPTION, ...PROJECT_OPTION },
  needsApi: true,
  run: async (call) => {
    const params = call.api.requireProject(call.options.project);
    const { manifest } = (await (await call.api.client()).call(getManifestRoute, { params })).body;
    const valid = manifest?.lastValid ?? null;
    if (valid === null) {
      throw new CommandError(
        EXIT.refused,
        `project ${params.namespace}/${params.name} has no valid manifest yet`,
        'beeuni projects get says what is missing',
      );
    }
    printList(
      call,
      call.options.json,
      valid.agents,
      [
        { head: 'NAME', cell: ({ name }) => name },
        { head: 'MODE', cell: ({ mode }) => mode },
        { head: 'MODEL', cell: ({ model }) => model },
        { head: 'DEFAULT', cell: ({ name }) => (name === valid.defaultAgent ? 'yes' : '') },
      ],
      'the manifest declares no agent',
    );
    return undefined;
  },
});
