// What the operator remembers of one Project in this process, and may forget at any time. Must not decide anything.
import type { Project } from '#schema/resources/project.ts';
import { Written } from '../runtime/written.ts';

/** The last sync call. `atMs` is monotonic. */
export type AskedMemory = Readonly<{ generation: number; syncToken: string | null; features: string; atMs: number }>;

/** Memories by uid, and the uid of each key. */
export class ProjectMemory {
  readonly written = new Written<Project>();
  readonly asked = new Map<string, AskedMemory>();
  /** Versions of Secrets that the control plane knows of, by uid of the Project. */
  readonly #told = new Map<string, Map<string, string>>();
  readonly #uids = new Map<string, string>();

  /**
   * The version of a Secret that the control plane was told. The first version that is seen counts as told: the control
   * plane reads Secrets itself when it syncs.
   */
  toldSecret(uid: string, name: string, version: string): string {
    const told = this.#told.get(uid) ?? new Map<string, string>();
    this.#told.set(uid, told);
    const known = told.get(name);
    if (known === undefined) told.set(name, version);
    return known ?? version;
  }

  /** The control plane was told. */
  tellSecret(uid: string, name: string, version: string): void {
    this.#told.get(uid)?.set(name, version);
  }

  /** To be called for each look: `uid` is undefined when the Project is gone. What another uid left is forgotten. */
  look(key: string, uid: string | undefined): void {
    const known = this.#uids.get(key);
    if (known === uid) return;
    if (known !== undefined) {
      this.written.forget(known);
      this.asked.delete(known);
      this.#told.delete(known);
    }
    if (uid === undefined) this.#uids.delete(key);
    else this.#uids.set(key, uid);
  }
}
