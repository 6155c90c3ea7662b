// Where a reader of a log goes on, and the text of one frame. Pure. Must not know streams or SQL.
// Source: 20-control-plane §8, FD5.
import { envelopeOf, type LogEvent } from '#schema/events/log-event.ts';

/** First and last place of a log; `firstSeq` is `headSeq + 1` when it is empty. */
export type LogRange = Readonly<{ firstSeq: number; headSeq: number }>;

/** Where to go on: after which place, and whether what the reader has is worth nothing. */
export type Resumption = Readonly<{ after: number; reset: boolean }>;

/** The place that a reader names: the `Last-Event-ID` wins over `since`. NaN for a text that no stream of ours sent. */
export const namedPosition = (lastEventId: string | undefined, since: number | undefined): number | undefined => {
  if (lastEventId === undefined || lastEventId === '') return since;
  return /^\d{1,15}$/.test(lastEventId) ? Number(lastEventId) : Number.NaN;
};

/** Exactly after the named place; a pruned, future or unreadable one begins again with the first event there is. */
export const resumeAt = (position: number | undefined, range: LogRange): Resumption => {
  const begin = range.firstSeq - 1;
  if (position === undefined) return { after: begin, reset: false };
  const isKnown = position >= begin && position <= range.headSeq;
  return isKnown ? { after: position, reset: false } : { after: begin, reset: true };
};

/** One event as text of a stream, made once for all its readers. */
export type Frame = Readonly<{ seq: number; text: string; bytes: number; hidden: boolean }>;

const NAME = /^[A-Za-z0-9._-]{1,64}$/;

/** The frame of an event. A type that would break the framing goes out under the name `unknown`. */
export const frameOf = (event: LogEvent): Frame => {
  const envelope = JSON.stringify(envelopeOf(event));
  const name = NAME.test(event.type) ? event.type : 'unknown';
  const data = `${envelope.slice(0, -1)},"data":${event.data.replace(/[\r\n]+/g, ' ')}}`;
  const text = `id: ${event.seq}\nevent: ${name}\ndata: ${data}\n\n`;
  return { seq: event.seq, text, bytes: Buffer.byteLength(text), hidden: event.hidden };
};
