// What an adapter reports while it runs: events of the log, already in the product's words.
// Must not know how events are numbered, stored or sent, nor any single harness.
import type { TypedEvent } from '#schema/events/envelope.ts';

/** Thread of the session's own conversation; a subagent's thread is named by its harness's session id. */
export const ROOT_THREAD = 'root';

/** One event of a harness. `threadId`: ROOT_THREAD or a child's id, at most 128 characters. */
export type HarnessEvent = TypedEvent & Readonly<{ threadId: string; hidden?: boolean | undefined }>;
