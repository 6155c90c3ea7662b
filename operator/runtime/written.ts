// What the API server answered to our last write of an object, until the cache shows it: so that our writes are read.
// Must not know kinds. Source: K28.
import { isOlderVersion } from '#kube/cache.ts';

type Stored = Readonly<{ metadata: Readonly<{ uid: string; resourceVersion: string }> }>;

/** Answers by uid. */
export class Written<T extends Stored> {
  readonly #answers = new Map<string, T>();

  /** The newer of what the cache shows and what our own last write answered. */
  newest(cached: T): T {
    const { uid, resourceVersion } = cached.metadata;
    const answer = this.#answers.get(uid);
    if (answer === undefined) return cached;
    // Equal versions: the answer to the removal of the last finalizer carries the version from before it.
    if (!isOlderVersion(answer.metadata.resourceVersion, resourceVersion)) return answer;
    this.#answers.delete(uid);
    return cached;
  }

  /** Takes the answer to a write. */
  wrote(answer: T): void {
    this.#answers.set(answer.metadata.uid, answer);
  }

  /** The object is gone. */
  forget(uid: string): void {
    this.#answers.delete(uid);
  }
}
