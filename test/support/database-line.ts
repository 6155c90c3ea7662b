// The line between a process and its database, which a test can cut and mend. Must not know what is sent.
import { forwardPort } from './forward-port.ts';

/** A line; while it is cut, connections are ended and refused. `databaseUrl` leads through it. */
export type DatabaseLine = Readonly<{
  databaseUrl: string;
  cut: () => void;
  mend: () => void;
  close: () => Promise<void>;
}>;

/** Lays a line to a database that listens on a Unix socket (`?host=/directory`) or on loopback. */
export const openDatabaseLine = async (databaseUrl: string): Promise<DatabaseLine> => {
  const url = new URL(databaseUrl);
  const folder = url.searchParams.get('host');
  const target = folder === null ? Number(url.port) : `${folder}/.s.PGSQL.5432`;
  const line = await forwardPort('127.0.0.1', 0);
  line.setTarget(target);
  url.searchParams.delete('host');
  url.host = `127.0.0.1:${line.port}`;
  return {
    databaseUrl: url.toString(),
    cut: () => line.setTarget(undefined),
    mend: () => line.setTarget(target),
    close: line.close,
  };
};
