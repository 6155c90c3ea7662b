// Words that commands about sessions share: the argument, and one state in words. Must not know any single command.
import type { SessionView } from '#schema/rest/sessions.ts';
import type { ArgumentSpec } from './command.ts';

/** The argument that names a session. */
export const SESSION_ARGUMENT: ArgumentSpec = { name: 'SESSION', summary: 'NAME or NAMESPACE/NAME of the session' };

const suspensionOf = ({ status }: SessionView): string | undefined => {
  const { reason } = (status['suspension'] ?? {}) as Readonly<{ reason?: unknown }>;
  return typeof reason === 'string' ? reason : undefined;
};

/** The state of a session in one or two words, those of its resource. `Suspended (Idle)` wakes at the next prompt. */
export const stateText = (session: SessionView): string => {
  const { phase, ready, readyReason } = session;
  if (phase === null) return 'Pending';
  const suspension = suspensionOf(session);
  if (phase === 'Suspended' && suspension !== undefined) return `${phase} (${suspension})`;
  if (ready === 'True' || readyReason === null || readyReason === phase) return phase;
  return `${phase} (${readyReason})`;
};
