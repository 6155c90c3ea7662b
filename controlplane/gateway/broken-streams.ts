// What a stream that breaks ends with. Once a part of an answer went out nothing can be tried elsewhere; the harness may ask again,
// which often helps after a cut. One that breaks again, or that went silent until its time was over, ends the turn: harnesses
// would go on asking for minutes. Must not know sockets. Source: FC1, FC2, harness-runtimes §2.8.
import type { Clock } from '#base/clock.ts';
import type { SaidError } from './error-shape.ts';
import type { CallEnd } from './watch.ts';

/** A stream that broke so long after another one of its session is one that breaks again. Units: milliseconds. */
export const AGAIN_MS = 300_000;
/** Sessions that are remembered. */
const MAX_REMEMBERED = 2_000;

/** The memory of one replica. */
export type BrokenStreams = Readonly<{
  /** The error for a stream of the session that broke. `why`: the time limit that was over; undefined for a cut. */
  broke: (sessionUid: string, why: CallEnd | undefined) => SaidError;
  /** An answer of the session came whole. */
  whole: (sessionUid: string) => void;
}>;

const CUT = 'the stream of the provider ended before its answer was complete';

/** Makes it. */
export const makeBrokenStreams = (clock: Pick<Clock, 'monotonicMs'>): BrokenStreams => {
  const brokeAt = new Map<string, number>();
  return {
    broke: (sessionUid, why) => {
      const nowMs = clock.monotonicMs();
      const before = brokeAt.get(sessionUid);
      const isAgain = before !== undefined && nowMs - before <= AGAIN_MS;
      brokeAt.delete(sessionUid);
      brokeAt.set(sessionUid, nowMs);
      const [oldest] = brokeAt.keys();
      if (brokeAt.size > MAX_REMEMBERED && oldest !== undefined) brokeAt.delete(oldest);
      const final = { status: 400, type: 'invalid_request_error' } as const;
      if (why !== undefined) {
        const message =
          why === 'total'
            ? 'the time limit of the call is over, and the answer of the provider is not complete'
            : 'the provider stopped sending before its answer was complete';
        return { ...final, code: 'provider_timed_out', message };
      }
      if (isAgain) return { ...final, code: 'provider_failed', message: `${CUT}, more than once` };
      return { status: 502, type: 'server_error', code: 'provider_failed', message: `${CUT}; try again later` };
    },
    whole: (sessionUid) => {
      if (brokeAt.size > 0) brokeAt.delete(sessionUid);
    },
  };
};
