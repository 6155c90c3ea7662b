// The rules of the fault proxy: which calls they are about and what happens to them. Must not know sockets.
import type { KubeCall } from './kube-call.ts';

/** Which calls a rule is about; what is absent matches everything. */
export type FaultMatch = Readonly<{
  verb?: KubeCall['verb'] | readonly KubeCall['verb'][];
  resource?: string;
  subresource?: string;
  namespace?: string;
  name?: string;
  /** True: only requests that change something. */
  mutates?: boolean;
  /** First call that is hit, counted from 1 among those that match. */
  from?: number;
  /** Calls that are hit; every further one when absent is 1. */
  count?: number;
  /** Every so many of those that match; 1 when absent. */
  every?: number;
}>;

/** What happens to a call. Acts on a watch count real events, not bookmarks. */
export type FaultAct =
  /** The connection is reset; a watch after so many events. The request does not reach the server. */
  | Readonly<{ kind: 'reset'; afterEvents?: number }>
  /** A watch ends cleanly after so many events, or after a time. */
  | Readonly<{ kind: 'close'; afterEvents?: number; afterMs?: number }>
  /** A watch is cut in the middle of the line of event n + 1. */
  | Readonly<{ kind: 'truncate'; afterEvents: number }>
  /** Nothing comes and nothing ends until the rule is released; a watch after so many events. */
  | Readonly<{ kind: 'hold'; afterEvents?: number }>
  /** The request waits before it is forwarded. */
  | Readonly<{ kind: 'delay'; ms: number }>
  /** An answer of the proxy's own. */
  | Readonly<{ kind: 'status'; code: number; reason?: string; headers?: Readonly<Record<string, string>> }>
  /** 410: as a status, or as an ERROR event in a 200 stream. */
  | Readonly<{ kind: 'gone'; as: 'status' | 'event'; afterEvents?: number }>
  /** A watch gets an ERROR event of this code instead of its next event, and ends. */
  | Readonly<{ kind: 'error-event'; code: number }>
  /** The connection ends before the request reaches the server. */
  | Readonly<{ kind: 'refuse-before' }>
  /** The server commits, we hear nothing. */
  | Readonly<{ kind: 'commit-then-drop' }>
  /** The server commits, we hear 504. */
  | Readonly<{ kind: 'commit-then-504' }>
  /** Events of a watch for which `event` is true do not arrive. */
  | Readonly<{ kind: 'swallow'; event: (type: string, name: string) => boolean }>
  /** After each event of a watch come all events so far once more. */
  | Readonly<{ kind: 'repeat' }>
  /** Calls back before the request is forwarded or after the server's answer, and then drops the connection. */
  | Readonly<{ kind: 'kill'; at: 'before' | 'after'; kill: (call: RecordedCall) => void }>;

/** One call that the proxy saw. */
export type RecordedCall = KubeCall &
  Readonly<{
    n: number;
    atMs: number;
    url: string;
    userAgent: string;
    /** Body of a request that changes something. */
    body: unknown;
  }> & {
    /** Status that the server gave; 0 when it was not asked or did not answer. */
    serverStatus: number;
    /** Acts that hit this call. */
    acts: FaultAct['kind'][];
    /** Real events of a watch that were passed on. */
    events: number;
    /** True once the answer has ended or was cut. */
    answered: boolean;
  };

/** A rule with its counters. `over` once it was released. */
export type Rule = {
  match: FaultMatch;
  act: FaultAct;
  seen: number;
  hits: number;
  over: boolean;
  released: Promise<void>;
  release: () => void;
};
/** True when the rule is about this call. */
export const matches = (match: FaultMatch, call: KubeCall): boolean => {
  const verbs = match.verb === undefined ? undefined : [match.verb].flat();
  return (
    (verbs === undefined || verbs.includes(call.verb)) &&
    (match.resource === undefined || match.resource === call.resource) &&
    (match.subresource === undefined || match.subresource === call.subresource) &&
    (match.namespace === undefined || match.namespace === call.namespace) &&
    (match.name === undefined || match.name === call.name) &&
    (match.mutates === undefined || match.mutates === call.mutates)
  );
};
