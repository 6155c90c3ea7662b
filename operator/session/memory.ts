// What the operator remembers of one Session in this process, and may forget at any time: progress of calls, the last
// answer of the API server, since when a deletion is due. Must not decide anything.
import type { Session } from '#schema/resources/session.ts';
import { Written } from '../runtime/written.ts';

/** How a stop call stands. `askedMs` is monotonic. */
export type StopMemory = Readonly<{ podUid: string; state: 'draining' | 'stopped'; askedMs: number }>;

type Entry = {
  readonly uid: string;
  readonly project: string;
  stop: StopMemory | undefined;
  readonly reportedGone: Set<string>;
  dueSinceMs: number | undefined;
};

/** Pods of one Session whose end is remembered as told. */
const MAX_REPORTED = 8;

/** Memories by key; a Session of another uid under the same key begins anew. */
export class SessionMemory {
  readonly #entries = new Map<string, Entry>();
  readonly #written = new Written<Session>();

  /** The newest of what the cache shows and what our own last write answered. */
  newest(cached: Session): Session {
    return this.#written.newest(cached);
  }

  /** Takes what the API server answered to a write. */
  wrote(session: Session): void {
    this.#written.wrote(session);
  }

  /** The memory of a Session; made when it is first asked for. */
  of({ metadata, spec }: Session): Entry {
    const key = `${metadata.namespace}/${metadata.name}`;
    const known = this.#entries.get(key);
    if (known?.uid === metadata.uid) return known;
    const entry: Entry = {
      uid: metadata.uid,
      project: `${metadata.namespace}/${spec.projectRef.name}`,
      stop: undefined,
      reportedGone: new Set(),
      dueSinceMs: undefined,
    };
    this.#entries.set(key, entry);
    return entry;
  }

  /** Remembers that the control plane knows of the end of a pod. */
  reportedGone(session: Session, podUid: string): void {
    const { reportedGone } = this.of(session);
    reportedGone.add(podUid);
    const [oldest] = reportedGone;
    if (reportedGone.size > MAX_REPORTED && oldest !== undefined) reportedGone.delete(oldest);
  }

  /** Forgets the Session that had this key, unless it is the one of `uid`; gives back what was forgotten. */
  forget(key: string, uid?: string): Readonly<{ uid: string; project: string }> | undefined {
    const known = this.#entries.get(key);
    if (known === undefined || known.uid === uid) return undefined;
    this.#entries.delete(key);
    this.#written.forget(known.uid);
    return known;
  }
}
