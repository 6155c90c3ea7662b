// Asks the API server who a token is, and whether somebody may do something. Must not know routes or sessions.
// Nobody is ever impersonated (C21): the caller's groups go into the question.
import { InvalidError } from '#base/errors.ts';
import type { CallOptions, KubeClient } from './client.ts';
import { apiVersionOf, pathOf, type ResourceType, SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS } from './resource-types.ts';

/** Who the API server says a token is. The pod fields are there for a token that is bound to a pod. */
export type Identity = Readonly<{
  username: string;
  uid: string;
  groups: readonly string[];
  extra: Readonly<Record<string, readonly string[]>>;
  podName: string | undefined;
  podUid: string | undefined;
  nodeName: string | undefined;
}>;

/** The answer to "who is this?". `audiences`: those of the question that the token is for; none from an old server. */
export type TokenAnswer =
  | Readonly<{ kind: 'authenticated'; identity: Identity; audiences: readonly string[] }>
  | Readonly<{ kind: 'unauthenticated' }>;

/** The subject of a question. */
export type Subject = Readonly<{
  username: string;
  uid?: string | undefined;
  groups: readonly string[];
  extra?: Readonly<Record<string, readonly string[]>> | undefined;
}>;

/** What somebody wants to do: on a resource (an empty name means any), or on a path. */
export type AccessQuestion =
  | Readonly<{
      kind: 'resource';
      group: string;
      resource: string;
      subresource?: string | undefined;
      verb: string;
      namespace?: string | undefined;
      name?: string | undefined;
    }>
  | Readonly<{ kind: 'path'; path: string; verb: string }>;

/** The answer to "may they?". `reason` is the authorizer's, for logs. */
export type AccessAnswer = Readonly<{ allowed: boolean; reason: string }>;

const POD_NAME = 'authentication.kubernetes.io/pod-name';
const POD_UID = 'authentication.kubernetes.io/pod-uid';
const NODE_NAME = 'authentication.kubernetes.io/node-name';
/** Longest token that is worth a question. Units: characters. */
const MAX_TOKEN = 16_384;

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;
const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : [];
const record = (value: unknown): Readonly<Record<string, unknown>> => (isRecord(value) ? value : {});

const review = async (client: KubeClient, type: ResourceType, spec: unknown, options: CallOptions) => {
  const answer = await client.request({
    verb: 'create',
    type,
    path: pathOf(type, {}),
    body: { apiVersion: apiVersionOf(type), kind: type.kind, spec },
    idempotent: true,
    mutates: false,
    timeoutMs: options.timeoutMs,
    signal: options.signal,
  });
  return record(record(answer)['status']);
};

/**
 * Who the token is, for one of these audiences; without any, for the API server's own. A token for another audience is
 * unauthenticated. Errors: UnavailableError when the API server cannot be asked; never a 401 for that.
 */
export const tokenReview = async (
  client: KubeClient,
  token: string,
  audiences: readonly string[],
  options: CallOptions = {},
): Promise<TokenAnswer> => {
  if (token === '' || token.length > MAX_TOKEN) return { kind: 'unauthenticated' };
  const status = await review(
    client,
    TOKEN_REVIEWS,
    { token, audiences: audiences.length === 0 ? undefined : audiences },
    options,
  );
  const user = record(status['user']);
  const username = text(user['username']);
  // A server that knows nothing of audiences leaves them out; then the token proves nothing to us.
  const granted = texts(status['audiences']);
  const fits = audiences.length === 0 || granted.some((each) => audiences.includes(each));
  if (status['authenticated'] !== true || username === '' || !fits) {
    return { kind: 'unauthenticated' };
  }
  const extra = Object.fromEntries(Object.entries(record(user['extra'])).map(([key, value]) => [key, texts(value)]));
  return {
    kind: 'authenticated',
    audiences: granted,
    identity: {
      username,
      uid: text(user['uid']),
      groups: texts(user['groups']),
      extra,
      podName: extra[POD_NAME]?.[0],
      podUid: extra[POD_UID]?.[0],
      nodeName: extra[NODE_NAME]?.[0],
    },
  };
};

/** Whether the subject may. Errors: UnavailableError when the API server cannot be asked; InvalidError for no verb. */
export const subjectAccessReview = async (
  client: KubeClient,
  subject: Subject,
  question: AccessQuestion,
  options: CallOptions = {},
): Promise<AccessAnswer> => {
  if (question.verb === '') throw new InvalidError('invalid_request', 'an access question needs a verb');
  const attributes =
    question.kind === 'path'
      ? { nonResourceAttributes: { path: question.path, verb: question.verb } }
      : {
          resourceAttributes: {
            group: question.group,
            resource: question.resource,
            subresource: question.subresource,
            verb: question.verb,
            namespace: question.namespace,
            name: question.name,
          },
        };
  const status = await review(
    client,
    SUBJECT_ACCESS_REVIEWS,
    { user: subject.username, uid: subject.uid, groups: subject.groups, extra: subject.extra, ...attributes },
    options,
  );
  return { allowed: status['allowed'] === true && status['denied'] !== true, reason: text(status['reason']) };
};
