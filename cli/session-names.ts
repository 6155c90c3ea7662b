// Words that commands about sessions share: the argument, and one state in words. Must not know any single command.
import type { SessionView } from '#schema/rest/sessions.ts';
import type { ArgumentSpec } from './command.ts';

/** The argument that names a session. */
export const SESSION_ARGUMENT: ArgumentSpec = { name: 'SESSION', summary: 'NAME or NAMESPACE/NAME of the session' };

/** The state of a session in one or two words. */
export const stateText = (session: SessionView): string => {
  const { phase, ready, readyReason } = session;
  if (phase === null) return 'Pending';
  if (ready === 'True' || readyReason === null || readyReason === phase) return phase;
  return `${phase} (${readyReason})`;
};
