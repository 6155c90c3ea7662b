// One call to one provider with one key: the answer passes byte for byte as it arrives, a copy is metered, and the three
// time limits and the client's leaving end it at once. Nothing is sent before the first byte of a good answer came.
// Must not know models, budgets or what comes after an attempt. Source: 20-control-plane §5, FC1 to FC6.
import type { ServerResponse } from 'node:http';
import type { Dispatcher } from 'undici';
import type { Clock } from '#base/clock.ts';
import type { Meter, Metered } from './meter.ts';
import { makeBodyMeter, makeStreamMeter } from './stream-meter.ts';
import type { UpstreamSlot } from './upstream.ts';
import { type CallEnd, type CallLimits, watchCall } from './watch.ts';
import type { Wire } from './wires.ts';
import type { UpstreamRefusal } from './wording.ts';

/** How an attempt ended. Nothing was sent to the client in `refused` and `silent`. */
export type AttemptEnd =
  /** The whole answer was sent and the response was ended. */
  | Readonly<{ kind: 'whole'; metered: Metered; firstByteMs: number }>
  /** A part was sent; the response is still open. */
  | Readonly<{ kind: 'broken'; metered: Metered; firstByteMs: number; isStream: boolean; why: CallEnd | undefined }>
  | Readonly<{ kind: 'refused'; refusal: UpstreamRefusal }>
  | Readonly<{ kind: 'silent'; why: CallEnd | undefined; error: unknown; metered: Metered | undefined }>;

/** What an attempt is made with. `headers`: a flat list of names and values. `startedMs`: when the call began. */
export type AttemptRequest = Readonly<{
  wire: Wire;
  slot: UpstreamSlot;
  headers: string[];
  body: Buffer;
  limits: CallLimits;
  response: ServerResponse;
  /** Headers of the answer besides its type and length, as a flat list. */
  answerHeaders: readonly string[];
  startedMs: number;
}>;

/** A running attempt; `leave` is to be called when the client is gone. */
export type Attempt = Readonly<{ end: Promise<AttemptEnd>; leave: () => void }>;

/** Most of an error answer that is read. Units: bytes. */
const MAX_ERROR_BYTES = 65_536;
/** A body of this size is kept until it is whole, and then sent in one piece. Units: bytes. */
const MAX_HELD_BYTES = 65_536;

const aborted = new Error('the attempt was ended');

/** Starts an attempt. `end` does not reject. */
export const startAttempt = (clock: Clock, request: AttemptRequest): Attempt => {
  const { response, wire } = request;
  let controller: Dispatcher.DispatchController | undefined;
  let meter: Meter | undefined;
  let isStream = false;
  let firstByteMs: number | undefined;
  let refusal: { status: number; retryAfter: string | undefined; parts: Buffer[]; bytes: number } | undefined;
  let held: Buffer[] = [];
  let heldBytes = 0;
  let isWaiting = false;
  let settle: (end: AttemptEnd) => void = () => undefined;
  const end = new Promise<AttemptEnd>((resolve) => {
    settle = resolve;
  });

  const finish = (result: AttemptEnd): void => {
    watch.stop();
    response.off('drain', goOn);
    settle(result);
  };
  const goOn = (): void => {
    if (!isWaiting) return;
    isWaiting = false;
    watch.progress();
    controller?.resume();
  };
  const head = (contentLength?: number): void => {
    response.writeHead(200, [
      'content-type',
      isStream ? 'text/event-stream; charset=utf-8' : 'application/json',
      ...(contentLength === undefined ? [] : ['content-length', String(contentLength)]),
      ...(isStream ? ['x-accel-buffering', 'no'] : []),
      ...request.answerHeaders,
    ]);
  };
  const send = (chunk: Buffer): void => {
    if (!response.write(chunk) && !isWaiting) {
      isWaiting = true;
      controller?.pause();
    }
  };
  const start = (): void => {
    head();
    response.on('drain', goOn);
    for (const part of held) send(part);
    held = [];
  };
  const refused = (status: number): void => {
    const text = refusal === undefined ? '' : Buffer.concat(refusal.parts).toString('utf8');
    finish({ kind: 'refused', refusal: { status, retryAfter: refusal?.retryAfter, body: text } });
  };
  const stopped = (error: unknown): void => {
    const why = watch.ended();
    if (refusal !== undefined && why === undefined) return refused(refusal.status);
    const metered = meter?.result();
    // What was held was not sent, so another attempt may follow.
    if (metered === undefined || firstByteMs === undefined || !response.headersSent) {
      return finish({ kind: 'silent', why, error, metered });
    }
    finish({ kind: 'broken', metered, firstByteMs, isStream, why });
  };

  const watch = watchCall(clock, request.limits, () => {
    if (controller === undefined) stopped(aborted);
    else controller.abort(aborted);
  });

  const handler: Dispatcher.DispatchHandler = {
    onRequestStart: (started) => {
      controller = started;
      if (watch.ended() !== undefined) started.abort(aborted);
    },
    onResponseStart: (_controller, status, headers) => {
      if (status < 200) return;
      const type = headers['content-type'];
      if (status !== 200) {
        const retryAfter = headers['retry-after'];
        refusal = {
          status,
          retryAfter: retryAfter === undefined ? undefined : String(retryAfter),
          parts: [],
          bytes: 0,
        };
        return;
      }
      isStream = typeof type === 'string' && type.startsWith('text/event-stream');
      meter = isStream ? makeStreamMeter(wire.reported) : makeBodyMeter(wire.reported);
    },
    onResponseData: (_controller, chunk) => {
      watch.progress();
      if (refusal !== undefined) {
        refusal.bytes += chunk.length;
        if (refusal.bytes <= MAX_ERROR_BYTES) refusal.parts.push(chunk);
        else controller?.abort(aborted);
        return;
      }
      firstByteMs ??= clock.monotonicMs() - request.startedMs;
      meter?.push(chunk);
      if (response.headersSent) return send(chunk);
      if (!isStream && heldBytes + chunk.length <= MAX_HELD_BYTES) {
        held.push(chunk);
        heldBytes += chunk.length;
        return;
      }
      held.push(chunk);
      start();
    },
    onResponseEnd: () => {
      if (refusal !== undefined) return refused(refusal.status);
      const metered = meter?.result();
      if (metered === undefined || firstByteMs === undefined || !metered.isEnded || metered.hasError) {
        return stopped(new Error('the answer of the provider is not complete'));
      }
      if (response.headersSent) {
        response.end();
      } else {
        head(heldBytes);
        response.end(held.length === 1 ? held[0] : Buffer.concat(held, heldBytes));
      }
      finish({ kind: 'whole', metered, firstByteMs });
    },
    onResponseError: (_controller, error) => stopped(error),
  };

  try {
    request.slot.dispatcher.dispatch(
      {
        path: request.slot.path + wire.path,
        method: 'POST',
        headers: request.headers,
        body: request.body,
      } as Dispatcher.DispatchOptions,
      handler,
    );
  } catch (error) {
    stopped(error);
  }
  return { end, leave: () => watch.end('client_left') };
};
