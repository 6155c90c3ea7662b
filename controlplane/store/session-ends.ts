// Transactions that end things: the fence of an attempt, a pod that is gone, a session that is closed and removed.
// Each may be repeated. Must not know why something ends. Source: 10-kubernetes §4 (Delete), §6, D17.
import type { DecideTurnEnd } from '../app/ports.ts';
import type { Fencing } from '../app/session-records.ts';
import { interruptOpenTurn } from './end-turns.ts';
import { deleteEvents } from './events.ts';
import { raiseFact } from './facts.ts';
import { deleteReport } from './health.ts';
import { countQueued, withdrawAllPrompts } from './prompts.ts';
import { deleteSession, fencePod, forgetPod, lockSessions, markClosed, revokeCredentials } from './sessions.ts';
import { type Database, firstRow } from './statement.ts';
import { askAbort, getOpenTurn } from './turns.ts';

/** See the functions. */
export type SessionEnds = Readonly<{
  /** Sets the fence. `none` does so only when nothing runs or waits; `abort` marks the open turn as asked to end. */
  fence: (uid: string, podUid: string, turn: 'none' | 'wait' | 'abort') => Promise<Fencing>;
  /** Ends the turn of this pod, its credentials and its report. Another pod's session stays as it is. */
  podGone: (uid: string, podUid: string, at: string) => Promise<void>;
  /** Revokes credentials, ends the open turn for good, withdraws what waits. */
  close: (uid: string, at: string) => Promise<void>;
  /** Closes, then removes every row of the session. */
  remove: (uid: string, at: string) => Promise<void>;
}>;

const EVENTS_PER_DELETE = 10_000;

/** The ends over a database. */
export const makeSessionEnds = (database: Database, decide: DecideTurnEnd): SessionEnds => {
  const close = (uid: string, at: string): Promise<void> =>
    database.withTransaction(async (query) => {
      const session = await firstRow(query, lockSessions([uid]));
      if (session === undefined || session.closed_at !== null) return;
      await query(revokeCredentials(uid, undefined));
      const cause = { message: 'the session was closed', at, mayRunAgain: false };
      await interruptOpenTurn(query, session, cause, decide);
      await query(withdrawAllPrompts(uid));
      await query(deleteReport(uid));
      await query(markClosed(uid));
      await raiseFact(query, { kind: 'gone', uid });
    });

  return {
    close,

    fence: (uid, podUid, turn) =>
      database.withTransaction(async (query) => {
        const session = await firstRow(query, lockSessions([uid]));
        if (session === undefined || session.closed_at !== null) return { state: 'fenced', openTurnId: undefined };
        const isItsTurn = session.pod_uid === podUid || session.pod_uid === null;
        const open = isItsTurn ? await firstRow(query, getOpenTurn(uid)) : undefined;
        if (turn === 'none' && session.fenced_pod_uid !== podUid) {
          const waiting = await firstRow(query, countQueued(uid));
          if (open !== undefined || (waiting?.count ?? 0) > 0) return { state: 'working' };
        }
        if (turn === 'abort' && open !== undefined) await query(askAbort(uid));
        if (session.fenced_pod_uid !== podUid) {
          await query(fencePod(uid, podUid));
          await raiseFact(query, { kind: 'session', uid });
        }
        return { state: 'fenced', openTurnId: open?.id };
      }),

    podGone: (uid, podUid, at) =>
      database.withTransaction(async (query) => {
        const session = await firstRow(query, lockSessions([uid]));
        if (session === undefined || session.closed_at !== null) return;
        await query(revokeCredentials(uid, podUid));
        if (session.pod_uid !== podUid) return;
        await interruptOpenTurn(query, session, { message: 'the sandbox is gone', at, mayRunAgain: true }, decide);
        await query(deleteReport(uid));
        await query(forgetPod(uid, podUid));
        await raiseFact(query, { kind: 'session', uid });
      }),

    remove: async (uid, at) => {
      await close(uid, at);
      for (;;) {
        const deleted = await firstRow(database.query, deleteEvents(uid, Number.MAX_SAFE_INTEGER, EVENTS_PER_DELETE));
        if ((deleted?.count ?? 0) < EVENTS_PER_DELETE) break;
      }
      await database.withTransaction(async (query) => {
        const deleted = await firstRow(query, deleteSession(uid));
        if (deleted !== undefined) await raiseFact(query, { kind: 'gone', uid });
      });
    },
  };
};
