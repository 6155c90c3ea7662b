// What a command that could not do its work says and with which code it ends. Must not know any command.
// Source: docs/guides/command-line.md, which lists the codes.
import { asBeeuniError, type BeeuniError } from '#base/errors.ts';
import type { ProblemCode, ProblemGroup } from '#schema/problem.ts';
import { plainText } from './plain-text.ts';

/** Exit codes, part of the contract with scripts. `interrupted` is 128 + SIGINT. */
export const EXIT = {
  done: 0,
  /** The work was done and its result is bad: a failed turn, an invalid manifest. */
  failed: 1,
  usage: 2,
  /** Not logged in, or not allowed. */
  denied: 3,
  notFound: 4,
  /** Refused in the present state, or a limit is reached. */
  refused: 5,
  /** Something did not answer; the same call may work later. */
  unavailable: 6,
  bug: 70,
  interrupted: 130,
} as const;

/** A failure in the words of the command line. `hint`: what to do now. */
export class CommandError extends Error {
  readonly exitCode: number;
  readonly hint: string | undefined;
  constructor(exitCode: number, message: string, hint?: string) {
    super(message);
    this.name = 'CommandError';
    this.exitCode = exitCode;
    this.hint = hint;
  }
}

/** A wrong call: exit code 2. */
export const usageError = (message: string, hint?: string): CommandError => new CommandError(EXIT.usage, message, hint);

const CODE_OF_GROUP: Readonly<Record<ProblemGroup, number>> = {
  invalid: EXIT.failed,
  unauthenticated: EXIT.denied,
  forbidden: EXIT.denied,
  'not-found': EXIT.notFound,
  conflict: EXIT.refused,
  limit: EXIT.refused,
  unsupported: EXIT.refused,
  unavailable: EXIT.unavailable,
  bug: EXIT.bug,
};

const rightsHint = (message: string): string => {
  if (message.includes('/v1/workspace'))
    return 'rights are Kubernetes RBAC: ask for a binding to the ClusterRole beeuni-workspace-viewer or beeuni-workspace-admin';
  const where = message.includes(' in namespace ') ? 'in this namespace' : 'for all namespaces';
  return `rights are Kubernetes RBAC: ask for a binding to view, edit or admin ${where}`;
};

/** What to do about codes whose message does not say it; null: the message says all there is. */
const HINTS: Readonly<Partial<Record<ProblemCode, string | null>>> = {
  budget_reached:
    'raise the budget in spec.limits of the session or its project, or wait until its day or month is over',
  budget_held: 'wait until a running call is over, or raise the budget',
  file_too_large: null,
  storage_full: null,
  repository_too_large: null,
  too_many_terminals: 'close one: it ends with its program',
  sandbox_unreachable: null,
  runtime_not_ready: 'try again in a moment',
  provider_auth_failed: 'its key is wrong or used up: beeuni providers check ID',
  provider_key_unavailable: null,
  web_failed: null,
};

const GROUP_HINTS: Readonly<Partial<Record<ProblemGroup, string>>> = {
  unauthenticated: 'log in again: beeuni login',
  limit: 'wait a moment',
  unavailable: 'try again in a moment',
};

const hintOf = (error: BeeuniError): string | undefined => {
  if (error.code === 'forbidden') return rightsHint(error.message);
  const hint = HINTS[error.code];
  return hint === undefined ? GROUP_HINTS[error.group] : (hint ?? undefined);
};

/** What is printed of an error, and the exit code. `ownHint`: of who knows more than the error. Never a stack. */
export const failureOf = (
  error: unknown,
  ownHint?: (error: BeeuniError) => string | undefined,
): Readonly<{ lines: readonly string[]; exitCode: number }> => {
  if (error instanceof CommandError) {
    const hint = error.hint === undefined ? [] : [`  ${plainText(error.hint)}`];
    return { lines: [`beeuni: ${plainText(error.message)}`, ...hint], exitCode: error.exitCode };
  }
  const ours = asBeeuniError(error);
  if (ours !== undefined) {
    const hint = ownHint?.(ours) ?? hintOf(ours);
    const problems = Array.isArray(ours.details?.['problems']) ? ours.details['problems'] : [];
    const more = problems.slice(1, 10).flatMap((problem: unknown) => {
      const { path, message } = (problem ?? {}) as Readonly<{ path?: unknown; message?: unknown }>;
      return typeof path === 'string' && typeof message === 'string' ? [`  ${plainText(`${path} ${message}`)}`] : [];
    });
    return {
      lines: [
        `beeuni: ${plainText(ours.message)} (${ours.code})`,
        ...more,
        ...(hint === undefined ? [] : [`  ${plainText(hint)}`]),
      ],
      exitCode: CODE_OF_GROUP[ours.group],
    };
  }
  const text = error instanceof Error ? error.message : String(error);
  return {
    lines: [
      `beeuni: this is a fault of the command line itself: ${plainText(text)}`,
      '  please report it with the call that you made',
    ],
    exitCode: EXIT.bug,
  };
};
