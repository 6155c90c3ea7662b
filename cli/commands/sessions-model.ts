// `beeuni sessions model`: which model a session uses, and another one from its next turn on. Source: A192, A239.
import { getSessionRoute, patchSessionRoute } from '#schema/rest/sessions.ts';
import { defineCommand, JSON_OPTION } from '../command.ts';
import { usageError } from '../failure.ts';
import { plainJson, plainLine } from '../plain-text.ts';
import { SESSION_ARGUMENT } from '../session-names.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'show the model of a session, or change it from its next turn on',
  arguments: [SESSION_ARGUMENT, { name: 'MODEL', summary: 'PROVIDER/MODEL', optional: true }],
  options: {
    unset: { summary: 'no model of its own: that of the agent, the project or the installation' },
    ...JSON_OPTION,
  },
  needsApi: true,
  details: ['A prompt may name another model for its own turn: beeuni sessions chat --model.'],
  run: async ({ api, args, options, print, note }) => {
    const [session = '', model] = args;
    if (options.unset && model !== undefined) throw usageError('give a MODEL, or --unset');
    const params = api.nameOf(session);
    const client = await api.client();
    if (model === undefined && !options.unset) {
      const { body } = await client.call(getSessionRoute, { params });
      const own = body.spec['model'];
      if (options.json) print(plainJson({ model: body.model, own: own ?? null }, 2));
      else if (body.model !== null) print(plainLine(body.model));
      else
        note(typeof own === 'string' ? `${plainLine(own)}, from the next start on` : 'known once the session has run');
      return undefined;
    }
    const { body } = await client.call(patchSessionRoute, { params, body: { spec: { model: model ?? null } } });
    if (options.json) print(plainJson(body, 2));
    else
      note(
        `session ${params.name} ${model === undefined ? 'has no model of its own' : `uses ${model}`} from its next turn on`,
      );
    return undefined;
  },
});
