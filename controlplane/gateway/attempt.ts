// One call to one provider with one key: the answer passes byte for byte as it arrives, but for the key, a copy is metered, and
// the three time limits and the client's leaving end it at once. Nothing is sent before the first byte of a good answer came.
// Must not know models, budgets or what comes after an attempt. Source: 20-control-plane §5, FC1 to FC6.
import type { Clock } from '#base/clock.ts';
import type { ExchangeResponse } from '#base/http/exchange.ts';
import type { AnswerHeaders } from './answer-parser.ts';
import type { UpstreamCall, UpstreamHandler } from './connections.ts';
import type { KeyMask, MaskOf } from './key-mask.ts';
import type { Meter, Metered } from './meter.ts';
import { makeBodyMeter, makeStreamMeter } from './stream-meter.ts';
import type { UpstreamSlot } from './upstream.ts';
import type { CallEnd, CallLimits, CallWatch, StartWatch } from './watch.ts';
import type { Wire } from './wires.ts';
import type { UpstreamRefusal } from './wording.ts';

/** How an attempt ended. Nothing was sent to the client in `refused` and `silent`. */
export type AttemptEnd =
  /** The whole answer was sent, or leaves at the end of this turn. */
  | Readonly<{ kind: 'whole'; metered: Metered; firstByteMs: number }>
  /** A part was sent; the response is still open. */
  | Readonly<{ kind: 'broken'; metered: Metered; firstByteMs: number; isStream: boolean; why: CallEnd | undefined }>
  | Readonly<{ kind: 'refused'; refusal: UpstreamRefusal }>
  | Readonly<{ kind: 'silent'; why: CallEnd | undefined; error: unknown; metered: Metered | undefined }>;

/** What an attempt is made with; it gives its place back when it ends. `headers`: lines with their ends. `startedMs`: when the call began. */
export type AttemptRequest = Readonly<{
  wire: Wire;
  slot: UpstreamSlot;
  headers: string;
  /** The key that is in the headers: no answer may show it. */
  key: Readonly<{ secret: string }> | undefined;
  body: readonly Buffer[];
  limits: CallLimits;
  response: ExchangeResponse;
  /** Headers of the answer besides its type and length, as a flat list. */
  answerHeaders: readonly string[];
  startedMs: number;
}>;

/** A running attempt; `end` does not reject. `leave` is to be called when the client is gone, or may not go on. */
export type Attempt = Readonly<{ end: Promise<AttemptEnd>; leave: (why: 'client_left' | 'revoked') => void }>;

/** What attempts are started with. */
export type AttemptPorts = Readonly<{
  clock: Pick<Clock, 'monotonicMs'>;
  startWatch: StartWatch;
  maskOf: MaskOf;
  /** Ends a response whose head is written, at the end of the turn. */
  endLater: (answer: WholeAnswer) => void;
}>;

/** A response and its whole body. */
export type WholeAnswer = Readonly<{ response: ExchangeResponse; body: Buffer }>;

/** Most of an error answer that is read. Units: bytes. */
const MAX_ERROR_BYTES = 65_536;
/** A body up to this size is kept until it is whole, and then sent in one piece. Units: bytes. */
const MAX_HELD_BYTES = 65_536;

const aborted = new Error('the attempt was ended');
const incomplete = new Error('the answer of the provider is not complete');
/** What came to its end as a body and is no JSON object, or says that it is an error. */
export const invalidAnswer = new Error("the provider's answer is not valid");

type Refused = { status: number; retryAfter: string | undefined; parts: Buffer[]; bytes: number };

/** A class, and not a closure, as there is one for every call and most of its members are functions. */
class RunningAttempt implements Attempt, UpstreamHandler {
  readonly end: Promise<AttemptEnd>;
  readonly #request: AttemptRequest;
  readonly #clock: AttemptPorts['clock'];
  readonly #endLater: AttemptPorts['endLater'];
  readonly #watch: CallWatch;
  readonly #mask: KeyMask;
  #settle: (end: AttemptEnd) => void = () => undefined;
  #call: UpstreamCall | undefined;
  #meter: Meter | undefined;
  #isStream = false;
  #firstByteMs: number | undefined;
  #refused: Refused | undefined;
  #held: Buffer[] = [];
  #heldBytes = 0;
  #isWaiting = false;
  #goOn: (() => void) | undefined;

  constructor(ports: AttemptPorts, request: AttemptRequest) {
    this.#request = request;
    this.#clock = ports.clock;
    this.#endLater = ports.endLater;
    this.#mask = ports.maskOf(request.key);
    this.end = new Promise((resolve) => {
      this.#settle = resolve;
    });
    this.#watch = ports.startWatch(request.limits, () => this.#abort());
  }

  start(): void {
    const { slot, wire, headers, body } = this.#request;
    this.#call = slot.send({ path: slot.path + wire.path, headers, body }, this);
  }

  leave(why: 'client_left' | 'revoked'): void {
    this.#watch.end(why);
  }

  onHead(status: number, headers: AnswerHeaders): void {
    if (status !== 200) {
      this.#refused = {
        status,
        retryAfter: headers.get('retry-after'),
        parts: [],
        bytes: 0,
      };
      return;
    }
    const type = headers.get('content-type');
    const { reported } = this.#request.wire;
    this.#isStream = type?.startsWith('text/event-stream') === true;
    this.#meter = this.#isStream ? makeStreamMeter(reported) : makeBodyMeter(reported);
  }

  onBody(chunk: Buffer): void {
    this.#watch.progress();
    const refused = this.#refused;
    if (refused !== undefined) {
      refused.bytes += chunk.length;
      if (refused.bytes <= MAX_ERROR_BYTES) refused.parts.push(chunk);
      else this.#call?.abort(aborted);
      return;
    }
    this.#firstByteMs ??= this.#clock.monotonicMs() - this.#request.startedMs;
    this.#pass(this.#mask.push(chunk));
  }

  #pass(chunk: Buffer): void {
    if (chunk.length === 0) return;
    this.#meter?.push(chunk);
    if (this.#request.response.headersSent) return this.#send(chunk);
    this.#held.push(chunk);
    this.#heldBytes += chunk.length;
    if (!this.#isStream && this.#heldBytes <= MAX_HELD_BYTES) return;
    this.#head();
    for (const part of this.#held) this.#send(part);
    this.#held = [];
  }

  onEnd(): void {
    if (this.#refused !== undefined) return this.#finishRefused(this.#refused);
    this.#pass(this.#mask.flush());
    const metered = this.#meter?.result();
    const firstByteMs = this.#firstByteMs;
    if (metered === undefined || firstByteMs === undefined || !metered.isEnded || metered.hasError) {
      return this.#stopped(this.#isStream ? incomplete : invalidAnswer, metered);
    }
    const { response } = this.#request;
    if (response.headersSent) {
      response.end();
    } else {
      this.#head(this.#heldBytes);
      const [first] = this.#held;
      const body = this.#held.length === 1 && first !== undefined ? first : Buffer.concat(this.#held, this.#heldBytes);
      this.#endLater({ response, body });
    }
    this.#finish({ kind: 'whole', metered, firstByteMs });
  }

  onError(error: Error): void {
    this.#stopped(error);
  }

  #abort(): void {
    this.#call?.abort(aborted);
  }

  #head(contentLength?: number): void {
    const { response, answerHeaders } = this.#request;
    const list = this.#isStream
      ? ['content-type', 'text/event-stream; charset=utf-8', 'x-accel-buffering', 'no', ...answerHeaders]
      : ['content-type', 'application/json', ...answerHeaders];
    if (contentLength !== undefined) list.push('content-length', String(contentLength));
    response.writeHead(200, list);
  }

  #send(chunk: Buffer): void {
    const { response } = this.#request;
    if (response.write(chunk) || this.#isWaiting) return;
    this.#isWaiting = true;
    if (this.#goOn === undefined) {
      this.#goOn = () => {
        this.#isWaiting = false;
        this.#watch.progress();
        this.#call?.resume();
      };
      response.on('drain', this.#goOn);
    }
    this.#call?.pause();
  }

  #finish(end: AttemptEnd): void {
    this.#watch.stop();
    if (this.#goOn !== undefined) this.#request.response.off('drain', this.#goOn);
    this.#request.slot.release();
    this.#settle(end);
  }

  #finishRefused({ status, retryAfter, parts }: Refused): void {
    const body = Buffer.concat([this.#mask.push(Buffer.concat(parts)), this.#mask.flush()]).toString('utf8');
    this.#finish({ kind: 'refused', refusal: { status, retryAfter, body } });
  }

  /** It ended without a whole good answer. */
  #stopped(error: unknown, result?: Metered): void {
    const why = this.#watch.ended();
    if (this.#refused !== undefined && why === undefined) return this.#finishRefused(this.#refused);
    const metered = result ?? this.#meter?.result();
    const firstByteMs = this.#firstByteMs;
    // What was held was not sent, so another attempt may follow.
    if (metered === undefined || firstByteMs === undefined || !this.#request.response.headersSent) {
      return this.#finish({ kind: 'silent', why, error, metered });
    }
    this.#finish({ kind: 'broken', metered, firstByteMs, isStream: this.#isStream, why });
  }
}

/** Starts an attempt. */
export const startAttempt = (ports: AttemptPorts, request: AttemptRequest): Attempt => {
  const attempt = new RunningAttempt(ports, request);
  attempt.start();
  return attempt;
};
