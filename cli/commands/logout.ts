// `beeuni logout`: forgets the login; there is no token to take back.
import { defineCommand } from '../command.ts';
import { removeConfig } from '../connection/config-file.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'forget the control plane, the default project and the projects of folders',
  options: {},
  run: async ({ io, note }) => {
    note(removeConfig(io) ? 'logged out' : 'you were not logged in');
    return undefined;
  },
});
