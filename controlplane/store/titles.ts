// Statements on the titles of sessions, and the table as the app's port. Must not know how a title is made.
import type { TitleStore } from '../app/titles.ts';
import { type Database, firstRow, type Statement } from './statement.ts';

/** Asks for titles of sessions that got a prompt; one that has a title keeps it, one that was given up is tried again. */
export const wantTitles = (sessionUids: readonly string[]): Statement => ({
  name: 'want_titles',
  text: `insert into session_titles as t (session_uid) select distinct unnest($1::text[])
    on conflict (session_uid) do update set state = 'due', due_at = now(), attempts = 0 where t.state = 'off'`,
  values: [sessionUids],
});

/** Takes titles that are due until a lease ends; nobody else is given them before. */
export const takeDueTitles = (
  now: string,
  leaseUntil: string,
  limit: number,
): Statement<{ session_uid: string; attempts: number }> => ({
  text: `update session_titles set due_at = $2, attempts = attempts + 1 where session_uid in (
      select session_uid from session_titles where state = 'due' and due_at <= $1
      order by due_at limit $3 for update skip locked)
    returning session_uid, attempts`,
  values: [now, leaseUntil, limit],
});

/** The first prompts of a session that nobody withdrew. */
export const firstPrompts = (sessionUid: string, limit: number): Statement<{ parts: unknown }> => ({
  text: `select parts from prompts where session_uid = $1 and state <> 'withdrawn' order by ordinal limit $2`,
  values: [sessionUid, limit],
});

/** Gives a session its title; a row when it had none. */
export const saveTitle = (sessionUid: string, title: string, model: string): Statement<{ session_uid: string }> => ({
  text: `update session_titles set state = 'made', title = $2, model = $3, reason = null
    where session_uid = $1 and state = 'due' returning session_uid`,
  values: [sessionUid, title, model],
});

/** Gives up until the next prompt. */
export const giveUpTitle = (sessionUid: string, reason: string): Statement => ({
  text: `update session_titles set state = 'off', reason = $2 where session_uid = $1 and state = 'due'`,
  values: [sessionUid, reason],
});

/** Looks again later. */
export const postponeTitle = (sessionUid: string, dueAt: string, reason: string): Statement => ({
  text: `update session_titles set due_at = $2, reason = $3 where session_uid = $1 and state = 'due'`,
  values: [sessionUid, dueAt, reason],
});

/** Titles that are made. */
export const readTitles = (sessionUids: readonly string[]): Statement<{ session_uid: string; title: string }> => ({
  name: 'read_titles',
  text: `select session_uid, title from session_titles where session_uid = any($1::text[]) and state = 'made'`,
  values: [sessionUids],
});

/** Prompts that are looked at for one with text. */
const LOOKED_AT = 8;

const textOf = (parts: unknown): string =>
  Array.isArray(parts)
    ? parts
        .map((part: unknown) => {
          const { type, text } = (part ?? {}) as Readonly<{ type?: unknown; text?: unknown }>;
          return type === 'text' && typeof text === 'string' ? text : '';
        })
        .join('\n')
        .trim()
    : '';

/** The store over a database. */
export const makeTitleStore = ({ query }: Pick<Database, 'query'>): TitleStore => ({
  takeDue: async (now, leaseUntil, limit) =>
    (await query(takeDueTitles(now, leaseUntil, limit))).map(({ session_uid, attempts }) => ({
      sessionUid: session_uid,
      attempts,
    })),
  firstText: async (sessionUid) =>
    (await query(firstPrompts(sessionUid, LOOKED_AT))).map(({ parts }) => textOf(parts)).find((text) => text !== ''),
  save: async (sessionUid, title, model) => (await firstRow(query, saveTitle(sessionUid, title, model))) !== undefined,
  giveUp: async (sessionUid, reason) => void (await query(giveUpTitle(sessionUid, reason))),
  postpone: async (sessionUid, dueAt, reason) => void (await query(postponeTitle(sessionUid, dueAt, reason))),
});
