// The credentials between control plane and daemon: made at random, stored as hashes, compared in constant time,
// remembered for a few seconds. Must not know SQL or HTTP. Source: 20-control-plane §1, D7, FC11.
import { hash, timingSafeEqual } from 'node:crypto';
import type { Clock } from '#base/clock.ts';
import { ConflictError, UnavailableError } from '#base/errors.ts';
import type { FindSessionByCredential, RandomBytes, SandboxIdentity } from '../app/ports.ts';
import type { StoredCredential } from '../app/session-records.ts';

/** What is stored of the credential that a prefix names. */
export type CredentialRow = Readonly<{
  hash: Buffer;
  session_uid: string;
  generation: number;
  pod_uid: string;
  namespace: string;
  project_uid: string;
  newest_generation: number;
  closed_at: string | null;
}>;

const SESSION_CREDENTIAL = /^bs_([0-9a-f]{12})_([A-Za-z0-9_-]{43})$/;
/** How long an answer is remembered, and how much longer it is used while the database does not answer. */
const FRESH_MS = 5_000;
const GRACE_MS = 60_000;
const MAX_REMEMBERED = 10_000;

const hashOf = (credential: string): Buffer => hash('sha256', credential, 'buffer');

/** A new session credential: `bs_<12 hex>_<43 base64url>`, 256 random bits behind a prefix that finds it. */
export const newSessionCredential = (
  randomBytes: RandomBytes,
): Readonly<{ text: string; stored: StoredCredential }> => {
  const prefix = randomBytes(6).toString('hex');
  const text = `bs_${prefix}_${randomBytes(32).toString('base64url')}`;
  return { text, stored: { prefix, hash: hashOf(text) } };
};

/** A new text that the control plane presents on port 8000: `bd_<43 base64url>`. */
export const newDaemonCredential = (randomBytes: RandomBytes): string => `bd_${randomBytes(32).toString('base64url')}`;

/** What the seal of a daemon credential is bound to. */
export const daemonCredentialContext = (sessionUid: string): string => `daemon-credential:${sessionUid}`;

/** What checking needs. */
export type CredentialsPorts = Readonly<{
  findCredential: (prefix: string) => Promise<CredentialRow | undefined>;
  clock: Clock;
}>;

/** Checks credentials and forgets answers. */
export type Credentials = Readonly<{
  find: FindSessionByCredential;
  /** Drops what is remembered of a session. */
  forget: (sessionUid: string) => void;
  /** Drops everything, after news may have been missed. */
  forgetAll: () => void;
}>;

type Remembered = { readonly identity: SandboxIdentity; readonly atMs: number; isStale: boolean };

/** Makes the check. */
export const makeCredentials = (ports: CredentialsPorts): Credentials => {
  const remembered = new Map<string, Remembered>();
  /** The newest credential of each session, so that one session is forgotten without a walk over all. */
  const newest = new Map<string, string>();

  const look = async (credential: string, prefix: string): Promise<SandboxIdentity | undefined> => {
    const row = await ports.findCredential(prefix);
    if (row === undefined || row.closed_at !== null) return undefined;
    const given = hashOf(credential);
    if (row.hash.length !== given.length || !timingSafeEqual(row.hash, given)) return undefined;
    if (row.generation !== row.newest_generation) {
      throw new ConflictError('superseded', `generation ${row.generation} is not the newest claim of the session`);
    }
    return {
      sessionUid: row.session_uid,
      generation: row.generation,
      podUid: row.pod_uid,
      namespace: row.namespace,
      projectUid: row.project_uid,
    };
  };

  const drop = (key: string): void => {
    const uid = remembered.get(key)?.identity.sessionUid;
    remembered.delete(key);
    if (uid !== undefined && newest.get(uid) === key) newest.delete(uid);
  };

  const remember = (key: string, identity: SandboxIdentity): void => {
    const older = newest.get(identity.sessionUid);
    if (older !== undefined) drop(older);
    remembered.set(key, { identity, atMs: ports.clock.monotonicMs(), isStale: false });
    newest.set(identity.sessionUid, key);
    const oldest = remembered.keys().next().value;
    if (remembered.size > MAX_REMEMBERED && oldest !== undefined) drop(oldest);
  };

  const ask = async (
    credential: string,
    prefix: string,
    key: string,
    known: Remembered | undefined,
  ): Promise<SandboxIdentity | undefined> => {
    const ageMs = known === undefined ? Number.POSITIVE_INFINITY : ports.clock.monotonicMs() - known.atMs;
    try {
      const identity = await look(credential, prefix);
      if (identity === undefined) drop(key);
      else remember(key, identity);
      return identity;
    } catch (error) {
      // A database that does not answer makes no valid credential invalid.
      if (error instanceof UnavailableError && known !== undefined && ageMs <= GRACE_MS) return known.identity;
      if (error instanceof ConflictError) drop(key);
      throw error;
    }
  };

  return {
    find: (credential) => {
      const prefix = SESSION_CREDENTIAL.exec(credential)?.[1];
      if (prefix === undefined) return undefined;
      const key = hash('sha256', credential, 'base64');
      const known = remembered.get(key);
      if (known !== undefined && !known.isStale && ports.clock.monotonicMs() - known.atMs <= FRESH_MS) {
        return known.identity;
      }
      return ask(credential, prefix, key, known);
    },
    forget: (sessionUid) => {
      const entry = remembered.get(newest.get(sessionUid) ?? '');
      if (entry !== undefined) entry.isStale = true;
    },
    forgetAll: () => {
      for (const entry of remembered.values()) entry.isStale = true;
    },
  };
};
