// Places for sandboxes: how many run and start at once, in a Project and in the installation; oldest wish first.
// The only memory that several Sessions share; one per process. Must not know objects or requests.
// Source: 10-kubernetes §4, start gates.
import type { Slot } from './observed.ts';

/** Limits of the installation. */
export type SlotLimits = Readonly<{ running: number; starts: number; startsPerProject: number }>;

/** One Session as the places see it. `sinceMs`: since when it wishes, milliseconds since 1970. */
export type SlotHolder = Readonly<{ uid: string; key: string; project: string; maxRunning: number; sinceMs: number }>;

type Stage = 'granted' | 'starting' | 'running';
type Held = Readonly<{ project: string; stage: Stage }>;
type Refusal = Extract<Slot, { state: 'waiting' }>['because'];
type Counts = { running: number; starting: number };

/** The places of one process. */
export class StartSlots {
  readonly #limits: SlotLimits;
  readonly #wake: (key: string) => void;
  readonly #held = new Map<string, Held>();
  readonly #waiting = new Map<string, SlotHolder>();
  readonly #all: Counts = { running: 0, starting: 0 };
  readonly #projects = new Map<string, Counts>();

  /** `wake` is called with the key of a Session whose wish was granted. */
  constructor(ports: Readonly<{ limits: SlotLimits; wake: (key: string) => void }>) {
    this.#limits = ports.limits;
    this.#wake = ports.wake;
  }

  /** Sessions that wait. */
  get queued(): number {
    return this.#waiting.size;
  }

  /** What is seen of a Session's sandbox: `undefined` when it has none. A grant stays until a pod is seen or it is released. */
  seen(uid: string, project: string, sandbox: 'starting' | 'running' | undefined): void {
    const held = this.#held.get(uid);
    if (sandbox === undefined) {
      if (held !== undefined && held.stage !== 'granted') this.#drop(uid);
      return;
    }
    this.#waiting.delete(uid);
    if (held?.stage === sandbox) return;
    this.#hold(uid, { project, stage: sandbox });
    if (held?.stage === 'starting') this.#serve();
  }

  /** Asks for a place. It is granted now or waits; a repeated wish keeps its turn. */
  request(holder: SlotHolder): void {
    if (this.#held.has(holder.uid)) return;
    const earlier = this.#waiting.get(holder.uid);
    this.#waiting.set(holder.uid, { ...holder, sinceMs: earlier?.sinceMs ?? holder.sinceMs });
    this.#serve(holder.uid);
  }

  /** The limit of a Project as it is now, for a wish that waits. */
  limit(uid: string, maxRunning: number): void {
    const holder = this.#waiting.get(uid);
    if (holder === undefined || holder.maxRunning === maxRunning) return;
    this.#waiting.set(uid, { ...holder, maxRunning });
    this.#serve();
  }

  /** Gives a wish or a grant back. */
  release(uid: string): void {
    this.#waiting.delete(uid);
    if (this.#held.get(uid)?.stage === 'granted') this.#drop(uid);
  }

  /** The Session is gone. */
  forget(uid: string): void {
    this.#waiting.delete(uid);
    if (this.#held.has(uid)) this.#drop(uid);
  }

  /** The place of a Session. */
  slotOf(uid: string): Slot {
    if (this.#held.get(uid)?.stage === 'granted') return { state: 'granted' };
    const holder = this.#waiting.get(uid);
    if (holder === undefined) return { state: 'none' };
    return { state: 'waiting', because: this.#refusal(holder) ?? 'Starts' };
  }

  #countsOf(project: string): Counts {
    const known = this.#projects.get(project);
    if (known !== undefined) return known;
    const counts = { running: 0, starting: 0 };
    this.#projects.set(project, counts);
    return counts;
  }

  #count(held: Held, by: 1 | -1): void {
    const counts = this.#countsOf(held.project);
    for (const each of [this.#all, counts]) {
      each.running += by;
      if (held.stage !== 'running') each.starting += by;
    }
    if (counts.running === 0) this.#projects.delete(held.project);
  }

  #hold(uid: string, held: Held): void {
    const before = this.#held.get(uid);
    if (before !== undefined) this.#count(before, -1);
    this.#held.set(uid, held);
    this.#count(held, 1);
  }

  #drop(uid: string): void {
    const held = this.#held.get(uid);
    if (held === undefined) return;
    this.#held.delete(uid);
    this.#count(held, -1);
    this.#serve();
  }

  #refusal(holder: SlotHolder): Refusal | undefined {
    const own = this.#projects.get(holder.project) ?? { running: 0, starting: 0 };
    if (own.running >= holder.maxRunning) return 'ProjectRunning';
    if (this.#all.running >= this.#limits.running) return 'InstallationRunning';
    const full = this.#all.starting >= this.#limits.starts || own.starting >= this.#limits.startsPerProject;
    return full ? 'Starts' : undefined;
  }

  /** Grants what fits, oldest wish first. `asking` is told by its own next pass. */
  #serve(asking?: string): void {
    if (this.#waiting.size === 0) return;
    const line = [...this.#waiting.values()].sort((a, b) => a.sinceMs - b.sinceMs || (a.uid < b.uid ? -1 : 1));
    for (const holder of line) {
      const isFull = this.#all.running >= this.#limits.running || this.#all.starting >= this.#limits.starts;
      if (isFull) return;
      if (this.#refusal(holder) !== undefined) continue;
      this.#waiting.delete(holder.uid);
      this.#hold(holder.uid, { project: holder.project, stage: 'granted' });
      if (holder.uid !== asking) this.#wake(holder.key);
    }
  }
}
