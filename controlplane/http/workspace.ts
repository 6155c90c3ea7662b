// Handlers of what a person does in a running sandbox: files, changes, log lines and terminals. Must not know how a daemon is found
// or what it does. Source: 20-control-plane §3, A200, A201.
import { createHash } from 'node:crypto';
import { InvalidError, LimitError } from '#base/errors.ts';
import type { RouteResult } from '#base/http/client.ts';
import type { TakeSocket, UpgradeHandler } from '#base/http/upgrade.ts';
import type { Route, RouteInput } from '#schema/define-route.ts';
import type { Session } from '#schema/resources/session.ts';
import type { getDiffRoute, getFilesRoute, getLogsRoute, putFilesRoute } from '#schema/rest/files.ts';
import type { deleteTerminalRoute, getTerminalsRoute, openTerminalRoute } from '#schema/rest/terminals.ts';
import { diffRoute, readFileRoute, writeFileRoute } from '#schema/wire/files.ts';
import { endTerminalRoute, listTerminalsRoute, type TerminalQuery } from '#schema/wire/terminals.ts';
import { logsRoute } from '#schema/wire/turns.ts';
import { type Caller, callerName } from '../app/caller.ts';
import type { RecordWrite } from '../app/writes.ts';
import { type Fetch, requireSession } from './find-objects.ts';
import type { Handler } from './handler.ts';

/** What the handlers need. */
export type WorkspacePorts = Readonly<{
  fetchSession: Fetch<Session>;
  /** Calls the daemon of a session. Errors: UnavailableError `sandbox_unreachable`, and the route's own. */
  callDaemon: <R extends Route>(sessionUid: string, route: R, input: RouteInput<R>) => Promise<RouteResult<R>>;
  /** Opens a terminal of a session; gives back what joins the client to it and resolves when both have left. */
  openTerminal: (
    sessionUid: string,
    query: TerminalQuery,
    handshake: Readonly<{ key: string; version: string }>,
    signal: AbortSignal,
  ) => Promise<TakeSocket>;
  recordWrite: RecordWrite;
  /** Terminals that may be open at once on this replica. */
  maxTerminals: number;
}>;

/** The handlers, one per route. */
export type WorkspaceHandlers = Readonly<{
  getSessionFiles: Handler<typeof getFilesRoute>;
  putSessionFiles: Handler<typeof putFilesRoute>;
  getSessionDiff: Handler<typeof getDiffRoute>;
  getSessionLogs: Handler<typeof getLogsRoute>;
  getSessionTerminals: Handler<typeof getTerminalsRoute>;
  deleteSessionTerminal: Handler<typeof deleteTerminalRoute>;
  openSessionTerminal: UpgradeHandler<typeof openTerminalRoute, Caller>;
}>;

/** Makes the handlers. */
export const makeWorkspaceHandlers = (ports: WorkspacePorts): WorkspaceHandlers => {
  const found = requireSession(ports.fetchSession);
  const { callDaemon } = ports;
  let open = 0;
  const uidOf = async (params: Readonly<{ namespace: string; name: string }>): Promise<string> =>
    (await found(params)).metadata.uid;
  return {
    getSessionFiles: async ({ params, query }) => callDaemon(await uidOf(params), readFileRoute, { query }),
    putSessionFiles: async ({ params, query, body }) =>
      callDaemon(await uidOf(params), writeFileRoute, { query, body }),
    getSessionDiff: async ({ params }) => callDaemon(await uidOf(params), diffRoute, {}),
    getSessionLogs: async ({ params, query }) => callDaemon(await uidOf(params), logsRoute, { query }),
    getSessionTerminals: async ({ params }) => callDaemon(await uidOf(params), listTerminalsRoute, {}),
    deleteSessionTerminal: async ({ params }) =>
      callDaemon(await uidOf(params), endTerminalRoute, { params: { id: params.id } }),
    openSessionTerminal: async ({ params, query, caller, header, requestId, signal }) => {
      const uid = await uidOf(params);
      const [key, version] = [header('sec-websocket-key'), header('sec-websocket-version')];
      if (key === undefined || version === undefined || !/^[A-Za-z0-9+/]{22}==$/.test(key)) {
        throw new InvalidError('invalid_request', 'this route is a WebSocket: ask for an upgrade');
      }
      if (open >= ports.maxTerminals) {
        throw new LimitError('too_many_terminals', `${ports.maxTerminals} terminals are open; close one first`, {
          retryAfterMs: 5_000,
        });
      }
      open += 1;
      const release = (): void => {
        open -= 1;
      };
      // A shell changes things, so it is recorded as a change is.
      const subject = callerName(caller);
      const digest = createHash('sha256')
        .update(JSON.stringify([params, query]))
        .digest('hex');
      const write = {
        requestId,
        subject,
        operation: 'openSessionTerminal',
        ...params,
        digest,
        digestState: async () => undefined,
      };
      let join: TakeSocket | undefined;
      try {
        await ports.recordWrite(write, undefined, async () => {
          join = await ports.openTerminal(uid, query, { key, version }, signal);
          return { status: 101, body: null };
        });
      } catch (error) {
        release();
        throw error;
      }
      return async (request, socket, head) => {
        try {
          await join?.(request, socket, head);
        } finally {
          release();
        }
      };
    },
  };
};
