// `beeuni models validate`. Source: 20-control-plane §4.
import { validateModelsRoute } from '#schema/rest/workspace.ts';
import { defineCommand, JSON_OPTION } from '../command.ts';
import { EXIT } from '../failure.ts';
import { plainJson } from '../plain-text.ts';
import { tableLines } from '../table.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'check model names; exit code 1 when one may not be used',
  arguments: [{ name: 'MODEL', summary: 'PROVIDER/MODEL', rest: true }],
  options: JSON_OPTION,
  needsApi: true,
  run: async ({ api, args, options, print }) => {
    const { verdicts } = (await (await api.client()).call(validateModelsRoute, { body: { names: [...args] } })).body;
    if (options.json) print(plainJson(verdicts, 2));
    else {
      print(
        ...tableLines(
          [
            { head: 'NAME', cell: ({ name }) => name },
            { head: 'VALID', cell: ({ valid }) => (valid ? 'yes' : 'no') },
            { head: 'WHY', cell: ({ code }) => code },
            { head: 'NEAREST', cell: ({ suggestions }) => suggestions.join(' ') },
          ],
          verdicts,
        ),
      );
    }
    return verdicts.every(({ valid }) => valid) ? EXIT.done : EXIT.failed;
  },
});
