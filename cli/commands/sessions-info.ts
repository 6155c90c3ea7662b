// `beeuni sessions info`.
import { getSessionRoute } from '#schema/rest/sessions.ts';
import { sessionWait } from '#schema/rules/session-wait.ts';
import { defineCommand, JSON_OPTION } from '../command.ts';
import { factLines } from '../facts.ts';
import { plainJson } from '../plain-text.ts';
import { SESSION_ARGUMENT, stateText } from '../session-names.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'show one session',
  arguments: [SESSION_ARGUMENT],
  options: JSON_OPTION,
  needsApi: true,
  run: async ({ api, args, options, print }) => {
    const params = api.nameOf(args[0] ?? '');
    const { body } = await (await api.client()).call(getSessionRoute, { params });
    if (options.json) {
      print(plainJson(body, 2));
      return undefined;
    }
    print(
      ...factLines([
        ['session', `${body.namespace}/${body.name}`],
        ['title', body.title],
        ['project', body.project],
        ['state', stateText(body)],
        ['message', body.message],
        ['to do', sessionWait(body)?.todo],
        ['activity', body.activity],
        ['harness', body.harness],
        ['agent', body.agent],
        ['model', body.model],
        ['branch', body.branch],
        ['commit', body.commit],
        ['created', body.createdAt],
        ['uid', body.uid],
      ]),
    );
    return undefined;
  },
});
