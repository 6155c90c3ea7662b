// A command that asks for another state of a session: start, stop, restart. Must not know what becomes of it.
import { getSessionRoute, type SessionView, type startSessionRoute } from '#schema/rest/sessions.ts';
import { sessionWait } from '#schema/rules/session-wait.ts';
import { type Command, defineCommand, JSON_OPTION } from './command.ts';
import { plainJson } from './plain-text.ts';
import { SESSION_ARGUMENT } from './session-names.ts';
import { stateLines } from './watch-state.ts';

type Verb = Readonly<{
  verb: 'start' | 'stop' | 'restart';
  /** All three routes have one shape. */
  route: typeof startSessionRoute;
  summary: string;
  /** What is said of the session, behind its name. */
  said: string;
  /** What is said instead of a session that is so already; undefined where the call changes something. */
  unchanged?: (before: SessionView) => string | undefined;
}>;

/** The command. With --json it prints the session as it was when the call was taken. */
export const sessionVerb = ({ verb, route, summary, said, unchanged }: Verb): Command =>
  defineCommand({
    summary,
    arguments: [SESSION_ARGUMENT],
    options: JSON_OPTION,
    needsApi: true,
    run: async ({ api, args, options, print, note }) => {
      const params = api.nameOf(args[0] ?? '');
      const client = await api.client();
      // Only the state before the call tells whether it changes anything.
      const before = unchanged === undefined ? undefined : (await client.call(getSessionRoute, { params })).body;
      const same = before === undefined ? undefined : unchanged?.(before);
      const { body } = await client.call(route, { params, body: {} });
      if (options.json) print(plainJson(body, 2));
      // The status is older than the call: it still says what the call ends.
      const why = verb === 'stop' ? undefined : sessionWait(body);
      const lines =
        why === undefined || why.endedBy === verb ? [`session ${params.name} ${same ?? said}`] : stateLines(body);
      if (!options.json) for (const line of lines) note(line);
      return undefined;
    },
  });
