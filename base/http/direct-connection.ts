// One connection of a client: plain requests to direct routes are served on it one after the other; with the first request
// that is anything else the connection goes to Node's HTTP for good. Must not know routes. Source: docs/decisions/0041, FC10.
import type { Socket } from 'node:net';
import { DirectRequest } from './direct-request.ts';
import { DirectResponse, type DirectSink } from './direct-response.ts';
import { readRequestHead } from './request-head.ts';

/** One request with its answer. */
export type DirectExchange = Readonly<{ request: DirectRequest; response: DirectResponse; socket: Socket }>;

/** What all connections of a server share. Units: bytes, milliseconds. */
export type DirectHost = Readonly<{
  /** The handler of `METHOD path`; it answers every exchange and does not throw. */
  find: (target: string) => ((exchange: DirectExchange) => void) | undefined;
  /** Gives the connection away, with bytes that were read from it. */
  handOver: (socket: Socket, bytes: Buffer) => void;
  /** Answers that the request took too long, and closes. */
  refuseLate: (socket: Socket) => void;
  /** The connection is nobody's here any more. */
  forget: (connection: DirectConnection) => void;
  isStopping: () => boolean;
  nowMs: () => number;
  date: () => string;
  maxHeadBytes: number;
  /** Until the first byte of a new connection; until a request is whole; between requests. */
  limits: Readonly<{ headMs: number; requestMs: number; idleMs: number }>;
}>;

/** An idle connection is kept this much longer than the client is told, as it may be on its way. Units: milliseconds. */
const IDLE_MARGIN_MS = 1_000;
/** Requests that come before the answer to the one before them wait; above this the sender does. Units: bytes. */
const MAX_AHEAD_BYTES = 65_536;

/** A connection. */
export class DirectConnection implements DirectSink {
  readonly #host: DirectHost;
  readonly #socket: Socket;
  readonly keepAliveSeconds: number;
  #current: DirectExchange | undefined;
  #ahead: Buffer[] = [];
  #aheadBytes = 0;
  #isFresh = true;
  #isLast = false;
  /** When the present state began: new, idle, or a request. */
  #sinceMs: number;

  constructor(host: DirectHost, socket: Socket) {
    this.#host = host;
    this.#socket = socket;
    this.#sinceMs = host.nowMs();
    this.keepAliveSeconds = Math.floor(host.limits.idleMs / 1_000);
    socket.on('data', this.#onData);
    socket.on('end', this.#onEnd);
    socket.on('error', this.#onError);
    socket.on('close', this.#onClose);
    socket.on('drain', this.#onDrain);
  }

  get isIdle(): boolean {
    return this.#current === undefined;
  }

  /** Ends what has taken too long. */
  look(nowMs: number): void {
    const { headMs, requestMs, idleMs } = this.#host.limits;
    const ageMs = nowMs - this.#sinceMs;
    const current = this.#current;
    if (current === undefined) {
      if (ageMs >= (this.#isFresh ? headMs : idleMs + IDLE_MARGIN_MS)) this.destroy();
    } else if (ageMs >= requestMs && !current.request.isComplete()) {
      if (current.response.headersSent) return this.destroy();
      this.#detach();
      current.request.fail();
      current.response.abandon();
      this.#host.refuseLate(this.#socket);
    }
  }

  write(bytes: Buffer | string): boolean {
    return typeof bytes === 'string' ? this.#socket.write(bytes, 'latin1') : this.#socket.write(bytes);
  }

  cork(): void {
    this.#socket.cork();
  }

  uncork(): void {
    this.#socket.uncork();
  }

  date(): string {
    return this.#host.date();
  }

  isLast(): boolean {
    return (
      this.#current?.request.head.isLast !== false || !this.#current.request.isComplete() || this.#host.isStopping()
    );
  }

  finish(isLast: boolean, done: () => void): void {
    this.#isLast = isLast;
    const finished = (): void => {
      if (this.#current === undefined) return;
      this.#current = undefined;
      done();
      this.#next();
    };
    // Mostly the kernel has taken everything at once.
    if (this.#socket.writableLength === 0) finished();
    else this.#socket.write('', (error) => (error instanceof Error ? undefined : finished()));
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #next(): void {
    if (this.#isLast || this.#host.isStopping()) {
      this.#socket.destroySoon();
      return;
    }
    this.#sinceMs = this.#host.nowMs();
    if (this.#aheadBytes === 0) return;
    // Not at once: answers that need no waiting would pile up on the stack.
    setImmediate(() => {
      if (this.#current !== undefined || this.#socket.destroyed) return;
      const bytes = Buffer.concat(this.#ahead, this.#aheadBytes);
      this.#ahead = [];
      this.#aheadBytes = 0;
      this.#socket.resume();
      if (bytes.length > 0) this.#begin(bytes);
    });
  }

  #begin(bytes: Buffer): void {
    const head = readRequestHead(bytes, this.#host.maxHeadBytes);
    const serve = head === undefined ? undefined : this.#host.find(head.target);
    if (head === undefined || serve === undefined) {
      this.#detach();
      this.#host.handOver(this.#socket, bytes);
      return;
    }
    this.#isFresh = false;
    this.#sinceMs = this.#host.nowMs();
    const request = new DirectRequest(head, (isReading) => {
      if (isReading) this.#socket.resume();
      else this.#socket.pause();
    });
    const exchange = { request, response: new DirectResponse(this), socket: this.#socket };
    this.#current = exchange;
    this.#keep(request.push(head.headers.end === bytes.length ? NOTHING : bytes.subarray(head.headers.end)));
    serve(exchange);
  }

  /** Keeps bytes of requests to come. */
  #keep(bytes: Buffer | undefined): void {
    if (bytes === undefined) return;
    this.#ahead.push(bytes);
    this.#aheadBytes += bytes.length;
    if (this.#aheadBytes > MAX_AHEAD_BYTES) this.#socket.pause();
  }

  #detach(): void {
    const socket = this.#socket;
    socket.off('data', this.#onData);
    socket.off('end', this.#onEnd);
    socket.off('error', this.#onError);
    socket.off('close', this.#onClose);
    socket.off('drain', this.#onDrain);
    this.#current = undefined;
    this.#host.forget(this);
  }

  readonly #onData = (bytes: Buffer): void => {
    if (this.#current !== undefined) this.#keep(this.#current.request.push(bytes));
    else if (this.#aheadBytes > 0) this.#keep(bytes);
    else this.#begin(bytes);
  };

  /** Nobody asks without waiting for the answer: who ends the connection has left. */
  readonly #onEnd = (): void => this.destroy();

  readonly #onError = (): void => this.destroy();

  readonly #onClose = (): void => {
    const current = this.#current;
    this.#detach();
    current?.request.fail();
    current?.response.abandon();
  };

  readonly #onDrain = (): void => {
    const response = this.#current?.response;
    if (response !== undefined) response.emit('drain');
  };
}

const NOTHING = Buffer.alloc(0);
