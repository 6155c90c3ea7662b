// Finds out who calls, by what the route asks for: a person's token, a pod's, the operator's, or a session credential.
// Must not know how tokens are reviewed or credentials stored. Source: D5, D6, D7, 20-control-plane §1.
import { ForbiddenError, UnauthenticatedError } from '#base/errors.ts';
import type { GuardedCall } from '#base/http/mount.ts';
import type { Caller } from '../app/caller.ts';
import type { FindSessionByCredential, SandboxIdentity } from '../app/ports.ts';

/** Who the API server says a token is. */
export type TokenIdentity = Readonly<{
  username: string;
  uid: string;
  groups: readonly string[];
  extra: Readonly<Record<string, readonly string[]>>;
  podName: string | undefined;
  podUid: string | undefined;
}>;

/** What authentication needs. */
export type AuthenticatePorts = Readonly<{
  /** The owner of a token, undefined for nobody. Errors: UnavailableError `authorizer_unavailable`. */
  identify: (
    token: string,
    accepted: 'ours' | 'ours-or-api-server',
    maxAgeMs?: number,
  ) => Promise<TokenIdentity | undefined>;
  findSessionByCredential: FindSessionByCredential;
  operator: Readonly<{ namespace: string; serviceAccount: string }>;
  /** The service account of sandboxes, of this name in every namespace. */
  sandboxServiceAccount: string;
}>;

/**
 * Recognises the caller, by an answer that is not older than `maxAgeMs`. Errors: UnauthenticatedError, ForbiddenError,
 * ConflictError `superseded`, UnavailableError.
 */
export type Authenticate = (call: GuardedCall, maxAgeMs?: number) => Promise<Caller> | Caller;

const BEARER = /^bearer ([A-Za-z0-9._~+/=-]{1,16384})$/i;
const SERVICE_ACCOUNT = /^system:serviceaccount:([^:]+):([^:]+)$/;

const bearerOf = (call: GuardedCall): string => {
  const header = call.header('authorization');
  if (header === undefined) throw new UnauthenticatedError('send a bearer token in the authorization header');
  const token = BEARER.exec(header.trim())?.[1];
  if (token === undefined) throw new UnauthenticatedError('the authorization header must be "Bearer <token>"');
  return token;
};

/** Authentication over its ports; nothing is remembered here. */
export const makeAuthenticate = (ports: AuthenticatePorts): Authenticate => {
  const { identify, findSessionByCredential, operator, sandboxServiceAccount } = ports;
  const operatorName = `system:serviceaccount:${operator.namespace}:${operator.serviceAccount}`;

  const identified = async (
    call: GuardedCall,
    accepted: 'ours' | 'ours-or-api-server',
    maxAgeMs?: number,
  ): Promise<TokenIdentity> => {
    const identity = await identify(bearerOf(call), accepted, maxAgeMs);
    if (identity === undefined) throw new UnauthenticatedError('the token is not valid, or no longer');
    return identity;
  };

  const pod = async (call: GuardedCall): Promise<Caller> => {
    const { username, podName, podUid } = await identified(call, 'ours');
    const [, namespace, serviceAccount] = SERVICE_ACCOUNT.exec(username) ?? [];
    if (namespace === undefined || serviceAccount === undefined || podName === undefined || podUid === undefined) {
      throw new UnauthenticatedError('send a service-account token that is bound to a pod');
    }
    return { kind: 'pod', namespace, podName, podUid, serviceAccount };
  };

  const sandboxOf = (identity: SandboxIdentity | undefined): Caller => {
    if (identity === undefined) throw new UnauthenticatedError('the session credential is not valid, or no longer');
    return { kind: 'sandbox', ...identity };
  };
  const sandbox = (call: GuardedCall): Promise<Caller> | Caller => {
    const found = findSessionByCredential(bearerOf(call));
    return found instanceof Promise ? found.then(sandboxOf) : sandboxOf(found);
  };

  const others = async (call: GuardedCall, maxAgeMs: number | undefined): Promise<Caller> => {
    const { auth, operationId } = call.route;
    switch (auth.kind) {
      case 'anyone':
        return { kind: 'anyone' };
      case 'resource':
      case 'non-resource':
      case 'user': {
        const { username, uid, groups, extra } = await identified(call, 'ours-or-api-server', maxAgeMs);
        // What runs in a sandbox has its own listener; here it would be a person with the rights of everybody.
        if (SERVICE_ACCOUNT.exec(username)?.[2] === sandboxServiceAccount) {
          throw new UnauthenticatedError(
            'the token of a sandbox is not taken here; send the token of a person or of CI',
          );
        }
        return { kind: 'user', username, uid, groups, extra };
      }
      case 'pod':
        return pod(call);
      case 'sandbox':
        return sandbox(call);
      case 'operator': {
        const { username } = await identified(call, 'ours', maxAgeMs);
        if (username !== operatorName) throw new ForbiddenError('forbidden', 'only the operator may call this');
        return { kind: 'operator', username };
      }
      case 'control-plane':
        throw new Error(`route ${operationId} is not one of the control plane`);
    }
  };
  // The calls of sandboxes are most of all, and mostly known.
  return (call, maxAgeMs) => (call.route.auth.kind === 'sandbox' ? sandbox(call) : others(call, maxAgeMs));
};
