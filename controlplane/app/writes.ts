// What surrounds every change through the REST API: one audit row, and one answer per idempotency key.
// Must not know routes, SQL or HTTP. Source: 20-control-plane §2.
import { BeeuniError, ConflictError, InvalidError } from '#base/errors.ts';

/**
 * Who does what to which object. `digest` is of operation, object and body: it tells two calls apart and hides them.
 * `digestState` is of the object's declared state at the moment it is called, undefined when there is none.
 */
export type Write = Readonly<{
  requestId: string;
  subject: string;
  operation: string;
  namespace: string | undefined;
  name: string | undefined;
  digest: string;
  digestState: () => Promise<string | undefined>;
}>;

/** An answer as it can be stored. */
export type StoredAnswer = Readonly<{ status: number; body: unknown }>;

/** What is known under an idempotency key; `claimed`: nothing, and it is ours now. */
export type KeyState =
  | Readonly<{ kind: 'claimed' }>
  | Readonly<{ kind: 'running'; digest: string }>
  | Readonly<{ kind: 'answered'; digest: string; answer: StoredAnswer }>;

/** How a write ended. */
export type WriteEnd = Readonly<{ status: number; code: string | undefined; after: string | undefined }>;

/** The records. Errors of all: UnavailableError `database_unavailable`. */
export type WriteRecords = Readonly<{
  /** Stores that the write begins, and the digest of what is there before; gives back the row's id. */
  begin: (write: Write, before: string | undefined) => Promise<number>;
  /** Stores how it ended, and the digest of what is there after a success; `code` is that of the error. */
  end: (id: number, end: WriteEnd) => Promise<void>;
  /** Takes a key, unless it was used within 24 hours; one whose call died is taken over after two minutes. */
  claimKey: (subject: string, key: string, digest: string) => Promise<KeyState>;
  answerKey: (subject: string, key: string, answer: StoredAnswer) => Promise<void>;
  /** Gives a key back after a failed call, so that it can be tried again. */
  releaseKey: (subject: string, key: string) => Promise<void>;
}>;

/** What recording needs. `onLost` is told when a record could not be completed; the answer is sent all the same. */
export type WritesPorts = Readonly<{ records: WriteRecords; onLost: (error: unknown) => void }>;

/** Runs a change with its records. Errors: those of `run`, InvalidError `idempotency_key_reused`, ConflictError `conflict`. */
export type RecordWrite = (
  write: Write,
  key: string | undefined,
  run: () => Promise<StoredAnswer>,
) => Promise<StoredAnswer>;

const MAX_KEY = 255;

const checkKey = (key: string): void => {
  if (!/^[\x21-\x7e]+$/.test(key) || key.length > MAX_KEY) {
    throw new InvalidError('invalid_request', `idempotency-key must be 1 to ${MAX_KEY} visible ASCII characters`);
  }
};

const refuseReuse = (known: string, digest: string): void => {
  if (known !== digest) {
    throw new InvalidError('idempotency_key_reused', 'this idempotency key was used for another call; use a new one');
  }
};

/** The one way in which REST handlers that change something are run. */
export const makeRecordWrite = ({ records, onLost }: WritesPorts): RecordWrite => {
  const audited = async (write: Write, run: () => Promise<StoredAnswer>): Promise<StoredAnswer> => {
    const id = await records.begin(write, await write.digestState());
    try {
      const answer = await run();
      const after = await write.digestState().catch(onLost);
      await records.end(id, { status: answer.status, code: undefined, after: after ?? undefined }).catch(onLost);
      return answer;
    } catch (error) {
      const ours = error instanceof BeeuniError ? error : undefined;
      const end = { status: ours?.status ?? 500, code: ours?.code ?? 'internal', after: undefined };
      await records.end(id, end).catch(onLost);
      throw error;
    }
  };

  return async (write, key, run) => {
    if (key === undefined) return audited(write, run);
    checkKey(key);
    const state = await records.claimKey(write.subject, key, write.digest);
    if (state.kind !== 'claimed') {
      refuseReuse(state.digest, write.digest);
      if (state.kind === 'answered') return state.answer;
      throw new ConflictError('conflict', 'the first call with this idempotency key has not ended yet; try again');
    }
    try {
      const answer = await audited(write, run);
      await records.answerKey(write.subject, key, answer).catch(onLost);
      return answer;
    } catch (error) {
      await records.releaseKey(write.subject, key).catch(onLost);
      throw error;
    }
  };
};
