// Where the daemon of a session answers, and a client for it. The address comes from the Session's status alone, and only
// while the claimed pod is still the bound one. Must not know SQL, who asks, or what is called. Source: 10-kubernetes §7, D12.
import { isIP } from 'node:net';
import { type Client, createClient } from '#base/http/client.ts';
import type { FindSessionByUid, Unseal } from '../app/ports.ts';
import { daemonCredentialContext } from './credentials.ts';

/** The claimed pod of a session and the sealed credential that its daemon expects. */
export type ClaimedDaemon = Readonly<{ pod_uid: string; daemon_credential: Buffer }>;

/** What finding and calling a daemon needs. */
export type DaemonPorts = Readonly<{
  findSessionByUid: FindSessionByUid;
  findDaemon: (sessionUid: string) => Promise<ClaimedDaemon | undefined>;
  unseal: Unseal;
  /** Port of daemons: 8000. */
  daemonPort: number;
  fetch?: typeof fetch | undefined;
}>;

/** Where a daemon answers, and what it wants to see. */
export type DaemonAddress = Readonly<{ baseUrl: string; token: string }>;

/** `no-pod`: there is no pod with an address. `not-claimed`: the pod that is bound has not claimed the session. */
export type FoundDaemon = Readonly<{ state: 'found'; address: DaemonAddress } | { state: 'no-pod' | 'not-claimed' }>;

/** Base URL of a pod's daemon, or undefined for anything that is no address. */
export const daemonUrl = (ip: string, port: number): string | undefined => {
  const family = isIP(ip);
  if (family === 0) return undefined;
  return `http://${family === 6 ? `[${ip}]` : ip}:${port}`;
};

/** Finds the daemon of a session. Errors: UnavailableError `database_unavailable`. */
export const findDaemonOf = async (ports: DaemonPorts, sessionUid: string): Promise<FoundDaemon> => {
  const pod = ports.findSessionByUid(sessionUid)?.status?.pod;
  const baseUrl = pod?.ip === undefined ? undefined : daemonUrl(pod.ip, ports.daemonPort);
  if (baseUrl === undefined) return { state: 'no-pod' };
  const daemon = await ports.findDaemon(sessionUid);
  if (daemon === undefined || daemon.pod_uid !== pod?.uid) return { state: 'not-claimed' };
  const token = ports.unseal(daemon.daemon_credential, daemonCredentialContext(sessionUid));
  return { state: 'found', address: { baseUrl, token } };
};

/** A client for a daemon. */
export const daemonClient = (ports: Pick<DaemonPorts, 'fetch'>, { baseUrl, token }: DaemonAddress): Client =>
  createClient({
    baseUrl,
    token: () => token,
    peer: 'the sandbox',
    unreachable: 'sandbox_unreachable',
    fetch: ports.fetch,
  });
