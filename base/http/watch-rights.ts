// Whether the caller of an open stream may still have it: asked again and again while it is open. Must not know what a
// stream is or how a guard decides. Source: 20-control-plane §1, faults §2 (a revocation takes effect within 5 s).
import type { CancelTimer } from '#base/clock.ts';
import { type BeeuniError, ForbiddenError, UnauthenticatedError, UnavailableError } from '#base/errors.ts';
import type { Guard, GuardedCall } from './mount.ts';
import type { HttpServer } from './server.ts';

/** Time between two looks; with the guard's own memory and the look itself below 5 s. Units: milliseconds. */
export const RECHECK_MS = 4_000;
/** The same after a look that was not answered. Units: milliseconds. */
const RETRY_MS = 1_000;
/** How long a stream goes on while nobody can say whether it may. Units: milliseconds. */
export const UNKNOWN_RIGHTS_MS = 60_000;

/**
 * Watches one stream until the function that it gives back is called. `onLost` is called at most once: with 401 or 403 as
 * a new call would get it, or with 503 when the guard could not answer for a minute.
 */
export const watchRights = <C>(
  server: Pick<HttpServer, 'clock'>,
  guard: Guard<C>,
  call: GuardedCall,
  onLost: (error: BeeuniError) => void,
): (() => void) => {
  const { clock } = server;
  let isOver = false;
  let cancel: CancelTimer = () => {};
  let knownMs = clock.monotonicMs();

  const ask = async (): Promise<void> => {
    if (guard.recheck !== undefined) return guard.recheck(call);
    await guard.authorize(call, await guard.authenticate(call));
  };
  const look = async (): Promise<void> => {
    let nextMs = RECHECK_MS;
    try {
      await ask();
      knownMs = clock.monotonicMs();
    } catch (error) {
      nextMs = RETRY_MS;
      const isRefused = error instanceof UnauthenticatedError || error instanceof ForbiddenError;
      const isUnknown = error instanceof UnavailableError && clock.monotonicMs() - knownMs >= UNKNOWN_RIGHTS_MS;
      if ((isRefused || isUnknown) && !isOver) {
        isOver = true;
        onLost(error);
      }
    }
    if (!isOver) schedule(nextMs);
  };
  const schedule = (afterMs: number): void => {
    cancel = clock.startTimer(afterMs, () => void look());
  };
  schedule(RECHECK_MS);
  return () => {
    isOver = true;
    cancel();
  };
};
