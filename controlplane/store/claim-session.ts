// The claim as one transaction: the next generation, its credential, and the end of what the older one left open.
// Must not know who may claim. Source: D7, D17.
import type { DecideTurnEnd } from '../app/ports.ts';
import type { ClaimInput, StoredClaim } from '../app/session-records.ts';
import { interruptOpenTurn } from './end-turns.ts';
import { raiseFact } from './facts.ts';
import { deleteReport } from './health.ts';
import { advanceGeneration, deleteOldCredentials, ensureSessions, insertCredential, lockSessions } from './sessions.ts';
import { type Database, firstRow } from './statement.ts';

/** The new generation, or undefined for a session that is closed. */
export type StoreClaim = (input: ClaimInput) => Promise<StoredClaim | undefined>;

/** Generations whose credentials are kept, so that their daemons are told that they are superseded. */
const KEPT_GENERATIONS = 8;

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
