// `beeuni sessions harness`. Source: J2, A62.
import { getSessionHarnessRoute } from '#schema/rest/session-verbs.ts';
import { defineCommand, JSON_OPTION } from '../command.ts';
import { factLines } from '../facts.ts';
import { plainJson } from '../plain-text.ts';
import { SESSION_ARGUMENT } from '../session-names.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'show which harness a session runs, which its next start would run, and what that one lacks',
  arguments: [SESSION_ARGUMENT],
  options: JSON_OPTION,
  needsApi: true,
  run: async ({ api, args, options, print }) => {
    const params = api.nameOf(args[0] ?? '');
    const { body } = await (await api.client()).call(getSessionHarnessRoute, { params });
    if (options.json) {
      print(plainJson(body, 2));
      return undefined;
    }
    const { now, next, capabilities, lost, message } = body;
    print(
      ...factLines([
        ['now', now === null ? null : [now.id, now.version, now.reason].filter((word) => word !== null).join(', ')],
        ['next start', `${next.id}, ${next.reason}`],
        ['features', capabilities?.join(' ')],
        ['would lose', lost.join(' ')],
        ['message', message],
      ]),
    );
    return undefined;
  },
});
