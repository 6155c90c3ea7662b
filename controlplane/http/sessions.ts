// Handlers of sessions: declared state goes to the custom resource, one field at a time. Must not know Kubernetes clients.
// Source: 20-control-plane §3, K25.
import { NotFoundError, UnavailableError } from '#base/errors.ts';
import type { Session } from '#schema/resources/session.ts';
import type {
  createSessionRoute,
  deleteSessionRoute,
  getSessionRoute,
  listAllSessionsRoute,
  listSessionsRoute,
  patchSessionRoute,
  restartSessionRoute,
  SessionView,
  sessionHealthRoute,
  startSessionRoute,
  suspendSessionRoute,
} from '#schema/rest/sessions.ts';
import type { HealthDocument } from '#schema/wire/health.ts';
import type { CheckSessionSpec } from '../app/check-session-spec.ts';
import { afterKey, type PageRequest, pageFrom } from '../app/page.ts';
import { sessionViewOf } from '../app/resource-views.ts';
import { type Fetch, requireSession } from './find-objects.ts';
import type { Handler } from './handler.ts';

/** The newest report of a daemon. `silent`: it missed its next reports. */
export type HealthReport = Readonly<{ health: HealthDocument; reportedAt: string; silent: boolean }>;

type Spec = Readonly<Record<string, unknown>>;

/** What the handlers need. */
export type SessionPorts = Readonly<{
  fetchSession: Fetch<Session>;
  /** Of a namespace or of all, by namespace and name. */
  listSessions: (namespace?: string) => readonly Session[];
  checkSessionSpec: CheckSessionSpec;
  createSession: (namespace: string, name: string, spec: Spec) => Promise<Session>;
  patchSession: (session: Session, spec: Spec) => Promise<Session>;
  deleteSession: (session: Session) => Promise<boolean>;
  /** Wishes for a start of a session that sleeps. */
  wakeSession: (session: Session) => Promise<void>;
  readHealth: (sessionUid: string) => Promise<HealthReport | undefined>;
  /** Titles of sessions that have one, by uid. */
  readTitles: (sessionUids: readonly string[]) => Promise<ReadonlyMap<string, string>>;
  /** A new value for `restartToken`. */
  newToken: () => string;
}>;

/** The handlers, one per route of schema/rest/sessions.ts. */
export type SessionHandlers = Readonly<{
  listSessions: Handler<typeof listSessionsRoute>;
  listAllSessions: Handler<typeof listAllSessionsRoute>;
  createSession: Handler<typeof createSessionRoute>;
  getSession: Handler<typeof getSessionRoute>;
  patchSession: Handler<typeof patchSessionRoute>;
  deleteSession: Handler<typeof deleteSessionRoute>;
  startSession: Handler<typeof startSessionRoute>;
  suspendSession: Handler<typeof suspendSessionRoute>;
  restartSession: Handler<typeof restartSessionRoute>;
  getSessionHealth: Handler<typeof sessionHealthRoute>;
}>;

const keyOf = ({ metadata }: Session): string => `${metadata.namespace}/${metadata.name}`;

/** Makes the handlers. */
export const makeSessionHandlers = (ports: SessionPorts): SessionHandlers => {
  const found = requireSession(ports.fetchSession);
  const { patchSession } = ports;
  /** Views with titles. While the database is away the rest is shown: it comes from Kubernetes. */
  const viewsOf = async (sessions: readonly Session[]): Promise<SessionView[]> => {
    const uids = sessions.map(({ metadata }) => metadata.uid);
    const titles = await ports.readTitles(uids).catch(() => new Map<string, string>());
    return sessions.map((session) => sessionViewOf(session, titles.get(session.metadata.uid) ?? null));
  };
  const viewOf = async (session: Session): Promise<SessionView> => {
    const [view] = await viewsOf([session]);
    return view ?? sessionViewOf(session, null);
  };
  const pageOfSessions = async (
    sessions: readonly Session[],
    query: PageRequest & Readonly<{ project?: string | undefined }>,
  ) => {
    const after = afterKey(query);
    const rest = sessions
      .filter((session) => query.project === undefined || session.spec.projectRef.name === query.project)
      .filter((session) => keyOf(session) > after)
      .slice(0, query.limit + 1);
    const page = pageFrom(rest, query.limit, keyOf);
    return { items: await viewsOf(page.items), cursor: page.cursor };
  };
  return {
    listSessions: async ({ params, query }) => ({
      status: 200,
      body: await pageOfSessions(ports.listSessions(params.namespace), query),
    }),
    listAllSessions: async ({ query }) => ({ status: 200, body: await pageOfSessions(ports.listSessions(), query) }),
    createSession: async ({ params, body }) => {
      await ports.checkSessionSpec(params.namespace, body.spec);
      const session = await ports.createSession(params.namespace, body.name, body.spec);
      return { status: 201, body: await viewOf(session) };
    },
    getSession: async ({ params }) => ({ status: 200, body: await viewOf(await found(params)) }),
    patchSession: async ({ params, body }) => {
      const session = await found(params);
      await ports.checkSessionSpec(params.namespace, { ...body.spec, projectRef: session.spec.projectRef });
      return { status: 200, body: await viewOf(await patchSession(session, body.spec)) };
    },
    deleteSession: async ({ params }) => {
      const session = await found(params);
      const { uid, name, namespace } = session.metadata;
      if (!(await ports.deleteSession(session))) {
        throw new NotFoundError('session_not_found', `there is no session ${name} in namespace ${namespace}`);
      }
      return { status: 202, body: { uid } };
    },
    startSession: async ({ params }) => {
      const session = await found(params);
      const running = await patchSession(session, { operatingMode: 'Running' });
      await ports.wakeSession(running);
      return { status: 202, body: await viewOf(running) };
    },
    suspendSession: async ({ params }) => ({
      status: 202,
      body: await viewOf(await patchSession(await found(params), { operatingMode: 'Suspended' })),
    }),
    restartSession: async ({ params }) => ({
      status: 202,
      body: await viewOf(await patchSession(await found(params), { restartToken: ports.newToken() })),
    }),
    getSessionHealth: async ({ params }) => {
      const session = await found(params);
      const report = await ports.readHealth(session.metadata.uid);
      if (report !== undefined) return { status: 200, body: report };
      throw new UnavailableError('sandbox_unreachable', `the sandbox of session ${params.name} has not reported yet`, {
        retryAfterMs: 5_000,
      });
    },
  };
};
