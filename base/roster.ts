// What is under way now, where entries come and go with every call. A Set would do, but its old tables stay alive through
// each other until a full collection, and with them a good part of all entries that ever were. Must not know its entries.

/** An entry; `place` belongs to the roster. */
export type Entry = { place: number };

/** Entries in no order. An entry is in one roster at most; adding and removing cost the same however many there are. */
export class Roster<T extends Entry> {
  readonly #entries: T[] = [];

  get size(): number {
    return this.#entries.length;
  }

  /** Adds an entry that is not there. */
  add(entry: T): void {
    entry.place = this.#entries.length;
    this.#entries.push(entry);
  }

  /** Removes an entry; does nothing when it is not there. */
  remove(entry: T): void {
    if (this.#entries[entry.place] !== entry) return;
    const last = this.#entries.pop();
    if (last === undefined || last === entry) return;
    this.#entries[entry.place] = last;
    last.place = entry.place;
  }

  /** The entries at this moment. */
  all(): readonly T[] {
    return [...this.#entries];
  }
}
