// What one turn left open or said, read from the events that pass by: calls that have no end, the last visible answer.
// Pure: a record in, a record out. Must not know harnesses. Source: A155, D17, 10-kubernetes §3.

import { type HarnessEvent, ROOT_THREAD } from '#daemon/harness/contract/events.ts';
import type { TypedEvent } from '#schema/events/envelope.ts';

/** A tool call without its end. */
export type OpenCall = Readonly<{ callId: string; tool: string; running: boolean; threadId: string }>;

/** State of one turn. */
export type TurnRecord = Readonly<{
  openCalls: ReadonlyMap<string, OpenCall>;
  /** Role of each message of the root thread; summaries of a compaction count as none. */
  speakers: ReadonlyMap<string, 'user' | 'assistant'>;
  answer: string | null;
}>;

/** Longest summary of a turn. Units: bytes of UTF-8. Source: 10-kubernetes §3. */
export const MAX_SUMMARY_BYTES = 1_024;

/** The record of a turn that has begun. */
export const EMPTY_RECORD: TurnRecord = { openCalls: new Map(), speakers: new Map(), answer: null };

/** The record after one event. */
export const recordEvent = (record: TurnRecord, event: HarnessEvent): TurnRecord => {
  if (event.type === 'message.updated' && event.threadId === ROOT_THREAD) {
    const { id, role } = event.data.message;
    if (event.data.message['summary'] === true || record.speakers.get(id) === role) return record;
    return { ...record, speakers: new Map(record.speakers).set(id, role) };
  }
  if (event.type === 'tool.terminal') {
    const openCalls = new Map(record.openCalls);
    openCalls.delete(event.data.callId);
    return { ...record, openCalls };
  }
  if (event.type !== 'message.part.updated') return record;
  const { part } = event.data;
  if (part.type === 'tool' && part.callId !== undefined) {
    const status = part.state?.status;
    const openCalls = new Map(record.openCalls);
    if (status === 'completed' || status === 'error') openCalls.delete(part.callId);
    else {
      const { callId, tool = 'unknown' } = part;
      openCalls.set(callId, { callId, tool, running: status === 'running', threadId: event.threadId });
    }
    return { ...record, openCalls };
  }
  const isAnswer =
    part.type === 'text' &&
    event.threadId === ROOT_THREAD &&
    record.speakers.get(part.messageId) === 'assistant' &&
    part['synthetic'] !== true &&
    (part.text ?? '').trim() !== '';
  return isAnswer ? { ...record, answer: part.text ?? null } : record;
};

/** Events that close what a turn left open. `uncertain`: the harness died, so a running call may have had its effect. */
export const closeOpenCalls = (
  record: TurnRecord,
  uncertain: boolean,
): readonly (Extract<TypedEvent, { type: 'tool.terminal' | 'effect.uncertain' }> & Readonly<{ threadId: string }>)[] =>
  [...record.openCalls.values()].flatMap(({ callId, tool, running, threadId }) => [
    ...(uncertain && running ? [{ type: 'effect.uncertain' as const, threadId, data: { callId, tool } }] : []),
    { type: 'tool.terminal' as const, threadId, data: { callId, tool, outcome: 'aborted' as const } },
  ]);
