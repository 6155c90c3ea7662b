// Handlers of what happened in a session. What a running harness knows better it is asked; else the log answers.
// Must not know how anything is stored. Source: 20-control-plane §3.
import type { Session } from '#schema/resources/session.ts';
import type {
  getTodoRoute,
  listChildrenRoute,
  listMessagesRoute,
  listRunEventsRoute,
  listRunsRoute,
  searchSessionRoute,
} from '#schema/rest/transcript.ts';
import { readChildrenRoute, readTodoRoute } from '#schema/wire/runtime.ts';
import type { HarnessFeatures } from '../app/harness-features.ts';
import type { SessionReading } from '../app/session-reading.ts';
import { type Fetch, requireSession } from './find-objects.ts';
import type { Handler } from './handler.ts';

/** What the handlers need. */
export type TranscriptPorts = Readonly<{
  fetchSession: Fetch<Session>;
  reading: SessionReading;
  features: Pick<HarnessFeatures, 'askIfRunning'>;
}>;

/** The handlers, one per route of schema/rest/transcript.ts. */
export type TranscriptHandlers = Readonly<{
  listMessages: Handler<typeof listMessagesRoute>;
  listChildren: Handler<typeof listChildrenRoute>;
  getTodo: Handler<typeof getTodoRoute>;
  searchSession: Handler<typeof searchSessionRoute>;
  listRuns: Handler<typeof listRunsRoute>;
  listRunEvents: Handler<typeof listRunEventsRoute>;
}>;

/** Makes the handlers. */
export const makeTranscriptHandlers = (ports: TranscriptPorts): TranscriptHandlers => {
  const found = requireSession(ports.fetchSession);
  const { reading, features } = ports;
  return {
    listMessages: async ({ params, query }) => {
      const { uid } = (await found(params)).metadata;
      const page = await reading.messages(uid, query.thread, query, query.hidden === 'true');
      return { status: 200, body: { items: [...page.items], cursor: page.cursor, seq: page.seq } };
    },
    listChildren: async ({ params, signal }) => {
      const session = await found(params);
      const live = await features.askIfRunning(session, 'session.subagents', readChildrenRoute, {}, signal);
      const titles = new Map(live?.children.map((child) => [child.threadId, child.title]));
      const ids = new Set([...(await reading.threads(session.metadata.uid)), ...titles.keys()]);
      const items = [...ids].map((threadId) => ({ threadId, title: titles.get(threadId) ?? null }));
      return { status: 200, body: { items } };
    },
    getTodo: async ({ params, query, signal }) => {
      const session = await found(params);
      const live = await features.askIfRunning(session, 'session.todo', readTodoRoute, {}, signal);
      if (query.thread !== 'root') return { status: 200, body: { todos: [] } };
      return { status: 200, body: { todos: live?.todos ?? [...(await reading.plan(session.metadata.uid, 'root'))] } };
    },
    searchSession: async ({ params, query }) => {
      const { uid } = (await found(params)).metadata;
      const hits = await reading.search(uid, query.q, query.limit);
      const items = hits.map((hit) => ({
        messageId: hit.message_id,
        threadId: hit.thread_id,
        turnId: hit.turn_id,
        role: hit.role,
        snippet: hit.snippet,
      }));
      return { status: 200, body: { items } };
    },
    listRuns: async ({ params, query }) => {
      const page = await reading.runs((await found(params)).metadata.uid, query);
      return { status: 200, body: { items: [...page.items], cursor: page.cursor } };
    },
    listRunEvents: async ({ params, query }) => {
      const { uid } = (await found(params)).metadata;
      const page = await reading.runEvents(uid, params.id, query, query.hidden === 'true');
      return { status: 200, body: { items: [...page.items], cursor: page.cursor } };
    },
  };
};
