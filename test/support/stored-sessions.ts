// Sessions in a database of their own, for tests of the store: builders with defaults, and the parts over one pool.

import { specMessageId, turnIdOf } from '#controlplane/app/prompts.ts';
import type { NewPrompt, SandboxClaim } from '#controlplane/app/session-records.ts';
import { decideTurnEnd } from '#controlplane/app/turn-end.ts';
import { makeAppendEvents } from '#controlplane/events/append.ts';
import { makeStoreBatch } from '#controlplane/store/append-batch.ts';
import { makeStoreClaim } from '#controlplane/store/claim-session.ts';
import { isDataError } from '#controlplane/store/errors.ts';
import { makeHealthStore } from '#controlplane/store/health-store.ts';
import { makePromptInbox } from '#controlplane/store/prompt-inbox.ts';
import { makeSessionEnds } from '#controlplane/store/session-ends.ts';
import type { Database } from '#controlplane/store/statement.ts';
import type { DaemonEvent } from '#schema/events/envelope.ts';

/** Time that rows are given where the test does not care. */
export const AT = '2026-11-30T12:00:00.000Z';

/** Names of a session by its uid. */
export const aSessionKey = (uid: string) => ({ uid, namespace: 'team', name: uid, projectUid: 'project-1' });

/** An event as a daemon sends it; `n` counts from 1. */
export const anEvent = (n: number, changes: Partial<DaemonEvent> = {}): DaemonEvent => ({
  n,
  id: `evt_${n}`,
  type: 'message.part.delta',
  at: AT,
  threadId: 'root',
  turnId: null,
  hidden: false,
  causedBy: null,
  data: { messageId: 'm1', partId: 'p1', field: 'text', delta: `word ${n}` },
  ...changes,
});

/** The terminal event of a turn. */
export const aTurnEnd = (n: number, turnId: string, data: Record<string, unknown> = {}): DaemonEvent =>
  anEvent(n, {
    type: 'turn.ended',
    turnId,
    data: { promptId: null, outcome: 'Succeeded', code: null, message: null, summary: 'done', commit: null, ...data },
  });

/** A prompt of a session; the same `messageId` is the same prompt. */
export const aPrompt = (sessionUid: string, messageId: string, changes: Partial<NewPrompt> = {}): NewPrompt => ({
  id: `prm_${sessionUid}_${messageId}`,
  sessionUid,
  messageId,
  origin: messageId === specMessageId(sessionUid) ? 'spec' : 'rest',
  delivery: 'queue',
  parts: [{ type: 'text', text: `please do ${messageId}` }],
  agent: null,
  model: null,
  sentBy: null,
  ...changes,
});

/** The store's parts over a database, and short ways to get somewhere. */
export const storedSessions = (database: Database) => {
  const storeClaim = makeStoreClaim(database, decideTurnEnd);
  const inbox = makePromptInbox(database);
  const ends = makeSessionEnds(database, decideTurnEnd);
  const append = makeAppendEvents({ storeBatch: makeStoreBatch(database, decideTurnEnd), isDataError });
  let credentials = 0;

  /**
   * Claims with a pod; the prefix of the credential is made up. `key`: the names of a session that also exists elsewhere. Whoever
   * comes first makes its row.
   */
  const claim = async (
    uid: string,
    podUid = `pod-${uid}`,
    agentRepoint?: Readonly<{ from: string; to: string }>,
    key = aSessionKey(uid),
  ): Promise<SandboxClaim> => {
    credentials += 1;
    const stored = await storeClaim({
      session: key,
      podUid,
      harness: 'opencode',
      credential: { prefix: `${uid}-${credentials}`, hash: Buffer.from(`hash ${credentials}`) },
      daemonCredential: Buffer.from('sealed'),
      at: AT,
      agentRepoint,
    });
    if (stored === undefined) throw new Error(`session ${uid} is closed`);
    return { sessionUid: uid, generation: stored.generation, podUid };
  };

  /** Takes the next turn, which must be there. */
  const take = async (taker: SandboxClaim): Promise<string> => {
    const taking = await inbox.take(taker, turnIdOf);
    if (taking.state !== 'taken') throw new Error(`no turn to take: ${taking.state}`);
    return taking.turn.turnId;
  };

  const rows = <Row>(text: string, ...values: unknown[]): Promise<Row[]> => database.query<Row>({ text, values });

  /** Places and types of a log, in order. */
  const log = (uid: string) =>
    rows<{ seq: number; type: string; turn_id: string | null; data: Record<string, unknown> }>(
      'select seq, type, turn_id, data from events where session_uid = $1 order by seq',
      uid,
    );

  return { claim, take, append, inbox, ends, health: makeHealthStore(database), rows, log };
};
