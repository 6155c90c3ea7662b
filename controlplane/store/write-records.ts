// Statements on audit rows and idempotency keys, and the records that app/writes.ts asks for.
// Must not know what was written.
import type { KeyState, StoredAnswer, Write, WriteEnd, WriteRecords } from '#controlplane/app/writes.ts';
import { type Database, firstRow, type Statement } from './statement.ts';

/** How long a key gives the same answer. */
const KEY_TTL = '24 hours';
/** How long a call may run: after it its process is taken for dead, its key is free again and its outcome unknown. */
export const CALL_LIMIT = '2 minutes';

/** A row for a change that begins. */
export const insertAudit = (write: Write, before: string | undefined): Statement<{ id: number }> => ({
  text: `insert into audit (request_id, subject, operation, namespace, name, body_digest, before_digest)
    values ($1, $2, $3, $4, $5, $6, $7) returning id`,
  values: [
    write.requestId,
    write.subject,
    write.operation,
    write.namespace ?? null,
    write.name ?? null,
    write.digest,
    before ?? null,
  ],
});

/** How the change ended. */
export const endAudit = (id: number, { status, code, after }: WriteEnd): Statement => ({
  text: 'update audit set status = $2, code = $3, after_digest = $4, ended_at = now() where id = $1',
  values: [id, status, code ?? null, after ?? null],
});

/** Takes the key; no row when somebody else has it. */
export const takeKey = (subject: string, key: string, digest: string): Statement<{ key: string }> => ({
  text: `insert into idempotency_keys as k (subject, key, digest) values ($1, $2, $3)
    on conflict (subject, key) do update set digest = excluded.digest, created_at = now(), status = null, body = null
      where k.created_at < now() - interval '${KEY_TTL}'
        or (k.status is null and k.digest = excluded.digest and k.created_at < now() - interval '${CALL_LIMIT}')
    returning k.key`,
  values: [subject, key, digest],
});

/** What a key stands for. */
export const getKey = (
  subject: string,
  key: string,
): Statement<{ digest: string; status: number | null; body: unknown }> => ({
  text: 'select digest, status, body from idempotency_keys where subject = $1 and key = $2',
  values: [subject, key],
});

/** Stores the answer of a key. */
export const storeAnswer = (subject: string, key: string, answer: StoredAnswer): Statement => ({
  text: 'update idempotency_keys set status = $3, body = $4 where subject = $1 and key = $2',
  values: [subject, key, answer.status, JSON.stringify(answer.body ?? null)],
});

/** Frees a key that has no answer. */
export const freeKey = (subject: string, key: string): Statement => ({
  text: 'delete from idempotency_keys where subject = $1 and key = $2 and status is null',
  values: [subject, key],
});

/** Removes keys that no longer count, and audit rows older than so many days. */
export const forgetOldWrites = (auditDays: number): readonly Statement[] => [
  { text: `delete from idempotency_keys where created_at < now() - interval '${KEY_TTL}'`, values: [] },
  { text: 'delete from audit where at < now() - make_interval(days => $1)', values: [auditDays] },
];

/** The records over a database. */
export const makeWriteRecords = ({ query }: Database): WriteRecords => ({
  begin: async (write, before) => {
    const row = await firstRow(query, insertAudit(write, before));
    if (row === undefined) throw new Error('an audit row came back without its id');
    return row.id;
  },
  end: async (id, end) => {
    await query(endAudit(id, end));
  },
  claimKey: async (subject, key, digest): Promise<KeyState> => {
    if ((await firstRow(query, takeKey(subject, key, digest))) !== undefined) return { kind: 'claimed' };
    const row = await firstRow(query, getKey(subject, key));
    if (row === undefined) return { kind: 'running', digest };
    if (row.status === null) return { kind: 'running', digest: row.digest };
    return { kind: 'answered', digest: row.digest, answer: { status: row.status, body: row.body } };
  },
  answerKey: async (subject, key, answer) => {
    await query(storeAnswer(subject, key, answer));
  },
  releaseKey: async (subject, key) => {
    await query(freeKey(subject, key));
  },
});
