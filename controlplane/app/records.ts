// Reads of the audit and of usage: bounds of a question, and its pages. Must not know SQL or HTTP.
// Source: 20-control-plane §2, §3.
import type { Clock } from '#base/clock.ts';
import { InvalidError } from '#base/errors.ts';
import type { AuditRow, UsageGroup, UsageSum } from '#schema/rest/records.ts';
import { afterKey, type Page, type PageRequest, pageFrom } from './page.ts';

/** Which rows of the audit are wanted; absent is all. */
export type AuditFilter = Readonly<{
  subject?: string | undefined;
  operation?: string | undefined;
  namespace?: string | undefined;
  name?: string | undefined;
  requestId?: string | undefined;
  outcome?: AuditRow['outcome'] | undefined;
  since?: string | undefined;
  until?: string | undefined;
}>;

/** Which calls are added up by what. Times in RFC 3339. */
export type UsageQuestion = Readonly<{
  by: readonly UsageGroup[];
  namespace?: string | undefined;
  projectUid?: string | undefined;
  model?: string | undefined;
  since: string;
  until: string;
}>;

/** A sum with the key that orders it. */
export type KeyedUsage = UsageSum & Readonly<{ key: readonly string[] }>;

/** The reads. Errors of both: UnavailableError `database_unavailable`. */
export type RecordReads = Readonly<{
  /** Rows with an id below, newest first. */
  audit: (filter: AuditFilter, belowId: number, limit: number) => Promise<readonly AuditRow[]>;
  /** Sums after a key, in the order of keys. */
  usage: (
    question: UsageQuestion,
    afterKey: readonly string[] | undefined,
    limit: number,
  ) => Promise<readonly KeyedUsage[]>;
}>;

/** A question about usage as a client asks it. `by` is a list with commas. */
export type UsageRequest = PageRequest &
  Readonly<{
    by: string;
    namespace?: string | undefined;
    model?: string | undefined;
    since?: string | undefined;
    until?: string | undefined;
  }>;

/** The functions. Errors of both: InvalidError `invalid_request`, `invalid_cursor`, UnavailableError. */
export type RecordsApp = Readonly<{
  audit: (filter: AuditFilter & PageRequest) => Promise<Page<AuditRow>>;
  usage: (request: UsageRequest, projectUid?: string) => Promise<Page<UsageSum>>;
}>;

const DAY_MS = 86_400_000;
const DEFAULT_DAYS = 30;
const MAX_DAYS = 400;

/** Order of the groups in keys: the answer does not depend on the order of the question. */
const ORDER: readonly UsageGroup[] = ['day', 'project', 'agent', 'model'];

const invalidCursor = (): never => {
  throw new InvalidError('invalid_cursor', 'the cursor was not given by this list; leave it out to begin again');
};

const keyOf = (page: PageRequest, parts: number): readonly string[] | undefined => {
  const text = afterKey(page);
  if (text === '') return undefined;
  let key: unknown;
  try {
    key = JSON.parse(text);
  } catch {
    return invalidCursor();
  }
  const isKey = Array.isArray(key) && key.length === parts && key.every((part) => typeof part === 'string');
  return isKey ? (key as readonly string[]) : invalidCursor();
};

/** How many parts the key of a sum has: a project gives two. */
export const keyParts = (by: readonly UsageGroup[]): number => by.length + (by.includes('project') ? 1 : 0);

/** Makes the functions. */
export const makeRecordsApp = ({ reads, clock }: Readonly<{ reads: RecordReads; clock: Clock }>): RecordsApp => {
  const periodOf = (since: string | undefined, until: string | undefined) => {
    const untilMs = until === undefined ? clock.nowMs() + DAY_MS : Date.parse(until);
    const sinceMs = since === undefined ? Math.min(untilMs, clock.nowMs()) - DEFAULT_DAYS * DAY_MS : Date.parse(since);
    if (sinceMs > untilMs) throw new InvalidError('invalid_request', 'query.since must not be after query.until');
    if (untilMs - sinceMs > (MAX_DAYS + 1) * DAY_MS) {
      throw new InvalidError('invalid_request', `query.since must be at most ${MAX_DAYS} days before query.until`);
    }
    return { since: new Date(sinceMs).toISOString(), until: new Date(untilMs).toISOString() };
  };

  return {
    audit: async ({ limit, cursor, ...filter }) => {
      const key = afterKey({ limit, cursor });
      const below = key === '' ? Number.MAX_SAFE_INTEGER : Number(key);
      if (!Number.isSafeInteger(below)) return invalidCursor();
      const rows = await reads.audit(filter, below, limit + 1);
      return pageFrom(rows, limit, ({ id }) => String(id));
    },
    usage: async ({ limit, cursor, by: wished, since, until, ...rest }, projectUid) => {
      const by = ORDER.filter((group) => wished.split(',').includes(group));
      const after = keyOf({ limit, cursor }, keyParts(by));
      const question = { ...rest, by, projectUid, ...periodOf(since, until) };
      const page = pageFrom(await reads.usage(question, after, limit + 1), limit, ({ key }) => JSON.stringify(key));
      return { items: page.items.map(({ key: _key, ...sum }) => sum), cursor: page.cursor };
    },
  };
};
