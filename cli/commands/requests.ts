// `beeuni requests`: what waits for a person, in all sessions. Source: 20-control-plane §3.
import { defineCommand, JSON_OPTION } from '../command.ts';
import { openRequests, requestText } from '../human-requests.ts';
import { printList } from '../print-page.ts';
import { ageText } from '../table.ts';

/** See the file. */
export const command = defineCommand({
  summary: 'list the permissions and questions that wait for your answer',
  arguments: [{ name: 'SESSION', summary: 'only those of this session', optional: true }],
  options: JSON_OPTION,
  needsApi: true,
  run: async (call) => {
    const [given] = call.args;
    const only = given === undefined ? undefined : call.api.nameOf(given);
    const isMeant = ({ namespace, session }: Readonly<{ namespace: string; session: string }>): boolean =>
      only === undefined || (namespace === only.namespace && session === only.name);
    const nowMs = Date.now();
    printList(
      call,
      call.options.json,
      (await openRequests(call.api)).filter(isMeant),
      [
        { head: 'ID', cell: ({ id }) => id },
        { head: 'KIND', cell: ({ kind }) => kind },
        { head: 'SESSION', cell: ({ namespace, session }) => `${namespace}/${session}` },
        { head: 'AGE', cell: ({ askedAt }) => ageText(askedAt, nowMs) },
        { head: 'WHAT', cell: requestText },
      ],
      'nothing waits for you',
    );
    return undefined;
  },
});
