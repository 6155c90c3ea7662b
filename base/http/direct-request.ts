// A request on a connection of our own: its head where it lies, and its body as it arrives. Must not know sockets.
import type { ExchangeRequest } from './exchange.ts';
import type { RequestHead } from './request-head.ts';

/** Part of a body that is kept before the handler asks for it; more waits in the socket. Units: bytes. */
const MAX_UNASKED_BYTES = 65_536;

type Reader = Readonly<{ resolve: (body: Buffer) => void; reject: (error: Error) => void }>;

/** One request. `setReading` holds up the sender, and lets it go on. */
export class DirectRequest implements ExchangeRequest {
  readonly head: RequestHead;
  readonly #setReading: (isReading: boolean) => void;
  #parts: Buffer[] = [];
  #bytes = 0;
  #reader: Reader | undefined;
  #isGone = false;

  constructor(head: RequestHead, setReading: (isReading: boolean) => void) {
    this.head = head;
    this.#setReading = setReading;
  }

  header(name: string): string | undefined {
    return this.head.headers.get(name);
  }

  countOf(name: string): number {
    return this.head.headers.count(name);
  }

  isComplete(): boolean {
    return this.#bytes === this.head.contentLength;
  }

  readBody(maxBytes: number): Promise<Buffer | undefined> | Buffer | undefined {
    if (this.head.contentLength > maxBytes) return undefined;
    if (this.isComplete()) return this.#take();
    if (this.#isGone) return Promise.reject(this.#left());
    this.#setReading(true);
    return new Promise((resolve, reject) => {
      this.#reader = { resolve, reject };
    });
  }

  /** Takes bytes that arrived; gives back those that are not of this request. */
  push(bytes: Buffer): Buffer | undefined {
    const missing = this.head.contentLength - this.#bytes;
    if (bytes.length === 0 || missing === 0) return bytes.length === 0 ? undefined : bytes;
    const own = bytes.length <= missing ? bytes : bytes.subarray(0, missing);
    this.#parts.push(own);
    this.#bytes += own.length;
    if (this.isComplete()) this.#reader?.resolve(this.#take());
    else if (this.#reader === undefined && this.#bytes > MAX_UNASKED_BYTES) this.#setReading(false);
    return own.length === bytes.length ? undefined : bytes.subarray(own.length);
  }

  /** The sender has left. */
  fail(): void {
    this.#isGone = true;
    this.#reader?.reject(this.#left());
  }

  #left(): Error {
    return new Error('the request ended before its body was complete');
  }

  #take(): Buffer {
    const [first] = this.#parts;
    const body = this.#parts.length === 1 && first !== undefined ? first : Buffer.concat(this.#parts, this.#bytes);
    this.#parts = [];
    return body;
  }
}
