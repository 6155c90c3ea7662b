// The claim as one transaction: the next generation, its credential, and the end of what the older one left open.
// Must not know who may claim. Source: D7, D17.
import { sameJson } from '#base/same-json.ts';
import type { DecideTurnEnd } from '../app/ports.ts';
import type { ClaimInput, StoredClaim } from '../app/session-records.ts';
import { interruptOpenTurn, ROOT_THREAD } from './end-turns.ts';
import { advanceLogs, insertEvents } from './events.ts';
import { raiseFact } from './facts.ts';
import { deleteReport } from './health.ts';
import {
  advanceGeneration,
  deleteOldCredentials,
  ensureSessions,
  insertCredential,
  lockSessions,
  readRepoint,
  saveRepoint,
} from './sessions.ts';
import { type Database, firstRow, type Query } from './statement.ts';

/** The new generation, or undefined for a session that is closed. */
export type StoreClaim = (input: ClaimInput) => Promise<StoredClaim | undefined>;

/** Generations whose credentials are kept, so that their daemons are told that they are superseded. */
const KEPT_GENERATIONS = 8;

/** Appends that the session runs on another agent than it names, once for each move. The session is locked. Source: A105. */
const tellRepoint = async (query: Query, { session, at, agentRepoint }: ClaimInput): Promise<void> => {
  const { uid } = session;
  const known = await firstRow(query, readRepoint(uid));
  if (sameJson(known?.agent_repoint ?? undefined, agentRepoint)) return;
  await query(saveRepoint(uid, agentRepoint ?? null));
  if (agentRepoint === undefined) return;
  const now = await firstRow(query, lockSessions([uid]));
  if (now === undefined) throw new Error('a locked session vanished');
  const seq = now.head_seq + 1;
  await query(
    insertEvents([
      {
        session_uid: uid,
        seq,
        generation: now.generation,
        n: null,
        id: `rep_${seq}_${uid}`.slice(0, 64),
        type: 'agent.repoint',
        thread_id: ROOT_THREAD,
        turn_id: null,
        at,
        hidden: false,
        caused_by: null,
        data: JSON.stringify({ ...agentRepoint, applied: true, reason: 'not_declared' }),
      },
    ]),
  );
  await query(advanceLogs([{ uid, headSeq: seq, acknowledgedN: now.acknowledged_n }]));
};

/** Gives back the function that stores a claim. Of several at once each gets its own generation; the last one counts. */
export const makeStoreClaim =
  (database: Database, decide: DecideTurnEnd): StoreClaim =>
  (input) =>
    database.withTransaction(async (query) => {
      const { uid } = input.session;
      await query(ensureSessions([input.session]));
      const session = await firstRow(query, lockSessions([uid]));
      if (session === undefined || session.closed_at !== null) return undefined;
      const cause = { message: 'the sandbox that ran the turn is gone', at: input.at, mayRunAgain: true };
      await interruptOpenTurn(query, session, cause, decide);
      await tellRepoint(query, input);
      const row = await firstRow(query, advanceGeneration(uid, { ...input, projectUid: input.session.projectUid }));
      if (row === undefined) throw new Error('a locked session vanished');
      const owner = { sessionUid: uid, generation: row.generation, podUid: input.podUid };
      await query(insertCredential(input.credential, owner));
      await query(deleteOldCredentials(uid, row.generation - KEPT_GENERATIONS));
      await query(deleteReport(uid));
      await raiseFact(query, { kind: 'session', uid });
      const previous = { generation: session.generation, acknowledgedN: session.acknowledged_n };
      return {
        generation: row.generation,
        headSeq: row.head_seq,
        previous: session.generation === 0 ? null : previous,
      };
    });
