// `beeuni system-skills list`.
import { defineCommand, JSON_OPTION } from '../command.ts';
import { printList } from '../print-page.ts';
import { listSystemSkills } from '../system-skills.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'list the skills that come with Beeuni',
  options: JSON_OPTION,
  run: async (call) => {
    printList(
      call,
      call.options.json,
      listSystemSkills(),
      [
        { head: 'NAME', cell: ({ name }) => name },
        { head: 'DESCRIPTION', cell: ({ description }) => description },
      ],
      'no skill comes with this version',
    );
    return undefined;
  },
});
