// Port 8000: health for everybody, everything else for the control plane with the credential of the claim.
// Must not know what the calls do; handlers are ports. Source: D12, A19, A200.
import { ConflictError, UnauthenticatedError } from '#base/errors.ts';
import { type Guard, mount } from '#base/http/mount.ts';
import { createHttpServer, type HttpServer } from '#base/http/server.ts';
import type { Logger } from '#base/log.ts';
import { type HealthDocument, healthRoute } from '#schema/wire/health.ts';
import { abortTurnRoute, drainRoute, logsRoute, nudgeRoute, pushEnvRoute } from '#schema/wire/turns.ts';
import type { LogSource } from '../logs.ts';
import { sameSecret } from '../relay/relay.ts';
import { type DaemonCaller, mountRuntime, type RuntimeSession } from './runtime-routes.ts';
import { mountWorkspace, type Workspace } from './workspace-routes.ts';

/** What the routes do. */
export type DaemonPorts = Readonly<{
  /** The credential that the claim gave; undefined before it: nothing but health answers then. */
  credential: () => string | undefined;
  /** `turn`: also how a turn stands, of this message if one is named. */
  health: (turn: Readonly<{ messageId: string | undefined }> | undefined) => HealthDocument;
  nudge: () => void;
  /** Gives back the id of the turn that is being aborted, undefined when it does not run. */
  abort: (turnId: string | undefined) => string | undefined;
  /** Starts the drain; true when no turn runs. */
  drain: (turn: 'wait' | 'abort', deadlineMs: number) => boolean;
  /** Replaces the granted environment; gives back the revision that is in force. */
  replaceEnvironment: (revision: number, environment: Readonly<Record<string, string>>) => number;
  logs: (source: LogSource | 'all', tail: number) => readonly string[];
  /** The verbs and answers of the claimed session; undefined before the claim. */
  session: () => RuntimeSession | undefined;
  /** The stage of the boot that was reached last. */
  bootPhase: () => string;
  /** The workspace of the claimed session; undefined before it is checked out. */
  workspace: () => Workspace | undefined;
  log: Logger;
}>;

/** The server of port 8000, not listening yet. */
export const createDaemonServer = (ports: DaemonPorts): HttpServer => {
  const server = createHttpServer({ listener: 'daemon', log: ports.log });
  const guard: Guard<DaemonCaller> = {
    authenticate: async (call) => {
      if (call.route.auth.kind === 'anyone') return { kind: 'anyone' };
      const given = /^Bearer (.+)$/.exec(call.header('authorization') ?? '')?.[1];
      const expected = ports.credential();
      if (given === undefined || expected === undefined || !sameSecret(given, expected)) {
        throw new UnauthenticatedError('the credential of the control plane is needed');
      }
      return { kind: 'control-plane' };
    },
    authorize: async () => {},
  };
  mount(
    server,
    healthRoute,
    async ({ query }) => {
      const asked = query.turn === '1' ? { messageId: query.turn_message_id } : undefined;
      return { status: 200 as const, body: ports.health(asked) };
    },
    guard,
  );
  mount(
    server,
    nudgeRoute,
    async () => {
      ports.nudge();
      return { status: 202 as const, body: {} };
    },
    guard,
  );
  mount(
    server,
    abortTurnRoute,
    async ({ body }) => {
      const turnId = ports.abort(body.turnId);
      if (turnId === undefined) throw new ConflictError('no_active_turn', 'no such turn runs in this session');
      return { status: 202 as const, body: { turnId } };
    },
    guard,
  );
  mount(
    server,
    drainRoute,
    async ({ body }) => ({ status: 202 as const, body: { idle: ports.drain(body.turn, body.deadlineMs) } }),
    guard,
  );
  mount(
    server,
    pushEnvRoute,
    async ({ body }) => ({
      status: 200 as const,
      body: { revision: ports.replaceEnvironment(body.revision, body.env) },
    }),
    guard,
  );
  mount(
    server,
    logsRoute,
    async ({ query }) => ({ status: 200 as const, body: { lines: [...ports.logs(query.source, query.tail)] } }),
    guard,
  );
  mountRuntime(server, ports.session, ports.bootPhase, guard);
  mountWorkspace(server, ports.workspace, guard);
  return server;
};
