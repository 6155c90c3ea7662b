// Bounds how many event streams are open at once on a replica. Must not know what is streamed.
import { LimitError } from '#base/errors.ts';
import type { Route } from '#schema/define-route.ts';
import type { SseHandler } from './handler.ts';

/** The bound, and who is told the number of open streams when it changes and how each one ended. */
export type StreamLimit = Readonly<{
  maxStreams: number;
  observe: Readonly<{ open: (count: number) => void; ended: (how: string) => void }>;
}>;

/** The handler within the bound. Errors: LimitError `too_many_streams` before anything is looked up. */
export const limitStreams = <R extends Route>(handler: SseHandler<R>, limit: StreamLimit): SseHandler<R> => {
  const { maxStreams, observe } = limit;
  let open = 0;
  const change = (by: number): void => {
    open += by;
    observe.open(open);
  };
  return async (request, writer) => {
    if (open >= maxStreams) {
      throw new LimitError('too_many_streams', `${maxStreams} streams are open; try again later`, {
        retryAfterMs: 5_000,
      });
    }
    change(1);
    try {
      await handler(request, writer);
    } finally {
      change(-1);
      observe.ended(writer.ended() ?? 'finished');
    }
  };
};
