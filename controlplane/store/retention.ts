// Cuts long logs: the first place is raised before anything is removed, so that a reader is told and never left waiting.
// Must not know how many events are kept.
import { deleteEvents, listLongLogs, raiseFirstSeq } from './events.ts';
import { type Database, firstRow } from './statement.ts';

const LOGS_PER_ROUND = 200;
const EVENTS_PER_DELETE = 10_000;

/** Removes the events of one log up to a place. */
export const cutLog = async (database: Database, sessionUid: string, upToSeq: number): Promise<void> => {
  await database.query(raiseFirstSeq(sessionUid, upToSeq + 1));
  for (;;) {
    const deleted = await firstRow(database.query, deleteEvents(sessionUid, upToSeq, EVENTS_PER_DELETE));
    if ((deleted?.count ?? 0) < EVENTS_PER_DELETE) return;
  }
};

/** Cuts logs that hold more than a number of events to that number; gives back how many logs. */
export const cutLongLogs = async (database: Database, keepEvents: number): Promise<number> => {
  const logs = await database.query(listLongLogs(keepEvents, LOGS_PER_ROUND));
  for (const log of logs) await cutLog(database, log.uid, log.head_seq - keepEvents);
  return logs.length;
};
