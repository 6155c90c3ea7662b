// Handlers of what harnesses ask people. Must not know how answers are stored or delivered. Source: 20-control-plane §3, §9.
import type { Session } from '#schema/resources/session.ts';
import type {
  answerPermissionRoute,
  answerQuestionRoute,
  getPermissionRoute,
  getQuestionRoute,
  listRequestsRoute,
} from '#schema/rest/requests.ts';
import type { HumanAnswerWire } from '#schema/wire/requests.ts';
import { type CallerOf, callerName, callerOf } from '../app/caller.ts';
import type { HumanRequests } from '../app/human-requests.ts';
import type { AuthorizePorts } from './authorize.ts';
import { type Fetch, requireSession } from './find-objects.ts';
import type { Handler } from './handler.ts';

/** What the handlers need. */
export type HumanRequestPorts = Readonly<{
  fetchSession: Fetch<Session>;
  requests: HumanRequests;
  mayAccess: AuthorizePorts['mayAccess'];
}>;

/** The handlers, one per route of schema/rest/requests.ts. */
export type HumanRequestHandlers = Readonly<{
  listRequests: Handler<typeof listRequestsRoute>;
  getPermission: Handler<typeof getPermissionRoute>;
  answerPermission: Handler<typeof answerPermissionRoute>;
  getQuestion: Handler<typeof getQuestionRoute>;
  answerQuestion: Handler<typeof answerQuestionRoute>;
}>;

const SUBRESOURCE = { permission: 'permissions', question: 'questions' } as const;

/** Makes the handlers. */
export const makeHumanRequestHandlers = (ports: HumanRequestPorts): HumanRequestHandlers => {
  const found = requireSession(ports.fetchSession);

  /** Asks for the whole namespace first, so that most lists cost one question; every question is asked once a list. */
  const mayAnswerOf = (caller: CallerOf<'user'>) => {
    const { username, uid, groups, extra } = caller;
    const known = new Map<string, Promise<boolean>>();
    const ask = (subresource: string, namespace: string, name: string | undefined): Promise<boolean> => {
      const key = `${subresource} ${namespace} ${name ?? ''}`;
      const asked =
        known.get(key) ??
        ports.mayAccess(
          { username, uid, groups, extra },
          { kind: 'resource', group: 'beeuni.dev', resource: 'sessions', subresource, verb: 'create', namespace, name },
        );
      known.set(key, asked);
      return asked;
    };
    return async (kind: keyof typeof SUBRESOURCE, namespace: string, name: string): Promise<boolean> =>
      (await ask(SUBRESOURCE[kind], namespace, undefined)) || ask(SUBRESOURCE[kind], namespace, name);
  };

  const answer = async (session: Session, id: string, given: HumanAnswerWire, caller: CallerOf<'user'>) => {
    const { view, delivered } = await ports.requests.answer(session, id, given, callerName(caller));
    return delivered ? { status: 200 as const, body: view } : { status: 202 as const, body: view };
  };

  return {
    listRequests: async ({ query, caller }) => {
      const page = await ports.requests.listOpen(query, mayAnswerOf(callerOf(caller, 'user')));
      return { status: 200, body: { items: [...page.items], cursor: page.cursor } };
    },
    getPermission: async ({ params }) => ({
      status: 200,
      body: await ports.requests.get(await found(params), 'permission', params.id),
    }),
    answerPermission: async ({ params, body, caller }) =>
      answer(await found(params), params.id, { kind: 'permission', ...body }, callerOf(caller, 'user')),
    getQuestion: async ({ params }) => ({
      status: 200,
      body: await ports.requests.get(await found(params), 'question', params.id),
    }),
    answerQuestion: async ({ params, body, caller }) => {
      const answers = 'reject' in body ? null : body.answers;
      return answer(await found(params), params.id, { kind: 'question', answers }, callerOf(caller, 'user'));
    },
  };
};
