// The rows of health reports as the app's port: what they change for the operator is raised in the same transaction.
// Must not know which change of a report matters.
import type { HealthPorts } from '../app/health.ts';
import { raiseFact, raiseFacts } from './facts.ts';
import { getReport, markSilent, readErrands, saveReport, touchReports } from './health.ts';
import { lockSessions, saveCapabilities } from './sessions.ts';
import { type Database, firstRow } from './statement.ts';

/** Daemons that are marked silent at once. */
const SILENT_PER_ROUND = 500;

/** The store's part of HealthPorts. */
export type HealthStore = Pick<HealthPorts, 'save' | 'touch' | 'markSilent' | 'read' | 'errands'>;

/** Functions over a database. */
export const makeHealthStore = (database: Database): HealthStore => ({
  save: (sessionUid, generation, document, digest) =>
    database.withTransaction(async (query) => {
      const session = await firstRow(query, lockSessions([sessionUid]));
      if (session?.generation !== generation || session.closed_at !== null) return;
      await query(saveReport(sessionUid, generation, document, digest));
      // A harness that has not started yet offers nothing, which says nothing.
      if (document.capabilities.length > 0) await query(saveCapabilities(sessionUid, document.capabilities));
      await raiseFact(query, { kind: 'session', uid: sessionUid });
    }),
  touch: (sessionUids) =>
    database.withTransaction(async (query) => {
      const back = await query(touchReports(sessionUids));
      await raiseFacts(
        query,
        back.map((row) => ({ kind: 'session', uid: row.session_uid })),
      );
    }),
  markSilent: (afterSeconds) =>
    database.withTransaction(async (query) => {
      const silent = await query(markSilent(afterSeconds, SILENT_PER_ROUND));
      await raiseFacts(
        query,
        silent.map((row) => ({ kind: 'session', uid: row.session_uid })),
      );
      return silent.length;
    }),
  read: (sessionUid) => firstRow(database.query, getReport(sessionUid)),
  errands: (sessionUid, podUid) => firstRow(database.query, readErrands(sessionUid, podUid)),
});
