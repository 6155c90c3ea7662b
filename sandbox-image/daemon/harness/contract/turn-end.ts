// How a turn ends, as a harness says it. Must not know any single harness, nor what the host makes of it. Source: A142.
import type { TurnErrorCode } from '#schema/events/envelope.ts';

/** How a turn ended; a failure is data. `message` is safe to show, at most 1,024 characters. */
export type TurnEnd =
  | Readonly<{ kind: 'completed' }>
  | Readonly<{ kind: 'aborted' }>
  | Readonly<{ kind: 'failed'; code: TurnErrorCode; message: string }>;
