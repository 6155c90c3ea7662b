// What a controller is: observe, plan, perform over one kind. Types only; runner.ts runs one.
// Must not know any kind.

import type { BeeuniError } from '#base/errors.ts';
import type { EventNote, Regarding } from '#kube/events.ts';

/** Key of an object: `namespace/name`. */
export type Key = string;

/** What a pass wants. */
export type Plan<Action, Status> = Readonly<{
  /** Performed in order; the first error ends them. */
  actions: readonly Action[];
  /** The whole status, from what was observed alone; undefined: leave the stored one as it is. */
  status: Status | undefined;
  /** True while the pass only moves on to the next one: the status waits for a moment that matters. Source: K27. */
  inTransit: boolean;
  /** Written after the status was, so that a repeated pass does not repeat them. */
  events: readonly EventNote[];
  /** Look again after this time. Units: milliseconds; 0: at once; undefined: wait for a change. */
  recheckAfterMs: number | undefined;
}>;

/** What a failed action means for the status; undefined: nothing, try again. */
export type FailureAnswer<Status> = Readonly<{
  status: Status;
  events: readonly EventNote[];
  recheckAfterMs: number | undefined;
}>;

/** How different two statuses are. Major changes are written at once, minor ones are gathered. Source: K27. */
export type StatusChange = 'none' | 'minor' | 'major';

/** One rule of RBAC that a controller needs, as the chart writes it. */
export type RbacRule = Readonly<{
  apiGroups: readonly string[];
  resources: readonly string[];
  verbs: readonly string[];
}>;

/** One controller. `plan` and `statusOnFailure` are pure. */
export type Controller<Observed, Action extends Readonly<{ kind: string }>, Status> = Readonly<{
  name: 'project' | 'session';
  /** What is there now; undefined: nothing of this name, forget the key. */
  observe: (key: Key, signal: AbortSignal) => Promise<Observed | undefined>;
  plan: (observed: Observed) => Plan<Action, Status>;
  perform: (observed: Observed, action: Action, signal: AbortSignal) => Promise<void>;
  /** What a refused action comes to. */
  statusOnFailure: (observed: Observed, action: Action, error: BeeuniError) => FailureAnswer<Status> | undefined;
  /** Status that says so, `Ready` False: the pass cannot succeed until something changes. */
  stalled: (observed: Observed, error: BeeuniError | undefined) => Status;
  storedStatus: (observed: Observed) => Status | undefined;
  compare: (stored: Status | undefined, wanted: Status) => StatusChange;
  writeStatus: (observed: Observed, status: Status, signal: AbortSignal) => Promise<void>;
  regarding: (observed: Observed) => Regarding;
}>;
