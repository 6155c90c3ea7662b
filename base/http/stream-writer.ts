// A bounded writer for an endless answer: it never holds more for a slow reader than its cap, and ends with the reader.
// Must not know what is sent; sse.ts and ndjson.ts do. Source: 20-control-plane §8.
import type { ServerResponse } from 'node:http';
import type { Clock } from '#base/clock.ts';

/** What one reader may leave unread. Units: bytes. Source: 20-control-plane §8. */
export const STREAM_CAP_BYTES = 262_144;
/** Silence after which a heartbeat is sent. Units: milliseconds. Source: 20-control-plane §8. */
export const STREAM_HEARTBEAT_MS = 15_000;

/** Why a stream ended. `slow`: the reader left more than the cap unread and was dropped; `revoked`: it may no longer read. */
export type StreamEnd = 'reader-left' | 'slow' | 'stopped' | 'finished' | 'revoked';

/** The writer of one stream. */
export type StreamWriter = Readonly<{
  /**
   * Sends text; the head goes out with the first. False when the stream has ended, also because this text would have
   * been above the cap: the reader was dropped then. A first text is sent whatever its size.
   */
  write: (text: string) => boolean;
  /** Resolves when the reader has taken (nearly) all: true; or false when the stream ended. For catching up on history. */
  drained: () => Promise<boolean>;
  /** Ends the stream at once, as for a reader that is too slow. */
  drop: () => void;
  /** Fires when the stream ends for any reason. */
  signal: AbortSignal;
  /** How the stream ended; undefined while it is open. */
  ended: () => StreamEnd | undefined;
}>;

/** The writer and the two ends that its owner may put to it. */
export type OpenStream = Readonly<{
  writer: StreamWriter;
  /** Whether the head was sent: afterwards no error answer is possible. */
  started: () => boolean;
  /** Ends the answer; `finished` properly, anything else by closing the connection after what was written. */
  end: (how: StreamEnd) => void;
}>;

/** What a stream is made from. `heartbeat` gives the text to send after 15 s of silence. */
export type StreamOptions = Readonly<{
  response: ServerResponse;
  clock: Clock;
  headers: Readonly<Record<string, string>>;
  heartbeat: () => string;
  heartbeatMs?: number | undefined;
  capBytes?: number | undefined;
}>;

/** A stream over a response whose head has not been sent. */
export const openStream = (options: StreamOptions): OpenStream => {
  const { response, clock } = options;
  const capBytes = options.capBytes ?? STREAM_CAP_BYTES;
  const heartbeatMs = options.heartbeatMs ?? STREAM_HEARTBEAT_MS;
  const controller = new AbortController();
  let ended: StreamEnd | undefined;
  let started = false;
  let stopHeartbeat = (): void => {};

  const end = (how: StreamEnd): void => {
    if (ended !== undefined) return;
    ended = how;
    stopHeartbeat();
    if (how === 'slow') response.destroy();
    else if (started) response.end();
    controller.abort();
  };
  const scheduleHeartbeat = (): void => {
    stopHeartbeat();
    stopHeartbeat = clock.startTimer(heartbeatMs, () => {
      write(options.heartbeat());
    });
  };
  const start = (): void => {
    started = true;
    response.socket?.setNoDelay(true);
    // Its own connection ends with it, so that a server that stops has nothing idle left to wait for.
    response.writeHead(200, { ...options.headers, connection: 'close' });
  };
  const write = (text: string): boolean => {
    if (ended !== undefined) return false;
    if (!started) start();
    const waiting = response.writableLength;
    if (waiting > 0 && waiting + Buffer.byteLength(text) > capBytes) {
      end('slow');
      return false;
    }
    response.write(text);
    scheduleHeartbeat();
    return true;
  };
  response.once('close', () => end('reader-left'));

  const drained = (): Promise<boolean> => {
    if (ended !== undefined) return Promise.resolve(false);
    if (!response.writableNeedDrain) return Promise.resolve(true);
    return new Promise((resolve) => {
      const settle = (): void => {
        response.off('drain', settle);
        controller.signal.removeEventListener('abort', settle);
        resolve(ended === undefined);
      };
      response.once('drain', settle);
      controller.signal.addEventListener('abort', settle, { once: true });
    });
  };

  return {
    writer: { write, drained, drop: () => end('slow'), signal: controller.signal, ended: () => ended },
    started: () => started,
    end,
  };
};
