// `beeuni sessions answer`. Source: A120, A121.
import { answerQuestionRoute } from '#schema/rest/requests.ts';
import { defineCommand, JSON_OPTION } from '../command.ts';
import { usageError } from '../failure.ts';
import { choicesOf, findRequest, questionCount, requestText } from '../human-requests.ts';
import { plainJson } from '../plain-text.ts';
import { SESSION_ARGUMENT } from '../session-names.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'answer what an agent asks, or dismiss it',
  arguments: [
    SESSION_ARGUMENT,
    {
      name: 'ANSWER',
      summary: 'one for each question; several choices with commas',
      optional: true,
      rest: true,
    },
  ],
  options: {
    id: { summary: 'which one, when several are open', value: 'ID' },
    reject: { summary: 'dismiss the question' },
    ...JSON_OPTION,
  },
  needsApi: true,
  examples: ['beeuni sessions answer fix-login "The second one"'],
  run: async ({ api, args, options, print, note }) => {
    const [name = '', ...answers] = args;
    const session = api.nameOf(name);
    if (options.reject === answers.length > 0) throw usageError('give an ANSWER, or --reject');
    const request = await findRequest(api, session, 'question', options.id);
    const count = questionCount(request.data);
    if (!options.reject && answers.length !== count) {
      throw usageError(`it asks ${count} questions: give ${count} answers`, requestText(request));
    }
    const body = options.reject
      ? { reject: true as const }
      : { answers: answers.map((answer, at) => choicesOf(request.data, at, answer)) };
    const client = await api.client();
    const answered = await client.call(answerQuestionRoute, { params: { ...session, id: request.id }, body });
    if (options.json) print(plainJson(answered.body, 2));
    else note(`${options.reject ? 'dismissed' : 'answered'}: ${requestText(request)}`);
    return undefined;
  },
});
