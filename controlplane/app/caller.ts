// Who calls the control plane, once it is proven. Must not know how it is proven.

/** A caller as the listener recognised it. Source: D5, D6, D7, 20-control-plane §1. */
export type Caller =
  | Readonly<{ kind: 'anyone' }>
  | Readonly<{
      kind: 'user';
      username: string;
      uid: string;
      groups: readonly string[];
      extra: Readonly<Record<string, readonly string[]>>;
    }>
  | Readonly<{ kind: 'pod'; namespace: string; podName: string; podUid: string; serviceAccount: string }>
  | Readonly<{
      kind: 'sandbox';
      sessionUid: string;
      generation: number;
      podUid: string;
      namespace: string;
      projectUid: string;
    }>
  | Readonly<{ kind: 'operator'; username: string }>;

/** A caller of one kind. */
export type CallerOf<K extends Caller['kind']> = Extract<Caller, { kind: K }>;

/** Narrows a caller to the kind that the route's guard admitted. Throws Error (a bug) for another. */
export const callerOf = <K extends Caller['kind']>(caller: Caller, kind: K): CallerOf<K> => {
  if (caller.kind !== kind) throw new Error(`the guard admitted a caller of kind ${caller.kind}, not ${kind}`);
  return caller as CallerOf<K>;
};

/** One short text for audit rows and rate limits: kind and name, never a credential. */
export const callerName = (caller: Caller): string => {
  switch (caller.kind) {
    case 'anyone':
      return 'anyone';
    case 'user':
      return `user:${caller.username}`;
    case 'pod':
      return `pod:${caller.namespace}/${caller.podName}`;
    case 'sandbox':
      return `sandbox:${caller.sessionUid}`;
    case 'operator':
      return `operator:${caller.username}`;
  }
};
