// Asks the cluster's RBAC whether a person may call a route; the other callers were admitted by who they are.
// Must not know how access is reviewed. Source: D5, 20-control-plane §1.
import { ForbiddenError } from '#base/errors.ts';
import type { GuardedCall } from '#base/http/mount.ts';
import type { AccessQuestion } from '#kube/reviews.ts';
import type { RouteAuth } from '#schema/define-route.ts';
import type { Caller } from '../app/caller.ts';

/** What authorization needs. */
export type AuthorizePorts = Readonly<{
  /** Whether the subject may. Errors: UnavailableError `authorizer_unavailable`. */
  mayAccess: (
    subject: Readonly<{
      username: string;
      uid: string;
      groups: readonly string[];
      extra: Readonly<Record<string, readonly string[]>>;
    }>,
    question: AccessQuestion,
    maxAgeMs?: number,
  ) => Promise<boolean>;
}>;

/**
 * Resolves when the caller may, by an answer that is not older than `maxAgeMs`. Errors: ForbiddenError `forbidden`,
 * UnavailableError `authorizer_unavailable`.
 */
export type Authorize = (call: GuardedCall, caller: Caller, maxAgeMs?: number) => Promise<void> | void;

/** The question that a route asks; undefined when it asks none. */
export const questionOf = (auth: RouteAuth, params: Readonly<Record<string, string>>): AccessQuestion | undefined => {
  if (auth.kind === 'non-resource') return { kind: 'path', path: auth.path, verb: auth.verb };
  if (auth.kind !== 'resource') return undefined;
  const { resource, subresource, verb } = auth;
  return {
    kind: 'resource',
    group: 'beeuni.dev',
    resource,
    subresource,
    verb,
    namespace: params['namespace'],
    name: params['name'],
  };
};

const describe = (question: AccessQuestion): string => {
  if (question.kind === 'path') return `${question.verb} ${question.path}`;
  const what = question.subresource === undefined ? question.resource : `${question.resource}/${question.subresource}`;
  const where = question.namespace === undefined ? '' : ` in namespace ${question.namespace}`;
  return `${question.verb} ${what}.${question.group}${where}`;
};

/** Authorization over its ports. */
export const makeAuthorize = ({ mayAccess }: AuthorizePorts): Authorize => {
  const ask = async (question: AccessQuestion, caller: Caller, maxAgeMs: number | undefined): Promise<void> => {
    if (caller.kind !== 'user') throw new Error(`a ${caller.kind} reached a route for people`);
    const { username, uid, groups, extra } = caller;
    if (await mayAccess({ username, uid, groups, extra }, question, maxAgeMs)) return;
    throw new ForbiddenError(
      'forbidden',
      `${username} may not ${describe(question)}; access is given by Kubernetes RBAC`,
    );
  };
  return (call, caller, maxAgeMs) => {
    const question = questionOf(call.route.auth, call.params);
    return question === undefined ? undefined : ask(question, caller, maxAgeMs);
  };
};
