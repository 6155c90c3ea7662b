// Statements on sessions and their credentials. Every change of a session locks its row first and raises facts last,
// so that no two transactions can wait for each other. Must not know what a claim or a fence means.

import type { SessionKey, StoredCredential } from '../app/session-records.ts';
import type { CredentialRow } from '../daemons/credentials.ts';
import type { Statement } from './statement.ts';

/** What decisions under the lock need. Times in RFC 3339. */
export type LockedSession = Readonly<{
  uid: string;
  generation: number;
  pod_uid: string | null;
  fenced_pod_uid: string | null;
  acknowledged_n: number;
  head_seq: number;
  first_seq: number;
  closed_at: string | null;
}>;

const LOCKED = 'uid, generation, pod_uid, fenced_pod_uid, acknowledged_n, head_seq, first_seq, closed_at';

/** Creates the rows that are missing; gives back the uids of the new ones. */
export const ensureSessions = (keys: readonly SessionKey[]): Statement<{ uid: string }> => ({
  name: 'ensure_sessions',
  text: `insert into sessions (uid, namespace, name, project_uid)
    select * from unnest($1::text[], $2::text[], $3::text[], $4::text[])
    on conflict (uid) do nothing returning uid`,
  values: [
    keys.map((key) => key.uid),
    keys.map((key) => key.namespace),
    keys.map((key) => key.name),
    keys.map((key) => key.projectUid),
  ],
});

/** Locks rows until commit, always in the order of uids. */
export const lockSessions = (uids: readonly string[]): Statement<LockedSession> => ({
  name: 'lock_sessions',
  text: `select ${LOCKED} from sessions where uid = any($1::text[]) order by uid for update`,
  values: [uids],
});

/** Sets whether the budget of a session is used up; raised again, the session is wanted. */
export const setBudgetReached = (uid: string, isReached: boolean): Statement => ({
  text: `update sessions set budget_reached = $2, want_start = want_start or (budget_reached and not $2)
    where uid = $1 and closed_at is null`,
  values: [uid, isReached],
});

/** Makes the pod the one of the next generation. A fence of another pod ends with it. */
export const advanceGeneration = (
  uid: string,
  claim: Readonly<{ projectUid: string; podUid: string; harness: string; daemonCredential: Buffer }>,
): Statement<{ generation: number; head_seq: number }> => ({
  text: `update sessions set generation = generation + 1, pod_uid = $2, harness = $3, daemon_credential = $4,
      project_uid = $5, acknowledged_n = 0, claimed_at = now(), idle_since = now(), want_start = false,
      fenced_pod_uid = case when fenced_pod_uid = $2 then fenced_pod_uid end
    where uid = $1 returning generation, head_seq`,
  values: [uid, claim.podUid, claim.harness, claim.daemonCredential, claim.projectUid],
});

/** The move to another agent that was told last. */
export const readRepoint = (uid: string): Statement<Readonly<{ agent_repoint: unknown }>> => ({
  text: 'select agent_repoint from sessions where uid = $1',
  values: [uid],
});

/** Remembers a move, or that the session runs on the agent that it names. */
export const saveRepoint = (uid: string, repoint: object | null): Statement => ({
  text: 'update sessions set agent_repoint = $2::json where uid = $1',
  values: [uid, repoint === null ? null : JSON.stringify(repoint)],
});

/** Keeps what the newest harness offers. */
export const saveCapabilities = (uid: string, capabilities: readonly string[]): Statement => ({
  text: 'update sessions set capabilities = $2::json where uid = $1 and capabilities::text is distinct from $2::json::text',
  values: [uid, JSON.stringify(capabilities)],
});

/** What the newest harness of a session offers; null before the first report. */
export const readCapabilities = (uid: string): Statement<Readonly<{ capabilities: readonly string[] | null }>> => ({
  text: 'select capabilities from sessions where uid = $1',
  values: [uid],
});

/** Takes the pod away from the session, if it is this one. */
export const forgetPod = (uid: string, podUid: string): Statement => ({
  text: 'update sessions set pod_uid = null, daemon_credential = null where uid = $1 and pod_uid = $2',
  values: [uid, podUid],
});

/** The pod takes no more prompts. */
export const fencePod = (uid: string, podUid: string): Statement => ({
  text: 'update sessions set fenced_pod_uid = $2 where uid = $1',
  values: [uid, podUid],
});

/** Wishes for a start of a suspended session; the next claim ends it. */
export const wantStart = (uid: string): Statement => ({
  text: 'update sessions set want_start = true where uid = $1 and not want_start and closed_at is null',
  values: [uid],
});

/** Nothing new is admitted from here on. */
export const markClosed = (uid: string): Statement => ({
  text: `update sessions set closed_at = now(), want_start = false, pod_uid = null, daemon_credential = null
    where uid = $1 and closed_at is null`,
  values: [uid],
});

/** Removes the session with everything that refers to it; its events are removed before. */
export const deleteSession = (uid: string): Statement<{ uid: string }> => ({
  text: 'delete from sessions where uid = $1 returning uid',
  values: [uid],
});

/** Uids of all rows after one, for a comparison with what Kubernetes has. */
export const listSessionUids = (afterUid: string, limit: number): Statement<{ uid: string }> => ({
  text: 'select uid from sessions where uid > $1 order by uid limit $2',
  values: [afterUid, limit],
});

/** Where the daemon of a session is and what it wants to hear; no row without a claimed pod. */
export const findDaemon = (
  uid: string,
): Statement<{ pod_uid: string; generation: number; daemon_credential: Buffer; fenced_pod_uid: string | null }> => ({
  text: `select pod_uid, generation, daemon_credential, fenced_pod_uid from sessions
    where uid = $1 and pod_uid is not null and daemon_credential is not null`,
  values: [uid],
});

/** Claimed sessions of a project. */
export const listRunningOfProject = (projectUid: string): Statement<{ uid: string }> => ({
  text: 'select uid from sessions where project_uid = $1 and pod_uid is not null order by uid',
  values: [projectUid],
});

/** Stores the credential of a claim. */
export const insertCredential = (
  credential: StoredCredential,
  owner: Readonly<{ sessionUid: string; generation: number; podUid: string }>,
): Statement => ({
  text: 'insert into credentials (prefix, hash, session_uid, generation, pod_uid) values ($1, $2, $3, $4, $5)',
  values: [credential.prefix, credential.hash, owner.sessionUid, owner.generation, owner.podUid],
});

/** Forgets credentials of generations below one. */
export const deleteOldCredentials = (sessionUid: string, belowGeneration: number): Statement => ({
  text: 'delete from credentials where session_uid = $1 and generation < $2',
  values: [sessionUid, belowGeneration],
});

/** Revokes every credential of a session, or of one of its pods. */
export const revokeCredentials = (sessionUid: string, podUid: string | undefined): Statement => ({
  text: 'delete from credentials where session_uid = $1 and ($2::text is null or pod_uid = $2)',
  values: [sessionUid, podUid ?? null],
});

/** Finds a credential by its prefix. */
export const findCredential = (prefix: string): Statement<CredentialRow> => ({
  name: 'find_credential',
  text: `select c.hash, c.session_uid, c.generation, c.pod_uid, s.namespace, s.project_uid,
      s.generation as newest_generation, s.closed_at
    from credentials c join sessions s on s.uid = c.session_uid where c.prefix = $1`,
  values: [prefix],
});

/** Which of the holders of credentials are none any more: a newer claim was made, or the credential was taken away. */
export const findRevokedHolders = (
  holders: readonly Readonly<{ sessionUid: string; generation: number }>[],
): Statement<Readonly<{ sessionUid: string; generation: number; why: 'superseded' | 'unauthenticated' }>> => ({
  name: 'find_revoked_holders',
  text: `select r.uid as "sessionUid", r.generation,
      case when s.closed_at is null and s.generation > r.generation then 'superseded' else 'unauthenticated' end as why
    from unnest($1::text[], $2::integer[]) as r(uid, generation) left join sessions s on s.uid = r.uid
    where s.uid is null or s.closed_at is not null or s.generation <> r.generation or not exists (
      select from credentials c where c.session_uid = r.uid and c.generation = r.generation)`,
  values: [holders.map(({ sessionUid }) => sessionUid), holders.map(({ generation }) => generation)],
});
