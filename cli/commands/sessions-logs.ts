// `beeuni sessions logs`: what daemon and harness print; the event log is `beeuni sessions log`.
import { getLogsRoute } from '#schema/rest/files.ts';
import { defineCommand, JSON_OPTION } from '../command.ts';
import { usageError } from '../failure.ts';
import { plainJson, plainLine } from '../plain-text.ts';
import { SESSION_ARGUMENT } from '../session-names.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'print the newest lines that daemon and harness have logged in the sandbox',
  arguments: [SESSION_ARGUMENT],
  options: {
    source: { summary: 'whose lines', value: 'NAME', choices: ['daemon', 'harness', 'all'] },
    tail: { summary: 'how many, at most 5000; 500 otherwise', value: 'N' },
    ...JSON_OPTION,
  },
  needsApi: true,
  run: async ({ api, args, options, print }) => {
    const params = api.nameOf(args[0] ?? '');
    if (options.tail !== undefined && !/^[1-9]\d{0,3}$/.test(options.tail)) {
      throw usageError('--tail takes a number from 1 to 5000');
    }
    const query = {
      ...(options.tail === undefined ? {} : { tail: Math.min(5_000, Number(options.tail)) }),
      ...(options.source === undefined ? {} : { source: options.source as 'daemon' | 'harness' | 'all' }),
    };
    const { body } = await (await api.client()).call(getLogsRoute, { params, query });
    if (options.json) print(plainJson(body.lines, 2));
    else print(...body.lines.map((line) => plainLine(line)));
    return undefined;
  },
});
