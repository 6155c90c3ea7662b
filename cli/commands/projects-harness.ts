// `beeuni projects harness`. Source: J2, D19.
import { getProjectHarnessRoute } from '#schema/rest/projects.ts';
import { defineCommand, JSON_OPTION, PROJECT_OPTION } from '../command.ts';
import { factLines } from '../facts.ts';
import { plainJson } from '../plain-text.ts';

/** What decided a flag, in words. `Unavailable`: the installation does not have it, whatever the project says. */
const BY_LAYER: Readonly<Record<string, string>> = {
  Project: 'set by the project',
  Platform: 'the default of the installation',
  Unavailable: 'not available in this installation',
};

/** See the file. */
export const command = defineCommand({
  summary: 'show which harness a session that is started now would run, and why',
  arguments: [{ name: 'PROJECT', summary: 'NAME or NAMESPACE/NAME; the chosen one otherwise', optional: true }],
  options: { ...JSON_OPTION, ...PROJECT_OPTION },
  needsApi: true,
  run: async ({ api, args, options, print }) => {
    const params = api.requireProject(args[0] ?? options.project);
    const { body } = await (await api.client()).call(getProjectHarnessRoute, { params });
    if (options.json) print(plainJson(body, 2));
    else {
      print(
        ...factLines([
          ['harness', body.id],
          ['reason', body.reason],
          ...body.flags.map(
            ({ name, enabled, layer }) => [name, `${enabled ? 'on' : 'off'}, ${BY_LAYER[layer] ?? layer}`] as const,
          ),
        ]),
      );
    }
    return undefined;
  },
});
