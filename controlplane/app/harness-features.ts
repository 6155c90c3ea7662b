// What the harness of a session offers, as its newest report said, and questions to it. Here and nowhere else the control
// plane turns a missing feature into 501, or 404 for a document, and a sandbox that does not run into 503 or 409.
// Must not know SQL or HTTP. Source: A30, A62 to A64, A144.
import {
  ConflictError,
  ForbiddenError,
  NotFoundError,
  UnauthenticatedError,
  UnavailableError,
  UnsupportedError,
} from '#base/errors.ts';
import type { RouteResult } from '#base/http/client.ts';
import type { Route, RouteInput } from '#schema/define-route.ts';
import type { Session } from '#schema/resources/session.ts';
import { runtimeSupports } from '#schema/rules/runtime-supports.ts';
import type { Capability } from '#schema/wire/runtime.ts';

/** What features need. */
export type HarnessFeaturesPorts = Readonly<{
  /** Ids that the session's newest harness reported; undefined when none ever did. */
  capabilities: (sessionUid: string) => Promise<readonly string[] | undefined>;
  /** Asks the daemon. Errors: UnavailableError, and those of the route. */
  ask: <R extends Route>(
    sessionUid: string,
    route: R,
    input: RouteInput<R>,
    signal?: AbortSignal,
  ) => Promise<RouteResult<R>['body']>;
  /** Wishes for a start of a session that sleeps. */
  wake: (session: Session) => Promise<void>;
}>;

/** The functions. Errors of all: UnsupportedError `feature_not_supported`, NotFoundError `not_found` for a document. */
export type HarnessFeatures = Readonly<{
  supports: (session: Session, capability: Capability) => Promise<boolean>;
  require: (session: Session, capability: Capability) => Promise<void>;
  /**
   * Asks the running harness; a session that sleeps is woken. Errors besides: UnavailableError `runtime_not_ready`,
   * ConflictError `session_suspended`, and those of the route.
   */
  ask: <R extends Route>(
    session: Session,
    capability: Capability,
    route: R,
    input: RouteInput<R>,
    signal?: AbortSignal,
  ) => Promise<RouteResult<R>['body']>;
  /** Like `ask`; undefined when the sandbox does not run now, which it is left to. */
  askIfRunning: <R extends Route>(
    session: Session,
    capability: Capability,
    route: R,
    input: RouteInput<R>,
    signal?: AbortSignal,
  ) => Promise<RouteResult<R>['body'] | undefined>;
}>;

/** Features that are a document: a harness without it has no such thing, which is 404. Source: A64. */
const DOCUMENTS: ReadonlySet<Capability> = new Set(['session.config']);

/** Makes the functions. */
export const makeHarnessFeatures = (ports: HarnessFeaturesPorts): HarnessFeatures => {
  const supports = async ({ metadata }: Session, capability: Capability): Promise<boolean> =>
    runtimeSupports(await ports.capabilities(metadata.uid), capability);

  const require = async (session: Session, capability: Capability): Promise<void> => {
    if (await supports(session, capability)) return;
    const { name } = session.metadata;
    if (DOCUMENTS.has(capability)) {
      throw new NotFoundError('not_found', `the harness of session ${name} has no such document (${capability})`);
    }
    throw new UnsupportedError('feature_not_supported', `the harness of session ${name} does not offer ${capability}`, {
      details: { capability },
    });
  };

  const isSleeping = (error: unknown): error is UnavailableError =>
    error instanceof UnavailableError && (error.code === 'runtime_not_ready' || error.code === 'sandbox_unreachable');

  /** What the daemon thinks of our own credential is nothing that the caller can mend. */
  const asked = async <R extends Route>(
    session: Session,
    route: R,
    input: RouteInput<R>,
    signal: AbortSignal | undefined,
  ): Promise<RouteResult<R>['body']> => {
    try {
      return await ports.ask(session.metadata.uid, route, input, signal);
    } catch (error) {
      if (!(error instanceof UnauthenticatedError || error instanceof ForbiddenError)) throw error;
      throw new UnavailableError('sandbox_unreachable', 'the sandbox refused the control plane', { cause: error });
    }
  };

  return {
    supports,
    require,
    ask: async (session, capability, route, input, signal) => {
      await require(session, capability);
      try {
        return await asked(session, route, input, signal);
      } catch (error) {
        if (!isSleeping(error)) throw error;
        // What is asked of the sandbox says why there is none.
        if (session.spec.operatingMode === 'Suspended') throw new ConflictError('session_suspended', error.message);
        await ports.wake(session);
        throw new UnavailableError('runtime_not_ready', error.message, { cause: error, retryAfterMs: 2_000 });
      }
    },
    askIfRunning: async (session, capability, route, input, signal) => {
      await require(session, capability);
      try {
        return await asked(session, route, input, signal);
      } catch (error) {
        if (isSleeping(error)) return undefined;
        throw error;
      }
    },
  };
};
