// What the operator remembers of one Project in this process, and may forget at any time. Must not decide anything.
import type { Project } from '#schema/resources/project.ts';
import { Written } from '../runtime/written.ts';

/** The last sync call. `atMs` is monotonic. */
export type AskedMemory = Readonly<{ generation: number; syncToken: string | null; features: string; atMs: number }>;

/** Memories by uid, and the uid of each key. */
export class ProjectMemory {
  readonly written = new Written<Project>();
  readonly asked = new Map<string, AskedMemory>();
  readonly #uids = new Map<string, string>();

  /** To be called for each look: `uid` is undefined when the Project is gone. What another uid left is forgotten. */
  look(key: string, uid: string | undefined): void {
    const known = this.#uids.get(key);
    if (known === uid) return;
    if (known !== undefined) {
      this.written.forget(known);
      this.asked.delete(known);
    }
    if (uid === undefined) this.#uids.delete(key);
    else this.#uids.set(key, uid);
  }
}
