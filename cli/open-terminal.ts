// Opens a terminal of a session and joins this one to it: for the commands that do. Must not know their options.
import { routeUrl } from '#base/http/client.ts';
import { getTerminalsRoute, openTerminalRoute } from '#schema/rest/terminals.ts';
import type { Api, ObjectName } from './connection/api.ts';
import { EXIT } from './failure.ts';
import type { Io } from './io.ts';
import { joinTerminal } from './terminal-client.ts';

/** Which terminal. `client`: the harness's own terminal client in place of a shell. */
export type TerminalChoice = Readonly<{ id?: string | undefined; command?: string | undefined; client?: boolean }>;

/** Joins both until one ends; gives back the exit code. Errors: BeeuniError, CommandError. */
export const useTerminal = async (
  api: Api,
  session: ObjectName,
  choice: TerminalChoice,
  io: Io,
  note: (line: string) => void,
): Promise<number> => {
  // Asked first, because a refused WebSocket does not say why.
  await (await api.client()).call(getTerminalsRoute, { params: session });
  const { columns: cols, rows } = io.size();
  const { id, command, client } = choice;
  const query = { cols, rows, id, command, ...(client === true ? { client: 'true' as const } : {}) };
  const { baseUrl, token } = await api.reach();
  const url = `${baseUrl.replace(/^http/, 'ws')}${routeUrl(openTerminalRoute, { params: session, query })}`;
  const end = await joinTerminal(url, { authorization: `Bearer ${token}` }, io, note);
  if (end.kind === 'exited') return end.exitCode ?? EXIT.failed;
  note(`\nleft; attach again: beeuni sessions shell ${session.namespace}/${session.name} --id ${end.id}`);
  return EXIT.done;
};
