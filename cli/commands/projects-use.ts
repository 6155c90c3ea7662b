// `beeuni projects use`: which project is meant when none is named. Kept with the login, never in the repository, so that a
// repository cannot choose for the person. Source: A240.
import { getProjectRoute } from '#schema/rest/projects.ts';
import { defineCommand } from '../command.ts';
import { readConfig, writeConfig } from '../connection/config-file.ts';
import { CommandError, EXIT } from '../failure.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'choose the default project, for everywhere or for this folder and those below it',
  arguments: [{ name: 'PROJECT', summary: 'NAME or NAMESPACE/NAME' }],
  options: { here: { summary: 'only in this folder and below' } },
  needsApi: true,
  run: async ({ api, args, options, io, note }) => {
    const { namespace, name } = api.nameOf(args[0] ?? '');
    await (await api.client()).call(getProjectRoute, { params: { namespace, name } });
    const config = readConfig(io);
    if (config === undefined) {
      throw new CommandError(
        EXIT.denied,
        'there is no login to keep the choice with',
        'run beeuni login, or set BEEUNI_PROJECT_ID',
      );
    }
    const chosen = { namespace, project: name };
    writeConfig(
      io,
      options.here ? { ...config, folders: { ...config.folders, [io.cwd]: chosen } } : { ...config, project: chosen },
    );
    note(`project ${namespace}/${name} is used ${options.here ? `in ${io.cwd}` : 'when none is named'}`);
    return undefined;
  },
});
