// The end of turns inside a transaction that holds their sessions' locks: turn, prompt and, when the control plane
// ends a turn itself, its one terminal event and those of what it left open. Must not know the rule; it is handed in.
// Source: D17, J12.
import type { EventType } from '#schema/events/envelope.ts';
import { openCallsOf } from '#schema/rules/open-calls.ts';
import type { DecideTurnEnd, EndedTurn, TurnVerdict } from '../app/ports.ts';
import { advanceLogs, insertEvents, listCallEvents } from './events.ts';
import { endRequests, listOpenOf } from './human-requests.ts';
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
  /** Place of the terminal event. */
  seq: number;
}>;

/** What the rule is told of a turn that ends. */
export const endedTurnOf = (
  turn: TurnRow,
  endedAt: string,
): Pick<EndedTurn, 'abortAsked' | 'attempt' | 'harness' | 'startedAt' | 'endedAt'> => ({
  abortAsked: turn.abort_asked,
  attempt: turn.attempt,
  harness: turn.harness,
  startedAt: turn.started_at,
  endedAt,
});

/** Writes ends to turns and prompts. The caller raises the facts. */
export const storeEndings = async (query: Query, endings: readonly Ending[]): Promise<void> => {
  if (endings.length === 0) return;
  await query(
    endTurns(
      endings.map(({ turn, verdict, at, summary, commit, seq }) => ({
        id: turn.id,
        at,
        seq,
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

/** Events about calls that are looked at when a turn is lost. */
const MAX_CALL_EVENTS = 2_000;

type Unplaced = Readonly<{ type: EventType; threadId: string; turnId: string | null; data: object; id: string }>;

/** What says "no" to everything that a daemon that is gone still asks. Source: A121. */
const endOpenRequests = async (query: Query, session: LockedSession, at: string): Promise<Unplaced[]> => {
  const open = await query(listOpenOf(session.uid));
  if (open.length === 0) return [];
  await query(
    endRequests(open.map(({ id }) => ({ kind: 'ended', sessionUid: session.uid, id, at, outcome: 'reject' }))),
  );
  return open.map(({ id, kind, thread_id: threadId, turn_id: turnId }) => ({
    type: kind === 'permission' ? 'permission.replied' : 'question.rejected',
    threadId,
    turnId,
    data: kind === 'permission' ? { id, reply: 'reject' } : { id },
    id: `end_${session.generation}_${id}`.slice(0, 64),
  }));
};

/** What closes the calls of a turn whose daemon is gone: one that ran may have had its effect. Source: A155, J12. */
const endOpenCalls = async (query: Query, turn: TurnRow): Promise<Unplaced[]> => {
  if (turn.start_seq === null) return [];
  const events = await query(listCallEvents(turn.session_uid, turn.id, turn.start_seq, MAX_CALL_EVENTS));
  return openCallsOf(events).flatMap(({ callId, tool, status, threadId }, n) => {
    const place = { threadId, turnId: turn.id };
    const closed = { type: 'tool.terminal', data: { callId, tool, outcome: 'aborted' }, ...place } as const;
    const uncertain = { type: 'effect.uncertain', data: { callId, tool }, ...place } as const;
    return [
      ...(status === 'running' ? [{ ...uncertain, id: `unc_${n}_${turn.id}`.slice(0, 64) }] : []),
      { ...closed, id: `cls_${n}_${turn.id}`.slice(0, 64) },
    ];
  });
};

/**
 * Ends what a daemon left open that will end nothing any more: requests, calls and the open turn, each with its event.
 * Gives back the turn's id, or undefined when none was open. `mayRunAgain: false` ends the prompt whatever the rule says.
 */
export const interruptOpenTurn = async (
  query: Query,
  session: LockedSession,
  cause: Readonly<{ message: string; at: string; mayRunAgain: boolean }>,
  decide: DecideTurnEnd,
): Promise<string | undefined> => {
  const turn = await firstRow(query, getOpenTurn(session.uid));
  const events = await endOpenRequests(query, session, cause.at);
  let verdict: TurnVerdict | undefined;
  if (turn !== undefined) {
    const lost = { outcome: 'Interrupted', code: 'sandbox_lost', message: cause.message } as const;
    verdict = decide({ ...lost, ...endedTurnOf(turn, cause.at) });
    const { outcome, code, message } = verdict;
    events.push(...(await endOpenCalls(query, turn)), {
      type: 'turn.ended',
      threadId: turn.thread_id ?? ROOT_THREAD,
      turnId: turn.id,
      data: { promptId: turn.prompt_id, outcome, code, message, summary: null, commit: null },
      id: `end_${turn.id}`,
    });
  }
  if (events.length === 0) return undefined;
  await query(
    insertEvents(
      events.map((event, n) => ({
        session_uid: session.uid,
        seq: session.head_seq + 1 + n,
        generation: turn?.generation ?? session.generation,
        n: null,
        id: event.id,
        type: event.type,
        thread_id: event.threadId,
        turn_id: event.turnId,
        at: cause.at,
        hidden: false,
        caused_by: null,
        data: JSON.stringify(event.data),
      })),
    ),
  );
  const headSeq = session.head_seq + events.length;
  await query(advanceLogs([{ uid: session.uid, headSeq, acknowledgedN: session.acknowledged_n }]));
  if (turn === undefined || verdict === undefined) return undefined;
  const final = cause.mayRunAgain ? verdict : { ...verdict, requeue: false };
  await storeEndings(query, [{ turn, verdict: final, at: cause.at, summary: null, commit: null, seq: headSeq }]);
  return turn.id;
};
