// Which appends of a batch only continue their log: small events without effects, dense, of one generation. Pure.
// Must not know the state of any log: the statement that takes them checks it.
import { type DaemonEvent, MAX_EVENT_BYTES } from '#schema/events/envelope.ts';
import type { Continuation, UnplacedEvent } from './events.ts';
import { REQUEST_EVENTS } from './human-requests.ts';

type Append = Readonly<{ sessionUid: string; generation: number; events: readonly DaemonEvent[] }>;

/** Types whose storing changes turns, prompts and requests. */
const WITH_EFFECTS: ReadonlySet<string> = new Set(['turn.started', 'turn.ended', 'prompt.steered', ...REQUEST_EVENTS]);

const unplaced = (append: Append, event: DaemonEvent, place: number): UnplacedEvent => ({
  place,
  session_uid: append.sessionUid,
  n: event.n,
  id: event.id,
  type: event.type,
  thread_id: event.threadId,
  turn_id: event.turnId,
  at: event.at,
  hidden: event.hidden,
  caused_by: event.causedBy,
  data: JSON.stringify(event.data),
});

/** The events of a session if all its appends together are dense, small and without effects; else undefined. */
const plainEvents = (appends: readonly Append[], place: number): UnplacedEvent[] | undefined => {
  const events: UnplacedEvent[] = [];
  for (const append of appends) {
    if (append.generation !== appends[0]?.generation) return undefined;
    for (const event of append.events) {
      const last = events.at(-1);
      if (WITH_EFFECTS.has(event.type) || (last !== undefined && event.n !== last.n + 1)) return undefined;
      const made = unplaced(append, event, place);
      // A UTF-16 unit is at most three bytes.
      if (made.data.length > MAX_EVENT_BYTES / 3 && Buffer.byteLength(made.data) > MAX_EVENT_BYTES) return undefined;
      events.push(made);
    }
  }
  return events.length === 0 ? undefined : events;
};

/** The sessions whose appends are plain, and their events. Sessions come in the order of uids, so that locks do too. */
export const plainContinuations = (
  batch: readonly Append[],
): Readonly<{ sessions: Continuation[]; events: UnplacedEvent[] }> => {
  const sessions: Continuation[] = [];
  const events: UnplacedEvent[] = [];
  const bySession = Map.groupBy(batch, (append) => append.sessionUid);
  for (const uid of [...bySession.keys()].sort()) {
    const appends = bySession.get(uid) ?? [];
    const own = plainEvents(appends, sessions.length + 1);
    const [append, first, last] = [appends[0], own?.[0], own?.at(-1)];
    if (append === undefined || own === undefined || first === undefined || last === undefined) continue;
    sessions.push({ sessionUid: uid, generation: append.generation, firstN: first.n, lastN: last.n });
    for (const event of own) events.push(event);
  }
  return { sessions, events };
};
