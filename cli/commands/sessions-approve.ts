// `beeuni sessions approve`. Source: A119, A121.
import { answerPermissionRoute } from '#schema/rest/requests.ts';
import { defineCommand, JSON_OPTION } from '../command.ts';
import { usageError } from '../failure.ts';
import { findRequest, requestText } from '../human-requests.ts';
import { plainJson } from '../plain-text.ts';
import { SESSION_ARGUMENT } from '../session-names.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'allow what an agent asks for, once or for the rest of the session, or refuse it',
  arguments: [SESSION_ARGUMENT],
  options: {
    id: { summary: 'which one, when several are open', value: 'ID' },
    always: { summary: 'for the rest of the session' },
    reject: { summary: 'refuse it' },
    message: { summary: 'what the model reads of a refusal', value: 'TEXT' },
    ...JSON_OPTION,
  },
  needsApi: true,
  run: async ({ api, args, options, print, note }) => {
    if (options.always && options.reject) throw usageError('--always and --reject do not go together');
    if (options.message !== undefined && !options.reject) throw usageError('--message goes with --reject');
    const session = api.nameOf(args[0] ?? '');
    const request = await findRequest(api, session, 'permission', options.id);
    const reply = options.reject ? ('reject' as const) : options.always ? ('always' as const) : ('once' as const);
    const body = { reply, ...(options.message === undefined ? {} : { message: options.message }) };
    const client = await api.client();
    const answered = await client.call(answerPermissionRoute, { params: { ...session, id: request.id }, body });
    if (options.json) print(plainJson(answered.body, 2));
    else note(`${reply}: ${requestText(request)}`);
    return undefined;
  },
});
