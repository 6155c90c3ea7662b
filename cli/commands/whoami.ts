// `beeuni whoami`: what a call would use, without making one.
import { defineCommand, JSON_OPTION, PROJECT_OPTION } from '../command.ts';
import { configPath } from '../connection/config-file.ts';
import { plainJson } from '../plain-text.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'show which control plane, namespace and project are used',
  options: { ...JSON_OPTION, ...PROJECT_OPTION },
  needsApi: true,
  run: async ({ api, io, options, print }) => {
    const project = api.findProject(options.project);
    const facts = {
      server: api.describeServer(),
      namespace: api.namespace(),
      project: project === undefined ? null : `${project.namespace}/${project.name}`,
      configuration: configPath(io),
    };
    if (options.json) print(plainJson(facts, 2));
    else print(...Object.entries(facts).map(([name, value]) => `${`${name}:`.padEnd(15)} ${value ?? '-'}`));
    return undefined;
  },
});
