// Statements on health reports. Must not know which change of a report matters.
import type { HealthDocument } from '#schema/wire/health.ts';
import type { DeliveredAnswer } from '#schema/wire/requests.ts';
import type { Statement } from './statement.ts';

/** Stores a report of a generation; an older one changes nothing. */
export const saveReport = (
  sessionUid: string,
  generation: number,
  document: HealthDocument,
  digest: string,
): Statement => ({
  text: `insert into health_reports (session_uid, generation, state, reported_at, document, digest)
    values ($1, $2, 'Answering', now(), $3, $4)
    on conflict (session_uid) do update set generation = excluded.generation, state = 'Answering',
      reported_at = excluded.reported_at, document = excluded.document, digest = excluded.digest
    where health_reports.generation <= excluded.generation`,
  values: [sessionUid, generation, JSON.stringify(document), digest],
});

/** What was reported last. */
export type ReportRow = Readonly<{
  generation: number;
  state: 'Answering' | 'Silent';
  reported_at: string;
  document: HealthDocument;
}>;

/** The report of a session. */
export const getReport = (sessionUid: string): Statement<ReportRow> => ({
  text: 'select generation, state, reported_at, document from health_reports where session_uid = $1',
  values: [sessionUid],
});

/** Notes that daemons answered just now; gives back those that had been silent. */
export const touchReports = (sessionUids: readonly string[]): Statement<{ session_uid: string }> => ({
  name: 'touch_reports',
  text: `with held as (
      select session_uid, state from health_reports where session_uid = any($1::text[]) order by session_uid for update),
    touched as (
      update health_reports h set reported_at = now(), state = 'Answering' from held where h.session_uid = held.session_uid)
    select session_uid from held where state = 'Silent'`,
  values: [sessionUids],
});

/** Marks daemons silent that answered last before an age; gives back which. Oldest first, at most `limit`. */
export const markSilent = (afterSeconds: number, limit: number): Statement<{ session_uid: string }> => ({
  text: `update health_reports set state = 'Silent' where session_uid in (
      select session_uid from health_reports
      where state = 'Answering' and reported_at < now() - make_interval(secs => $1)
      order by reported_at limit $2 for update skip locked)
    returning session_uid`,
  values: [afterSeconds, limit],
});

/** Forgets the report of a session. */
export const deleteReport = (sessionUid: string): Statement => ({
  text: 'delete from health_reports where session_uid = $1',
  values: [sessionUid],
});

/** What is known when a report comes: the last one's digest, what waits for this pod, the turn to be ended. */
export const readErrands = (
  sessionUid: string,
  podUid: string,
): Statement<
  Readonly<{
    prompts_waiting: boolean;
    abort_turn_id: string | null;
    digest: string | null;
    answers: readonly DeliveredAnswer[];
  }>
> => ({
  name: 'read_errands',
  text: `select s.fenced_pod_uid is distinct from $2 and exists (
        select 1 from prompts where session_uid = s.uid and state = 'queued') as prompts_waiting,
      (select id from turns where session_uid = s.uid and ended_at is null and abort_asked) as abort_turn_id,
      (select digest from health_reports where session_uid = s.uid and generation = s.generation) as digest,
      (select coalesce(json_agg(json_build_object('id', id, 'answer', answer)), '[]') from (
        select id, answer from human_requests where session_uid = s.uid and ended_at is null and answer is not null
        order by answered_at limit 64) waiting) as answers
    from sessions s where s.uid = $1`,
  values: [sessionUid, podUid],
});
