// `beeuni sessions diff`.
import { getDiffRoute } from '#schema/rest/files.ts';
import { defineCommand, JSON_OPTION } from '../command.ts';
import { plainJson, plainLine, plainText } from '../plain-text.ts';
import { SESSION_ARGUMENT } from '../session-names.ts';
import { writeFully } from '../write-fully.ts';

/** Git may take its time. Units: milliseconds. */
const LIMIT_MS = 60_000;

/** See the file. */
export const command = defineCommand({
  summary: 'show what a session has changed against its base commit, committed or not',
  arguments: [SESSION_ARGUMENT],
  options: { stat: { summary: 'only the names and counts' }, ...JSON_OPTION },
  needsApi: true,
  details: ['Through a pipe the patch is exactly what git says, for git apply; on a terminal it is made harmless.'],
  examples: ['beeuni sessions diff fix-login | git apply --3way'],
  run: async ({ api, args, options, io, print, note }) => {
    const params = api.nameOf(args[0] ?? '');
    const { body } = await (await api.client()).call(getDiffRoute, { params }, { timeoutMs: LIMIT_MS });
    if (options.json) {
      print(plainJson(body, 2));
      return undefined;
    }
    if (options.stat) {
      const count = (value: number | null): string => (value === null ? 'bin' : String(value)).padStart(5);
      print(
        ...body.files.map(({ path, additions, deletions }) => {
          return `${count(additions)} + ${count(deletions)} -  ${plainLine(path, 500)}`;
        }),
      );
    } else await writeFully(io.stdout, io.isTerminal.stdout ? plainText(body.patch) : body.patch);
    for (const path of body.untracked) note(`untracked: ${plainLine(path, 500)}`);
    if (body.truncated) note('there is more; this is cut');
    return undefined;
  },
});
