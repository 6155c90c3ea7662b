// Statements that read audit rows and add up usage. Must not know who asks.
import type { AuditRow, UsageGroup, UsageSum } from '#schema/rest/records.ts';
import type { AuditFilter, RecordReads, UsageQuestion } from '../app/records.ts';
import type { Database, Statement } from './statement.ts';
import { CALL_LIMIT } from './write-records.ts';

const OUTCOME = `case when a.status is null and a.at < now() - interval '${CALL_LIMIT}' then 'unknown'
  when a.status is null then 'open' when a.status < 400 then 'ok' when a.status < 500 then 'refused' else 'failed' end`;

/** Audit rows below an id, newest first. */
export const listAudit = (filter: AuditFilter, belowId: number, limit: number): Statement<AuditRow> => ({
  text: `select a.id, a.at, a.request_id as "requestId", a.subject, a.operation, a.namespace, a.name,
      ${OUTCOME} as outcome, a.status, a.code, a.ended_at as "endedAt", a.body_digest as "bodyDigest",
      a.before_digest as "beforeDigest", a.after_digest as "afterDigest", a.before, a.after
    from audit a
    where a.id < $1
      and ($3::text is null or a.subject = $3) and ($4::text is null or a.operation = $4)
      and ($5::text is null or a.namespace = $5) and ($6::text is null or a.name = $6)
      and ($7::text is null or a.request_id = $7) and ($8::text is null or ${OUTCOME} = $8)
      and ($9::timestamptz is null or a.at >= $9) and ($10::timestamptz is null or a.at < $10)
    order by a.id desc limit $2`,
  values: [
    belowId,
    limit,
    filter.subject ?? null,
    filter.operation ?? null,
    filter.namespace ?? null,
    filter.name ?? null,
    filter.requestId ?? null,
    filter.outcome ?? null,
    filter.since ?? null,
    filter.until ?? null,
  ],
});

/** What each group adds to the key of a sum, as text that sorts like its meaning. */
const KEYS: Readonly<Record<UsageGroup, readonly string[]>> = {
  day: [`to_char(u.at at time zone 'UTC', 'YYYY-MM-DD')`],
  project: ['u.namespace', 'u.project_uid'],
  agent: [`coalesce(u.agent, '')`],
  model: ['u.model'],
};

type SumRow = Omit<UsageSum, 'day' | 'namespace' | 'project' | 'projectUid' | 'agent' | 'model'> &
  Readonly<{ key: readonly string[]; project: string | null }>;

/** Sums after a key, in the order of keys. */
export const sumUsage = (
  question: UsageQuestion,
  after: readonly string[] | undefined,
  limit: number,
): Statement<SumRow> => {
  const keys = question.by.flatMap((group) => KEYS[group]);
  const ordered = keys.map((key) => `(${key}) collate "C"`);
  const bound = keys.map((_key, at) => `$${at + 7}`).join(', ');
  const project = question.by.includes('project') ? 'max(j.name)' : 'null';
  return {
    text: `select array[${keys.join(', ')}]::text[] as key, ${project} as project, count(*)::int as calls,
        (count(*) filter (where u.status >= 400))::int as "failedCalls",
        (count(*) filter (where u.estimated))::int as "estimatedCalls",
        sum(u.prompt_tokens)::bigint as "promptTokens", sum(u.cached_tokens)::bigint as "cachedTokens",
        sum(u.completion_tokens)::bigint as "completionTokens", sum(u.cost_micro_usd)::bigint as "costMicroUsd"
      from usage u
        left join projects j on j.uid = u.project_uid
      where u.at >= $1 and u.at < $2 and ($4::text is null or u.namespace = $4)
        and ($5::text is null or u.project_uid = $5) and ($6::text is null or u.model = $6)
        ${after === undefined ? '' : `and (${ordered.join(', ')}) > (${bound})`}
      group by ${keys.join(', ')} order by ${ordered.join(', ')} limit $3`,
    values: [
      question.since,
      question.until,
      limit,
      question.namespace ?? null,
      question.projectUid ?? null,
      question.model ?? null,
      ...(after ?? []),
    ],
  };
};

/** The reads over a database. */
export const makeRecordReads = ({ query }: Database): RecordReads => ({
  audit: (filter, belowId, limit) => query(listAudit(filter, belowId, limit)),
  usage: async (question, after, limit) => {
    const rows = await query(sumUsage(question, after, limit));
    return rows.map((row) => {
      const named = new Map<string, string | undefined>();
      let at = 0;
      for (const group of question.by) {
        const names = group === 'project' ? ['namespace', 'projectUid'] : [group];
        for (const name of names) {
          named.set(name, row.key[at]);
          at += 1;
        }
      }
      const of = (name: string): string | null => named.get(name) ?? null;
      const agent = of('agent');
      return {
        ...row,
        day: of('day'),
        namespace: of('namespace'),
        projectUid: of('projectUid'),
        agent: agent === '' ? null : agent,
        model: of('model'),
      };
    });
  },
});
