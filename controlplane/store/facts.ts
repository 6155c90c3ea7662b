// Statements on facts: what the operator must hear about, in the order of its changes.
// Must not know what a fact says; the body of a project's fact comes from whoever raises it.

import type { ProjectFact, RegistryFact } from '#schema/wire/sync.ts';
import type { FactRow } from '../app/session-fact.ts';
import type { Query, Statement } from './statement.ts';

/** Channel on which the uids of changed facts are told, separated by spaces. */
export const FACTS_CHANNEL = 'beeuni_facts';
/** Uids that fit into one notification. */
const UIDS_PER_NOTIFICATION = 100;
/** Key of the advisory lock under which versions are given: what commits later has a higher version. */
const VERSION_LOCK_KEY = 7_271_838_403;

/** One change. A session's fact has no body: it is joined when it is read. */
export type FactChange = Readonly<
  | { kind: 'project'; uid: string; body: ProjectFact }
  | { kind: 'registry'; uid: string; body: RegistryFact }
  | { kind: 'session'; uid: string }
  | { kind: 'gone'; uid: string }
>;

const raiseStatement = (changes: readonly FactChange[]): Statement => ({
  name: 'raise_facts',
  text: `with held as (select pg_advisory_xact_lock($1)),
    raised as (
      insert into facts (uid, kind, version, body)
      select c.uid, c.kind, nextval('fact_versions'), c.body::jsonb
        from held, unnest($2::text[], $3::text[], $4::text[]) as c(uid, kind, body)
      on conflict (uid) do update
        set kind = excluded.kind, version = excluded.version, body = excluded.body, changed_at = now()
      returning uid)
    select pg_notify($5, coalesce(string_agg(uid, ' '), '')) from raised`,
  values: [
    VERSION_LOCK_KEY,
    changes.map((change) => change.uid),
    changes.map((change) => change.kind),
    changes.map((change) => ('body' in change ? JSON.stringify(change.body) : null)),
    FACTS_CHANNEL,
  ],
});

/**
 * Gives changes a version each and tells every replica. The last thing that a transaction does: it holds a lock until
 * commit, so nothing that another transaction may have locked must be touched after it.
 */
export const raiseFacts = async (query: Query, changes: readonly FactChange[]): Promise<void> => {
  const last = new Map(changes.map((change) => [change.uid, change]));
  const distinct = [...last.values()];
  for (let at = 0; at < distinct.length; at += UIDS_PER_NOTIFICATION) {
    await query(raiseStatement(distinct.slice(at, at + UIDS_PER_NOTIFICATION)));
  }
};

/** See raiseFacts, for one change. */
export const raiseFact = (query: Query, change: FactChange): Promise<void> => raiseFacts(query, [change]);

/** Identity and reach of the stream. */
export const readFactStream = (): Statement<{ epoch: string; horizon: number; head: number }> => ({
  text: `select epoch, horizon, (select coalesce(max(version), 0) from facts) as head from fact_stream`,
  values: [],
});

/** Facts after a version, oldest change first. */
export const readFacts = (afterVersion: number, limit: number): Statement<FactRow> => ({
  name: 'read_facts',
  text: `select f.uid, f.kind, f.version, f.body, s.uid is not null as exists,
      s.pod_uid, s.generation, s.fenced_pod_uid, s.want_start, s.budget_reached, s.idle_since,
      h.state as health_state, h.reported_at, h.document,
      o.id as open_turn_id, o.taken_at as open_since,
      exists (select 1 from prompts q where q.session_uid = s.uid and q.state = 'queued') as queued,
      t.id as turn_id, t.prompt_id as turn_prompt_id, p.message_id as turn_message_id, t.outcome as turn_outcome,
      t.final as turn_final, t.message as turn_message, t.started_at as turn_started_at, t.ended_at as turn_ended_at,
      t.summary as turn_summary, sp.message as spec_message,
      case when sp.state = 'withdrawn' then 'Aborted' else sp.outcome end as spec_outcome
    from facts f
      left join sessions s on f.kind = 'session' and s.uid = f.uid and s.closed_at is null
      left join health_reports h on h.session_uid = s.uid
      left join turns o on o.session_uid = s.uid and o.ended_at is null
      left join turns t on t.id = s.last_turn_id
      left join prompts p on p.id = t.prompt_id
      left join prompts sp on sp.session_uid = s.uid and sp.message_id = 'spec:' || s.uid and sp.state in ('ended', 'withdrawn')
    where f.version > $1 order by f.version limit $2`,
  values: [afterVersion, limit],
});

/** Forgets "gone" facts that are older than a time, and remembers how far that reaches. Gives back how many. */
export const forgetGoneFacts = (olderThanSeconds: number): Statement<{ count: number }> => ({
  text: `with forgotten as (
      delete from facts where kind = 'gone' and changed_at < now() - make_interval(secs => $1) returning version),
    kept as (
      update fact_stream set horizon = greatest(horizon, (select max(version) from forgotten))
      where exists (select 1 from forgotten))
    select count(*)::int as count from forgotten`,
  values: [olderThanSeconds],
});
