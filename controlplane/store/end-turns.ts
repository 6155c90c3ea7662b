// The end of turns inside a transaction that holds their sessions' locks: turn, prompt and, when the control plane
// ends a turn itself, its one terminal event. Must not know the rule; it is handed in. Source: D17.
import type { DecideTurnEnd, TurnVerdict } from '../app/ports.ts';
import { advanceLogs, insertEvents } from './events.ts';
import { endPrompts } from './prompts.ts';
import type { LockedSession } from './sessions.ts';
import { firstRow, type Query } from './statement.ts';
import { endTurns, getOpenTurn, type TurnRow } from './turns.ts';

/** How a turn ended, after the rule has spoken. */
export type Ending = Readonly<{
  turn: TurnRow;
  verdict: TurnVerdict;
  at: string;
  summary: string | null;
  commit: string | null;
}>;

/** Writes ends to turns and prompts. The caller raises the facts. */
export const storeEndings = async (query: Query, endings: readonly Ending[]): Promise<void> => {
  if (endings.length === 0) return;
  await query(
    endTurns(
      endings.map(({ turn, verdict, at, summary, commit }) => ({
        id: turn.id,
        at,
        outcome: verdict.outcome,
        code: verdict.code,
        message: verdict.message,
        summary,
        commit,
        final: !verdict.requeue,
      })),
    ),
  );
  await query(
    endPrompts(
      endings.map(({ turn, verdict }) => ({
        id: turn.prompt_id,
        requeue: verdict.requeue,
        outcome: verdict.outcome,
        message: verdict.message,
      })),
    ),
  );
};

/** Thread of events that the control plane writes itself. */
export const ROOT_THREAD = 'root';

/**
 * Ends the open turn of a session whose daemon will not: one terminal event, turn and prompt. Gives back the turn's id,
 * or undefined when none was open. `mayRunAgain: false` ends the prompt whatever the rule says.
 */
export const interruptOpenTurn = async (
  query: Query,
  session: LockedSession,
  cause: Readonly<{ message: string; at: string; mayRunAgain: boolean }>,
  decide: DecideTurnEnd,
): Promise<string | undefined> => {
  const turn = await firstRow(query, getOpenTurn(session.uid));
  if (turn === undefined) return undefined;
  const { abort_asked: abortAsked, attempt } = turn;
  const verdict = decide({ outcome: 'Interrupted', code: 'sandbox_lost', message: cause.message, abortAsked, attempt });
  const { outcome, code, message } = verdict;
  const seq = session.head_seq + 1;
  await query(
    insertEvents([
      {
        session_uid: session.uid,
        seq,
        generation: turn.generation,
        n: null,
        id: `end_${turn.id}`,
        type: 'turn.ended',
        thread_id: turn.thread_id ?? ROOT_THREAD,
        turn_id: turn.id,
        at: cause.at,
        hidden: false,
        caused_by: null,
        data: JSON.stringify({ promptId: turn.prompt_id, outcome, code, message, summary: null, commit: null }),
      },
    ]),
  );
  await query(advanceLogs([{ uid: session.uid, headSeq: seq, acknowledgedN: session.acknowledged_n }]));
  const final = cause.mayRunAgain ? verdict : { ...verdict, requeue: false };
  await storeEndings(query, [{ turn, verdict: final, at: cause.at, summary: null, commit: null }]);
  return turn.id;
};
