// The newest frames of one log, read once for all its readers and kept within a bound. Must not know readers' streams.
// Source: 20-control-plane §8.
import type { Frame, LogRange } from './resume.ts';

/** What a tail needs. */
export type TailPorts = Readonly<{
  /** Frames after a place, in order. */
  read: (afterSeq: number) => Promise<readonly Frame[]>;
  /** First and last place; undefined once the session is gone. */
  readRange: () => Promise<LogRange | undefined>;
  /** Waits before a failed read is tried again; resolves early when the tail is closed. */
  pause: (signal: AbortSignal) => Promise<unknown>;
  onError: (error: unknown) => void;
}>;

/** Frames kept. Units: bytes. Source: 20-control-plane §8. */
export const TAIL_BYTES = 262_144;

/** The tail of one log. Created at a known head; grows by `grewTo` and `check`. */
export class Tail {
  readonly #ports: TailPorts;
  readonly #closed = new AbortController();
  #frames: Frame[] = [];
  #bytes = 0;
  /** Last place that was read, and the last one that is known to exist. */
  #readTo: number;
  #head: number;
  #isGone = false;
  #isReading = false;
  #mustCheck = false;
  #waiting = new Set<() => void>();
  /** Readers; kept by whoever hands tails out. */
  readers = 0;

  constructor(head: number, ports: TailPorts) {
    this.#readTo = head;
    this.#head = head;
    this.#ports = ports;
  }

  /** Whether the session was removed. */
  get isGone(): boolean {
    return this.#isGone;
  }

  /** Last place whose frame this tail has had. */
  get readTo(): number {
    return this.#readTo;
  }

  /**
   * Frames after a place: none for one that this tail has not passed, undefined when the first of them is no longer (or
   * never was) here.
   */
  after(seq: number): readonly Frame[] | undefined {
    if (seq >= this.#readTo) return [];
    const first = this.#frames[0];
    if (first === undefined || seq < first.seq - 1) return undefined;
    return this.#frames.slice(seq - first.seq + 1);
  }

  /** The log is at least so long now. */
  grewTo(head: number): void {
    if (head <= this.#head) return;
    this.#head = head;
    void this.#read();
  }

  /** News may have been missed: looks at the log itself. */
  check(): void {
    this.#mustCheck = true;
    void this.#read();
  }

  /** Resolves at the next change, or when `signal` fires. */
  changed(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        this.#waiting.delete(done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      this.#waiting.add(done);
      signal.addEventListener('abort', done, { once: true });
      if (signal.aborted || this.#isGone) done();
    });
  }

  /** Ends what goes on in the background. */
  close(): void {
    this.#closed.abort();
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = new Set();
    for (const done of waiting) done();
  }

  #keep(frames: readonly Frame[]): void {
    for (const frame of frames) {
      // Frames are found by counting from the first, so there is no hole in them.
      if (frame.seq !== this.#readTo + 1) {
        this.#frames = [];
        this.#bytes = 0;
      }
      this.#frames.push(frame);
      this.#bytes += frame.bytes;
      this.#readTo = frame.seq;
    }
    let drop = 0;
    while (this.#bytes > TAIL_BYTES && drop < this.#frames.length) {
      this.#bytes -= this.#frames[drop]?.bytes ?? 0;
      drop += 1;
    }
    if (drop > 0) this.#frames = this.#frames.slice(drop);
  }

  async #step(): Promise<void> {
    if (this.#mustCheck) {
      this.#mustCheck = false;
      const range = await this.#ports.readRange();
      if (range === undefined) {
        this.#isGone = true;
        return;
      }
      this.#head = Math.max(this.#head, range.headSeq);
    }
    if (this.#head <= this.#readTo) return;
    const frames = await this.#ports.read(this.#readTo);
    // The first reader of a place that was pruned meanwhile must not wait for it for ever.
    if (frames.length === 0) this.#head = this.#readTo;
    else this.#keep(frames);
  }

  async #read(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      while (!this.#closed.signal.aborted && !this.#isGone && (this.#mustCheck || this.#head > this.#readTo)) {
        try {
          await this.#step();
        } catch (error) {
          this.#ports.onError(error);
          this.#mustCheck = true;
          await this.#ports.pause(this.#closed.signal);
        }
        this.#wake();
      }
    } finally {
      this.#isReading = false;
    }
  }
}
