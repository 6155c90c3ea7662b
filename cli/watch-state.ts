// What becomes of a session while a person waits for it: each state once, and why nothing runs. Must not know what is waited for.
import { setTimeout as wait } from 'node:timers/promises';
import { getSessionRoute, type SessionView } from '#schema/rest/sessions.ts';
import { sessionWait } from '#schema/rules/session-wait.ts';
import type { Api, ObjectName } from './connection/api.ts';
import { plainLine } from './plain-text.ts';
import { stateText } from './session-names.ts';

/** Times between two looks: at one that becomes ready, one that waits for something, one that is ready. Units: milliseconds. */
const POLL_MS = 500;
const POLL_WAITING_MS = 2_000;
const POLL_READY_MS = 5_000;
const MAX_LINE = 700;

/** The state of a session: in one line while it goes on by itself, else why nothing runs and what to do. */
export const stateLines = (session: SessionView): readonly string[] => {
  const why = sessionWait(session);
  if (why === undefined) return [plainLine(`session ${session.name}: ${stateText(session)}`, MAX_LINE)];
  return [plainLine(why.says, MAX_LINE), ...(why.todo === undefined ? [] : [`  ${plainLine(why.todo, MAX_LINE)}`])];
};

/** How it is watched. `look` sees every state and ends the watch by saying true; what it throws is thrown. */
export type Watch = Readonly<{
  note: (line: string) => void;
  signal: AbortSignal;
  look?: (session: SessionView) => boolean;
}>;

/** Notes states until `look` or the signal ends it; a session that is ready from the start is not noted. Errors: BeeuniError. */
export const watchState = async (api: Api, session: ObjectName, { note, signal, look }: Watch): Promise<void> => {
  let last = '';
  while (!signal.aborted) {
    const { body } = await (await api.client()).call(getSessionRoute, { params: session });
    if (signal.aborted) return;
    const isReady = body.ready === 'True';
    const lines = stateLines(body);
    const text = lines.join('\n');
    if (text !== last && !(isReady && last === '')) {
      for (const line of lines) note(`-- ${line}`);
      last = text;
    }
    if (look?.(body) === true) return;
    const pause = isReady ? POLL_READY_MS : sessionWait(body) === undefined ? POLL_MS : POLL_WAITING_MS;
    await wait(pause, undefined, { signal }).catch(() => {});
  }
};

/** As watchState, beside other work: what fails is not told, as the other work tells it. Gives back what ends it. */
export const watchStateBeside = (
  api: Api,
  session: ObjectName,
  note: Watch['note'],
  look?: Watch['look'],
): (() => void) => {
  const over = new AbortController();
  watchState(api, session, { note, signal: over.signal, ...(look === undefined ? {} : { look }) }).catch(
    () => undefined,
  );
  return () => over.abort();
};
