// `beeuni sessions scope`: which of its granted secrets the agent of a session sees. Source: A183, A196.
import { getSessionRoute, patchSessionRoute, type SessionView } from '#schema/rest/sessions.ts';
import { defineCommand, JSON_OPTION } from '../command.ts';
import { usageError } from '../failure.ts';
import { plainJson, plainLine } from '../plain-text.ts';
import { SESSION_ARGUMENT } from '../session-names.ts';

const scopeText = ({ spec }: SessionView): string => {
  const { secrets } = (spec['scope'] ?? {}) as Readonly<{ secrets?: readonly string[] }>;
  if (secrets === undefined) return 'secrets: all that its agent is granted';
  return `secrets: ${secrets.length === 0 ? 'none' : plainLine(secrets.join(', '))}`;
};

/** See the file. */
export const command = defineCommand({
  summary: 'show which secrets a session may see, or choose them',
  arguments: [
    SESSION_ARGUMENT,
    { name: 'SECRET', summary: 'only these, of those that its agent is granted', optional: true, rest: true },
  ],
  options: {
    none: { summary: 'no secret at all' },
    all: { summary: 'all that its agent is granted, as without a choice' },
    ...JSON_OPTION,
  },
  needsApi: true,
  details: ['A choice replaces the one before, and never adds to what the manifest grants.'],
  run: async ({ api, args, options, print, note }) => {
    const [session = '', ...secrets] = args;
    const isList = secrets.length > 0;
    if ([isList, options.none, options.all].filter(Boolean).length > 1) {
      throw usageError('give SECRETs, --none or --all');
    }
    const params = api.nameOf(session);
    const client = await api.client();
    const isRead = !isList && !options.none && !options.all;
    const body = { spec: { scope: { secrets: options.all ? null : secrets } } };
    const view = isRead
      ? (await client.call(getSessionRoute, { params })).body
      : (await client.call(patchSessionRoute, { params, body })).body;
    if (options.json) print(plainJson({ scope: view.spec['scope'] ?? {} }, 2));
    else if (isRead) print(scopeText(view));
    else note(`session ${params.name}: ${scopeText(view)}`);
    return undefined;
  },
});
