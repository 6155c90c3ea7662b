// The part of port 8000 that is about the workspace: files, changes, terminals. Must not know what the harness does.
// Source: A200, A201.
import { NotFoundError, UnavailableError } from '#base/errors.ts';
import { type Guard, mount } from '#base/http/mount.ts';
import type { HttpServer } from '#base/http/server.ts';
import { mountUpgrade } from '#base/http/upgrade.ts';
import { diffRoute, readFileRoute, type WorkspaceDiff, writeFileRoute } from '#schema/wire/files.ts';
import { attachTerminalRoute, endTerminalRoute, listTerminalsRoute } from '#schema/wire/terminals.ts';
import type { WorkspaceFiles } from '../files/workspace-files.ts';
import { attachSocket } from '../terminal/terminal-socket.ts';
import type { Terminals } from '../terminal/terminals.ts';
import type { DaemonCaller } from './runtime-routes.ts';

/** The workspace of a claimed session. */
export type Workspace = Readonly<{
  files: WorkspaceFiles;
  /** Errors: UnavailableError. */
  diff: () => Promise<WorkspaceDiff>;
  terminals: Terminals;
}>;

/** Mounts the routes. Before the checkout all answer 503 `runtime_not_ready`. */
export const mountWorkspace = (
  server: HttpServer,
  workspace: () => Workspace | undefined,
  guard: Guard<DaemonCaller>,
): void => {
  const ready = (): Workspace => {
    const found = workspace();
    if (found !== undefined) return found;
    throw new UnavailableError('runtime_not_ready', 'the workspace is not checked out yet', { retryAfterMs: 1_000 });
  };
  const ok = <B>(body: B) => ({ status: 200 as const, body });

  mount(server, readFileRoute, async ({ query }) => ok(await ready().files.read(query.path)), guard);
  mount(server, writeFileRoute, async ({ query, body }) => ok(await ready().files.write(query.path, body)), guard);
  mount(server, diffRoute, async () => ok(await ready().diff()), guard);
  mount(server, listTerminalsRoute, async () => ok({ terminals: [...ready().terminals.list()] }), guard);
  mount(
    server,
    endTerminalRoute,
    async ({ params }) => {
      if (ready().terminals.end(params.id)) return { status: 204 as const, body: null };
      throw new NotFoundError('not_found', `the sandbox has no terminal ${params.id}`);
    },
    guard,
  );
  mountUpgrade(
    server,
    attachTerminalRoute,
    async ({ query }) => {
      const { id, cols, rows, command } = query;
      const client = query.client === 'true';
      return attachSocket(ready().terminals, { id, cols, rows, command, client }, server.clock);
    },
    guard,
  );
};
