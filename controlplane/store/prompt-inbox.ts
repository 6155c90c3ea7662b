// Transactions on the prompt inbox: admission, taking the next turn, withdrawal, abort. Exactly once under any number
// of callers: every change happens under the session's lock. Must not know the rules of admission.
import { InvalidError, LimitError } from '#base/errors.ts';
import { sameJson } from '#base/same-json.ts';
import type {
  DeliveryReason,
  NewPrompt,
  PinSettings,
  PromptState,
  PromptWithParts,
  SandboxClaim,
  SessionKey,
  Taking,
} from '../app/session-records.ts';
import { ROOT_THREAD } from './end-turns.ts';
import { advanceLogs, insertEvents } from './events.ts';
import { raiseFact, raiseFacts } from './facts.ts';
import {
  countQueued,
  getNextPrompt,
  getPrompt,
  getPromptByMessageId,
  getRunningPrompt,
  insertPrompts,
  queueSteered,
  startPrompt,
  withdrawPrompt,
} from './prompts.ts';
import { ensureSessions, type LockedSession, lockSessions, wantStart } from './sessions.ts';
import { readSettings } from './settings-store.ts';
import { type Database, firstRow, type Query } from './statement.ts';
import { wantTitles } from './titles.ts';
import { askAbort, getOpenTurn, getTurnSettings, insertTurn, type TurnRow } from './turns.ts';

/** Prompts that may wait in one session. */
const MAX_QUEUED = 1_000;

/** A stored prompt; `created: false` for a message id that the session already had. `abortTurnId`: the turn to end first. */
export type StoredPrompt = Readonly<{
  prompt: PromptState;
  created: boolean;
  abortTurnId: string | undefined;
  steerTurnId: string | undefined;
}>;

/** Functions of the inbox. */
export type PromptInbox = Readonly<{
  /**
   * Undefined for a closed session. Errors: LimitError `rate_limited` when 1,000 prompts wait, InvalidError
   * `idempotency_key_reused` for a message id that stands for another prompt.
   */
  admit: (session: SessionKey, prompt: NewPrompt) => Promise<StoredPrompt | undefined>;
  /** Creates the rows of sessions that are new, and their prompts. */
  admitSeen: (sessions: readonly SessionKey[], prompts: readonly NewPrompt[]) => Promise<void>;
  /** The running prompt of this generation again, else the next one. `turnIdOf` names the turn of an attempt; `pin` gives a new turn its settings, which the log tells. */
  take: (
    taker: SandboxClaim,
    turnIdOf: (promptId: string, attempt: number) => string,
    pin?: PinSettings,
  ) => Promise<Taking>;
  /** Lets a prompt that cannot join the running turn wait in the queue; undefined when it joined or does not wait. */
  queueSteered: (sessionUid: string, id: string, reason: DeliveryReason) => Promise<PromptState | undefined>;
  /** Whether the prompt waited and is now withdrawn. */
  withdraw: (sessionUid: string, id: string) => Promise<boolean>;
  /** The turn that was asked to end; undefined when none is open. */
  askAbort: (sessionUid: string) => Promise<string | undefined>;
  /** Wishes for a start. */
  wake: (session: SessionKey) => Promise<void>;
}>;

/** Appends what a run was given, before anything of the run itself. The session is locked. */
const tellPinned = async (
  query: Query,
  session: LockedSession,
  turnId: string,
  { at, settings }: ReturnType<PinSettings>,
): Promise<void> => {
  const seq = session.head_seq + 1;
  await query(
    insertEvents([
      {
        session_uid: session.uid,
        seq,
        generation: session.generation,
        n: null,
        id: `pin_${turnId}`,
        type: 'run.settings.pinned',
        thread_id: ROOT_THREAD,
        turn_id: turnId,
        at,
        hidden: true,
        caused_by: null,
        data: JSON.stringify(settings),
      },
    ]),
  );
  await query(advanceLogs([{ uid: session.uid, headSeq: seq, acknowledgedN: session.acknowledged_n }]));
};

/** A message id stands for one content: the same id with another one is a mistake that must not be lost. */
const refuseOtherContent = (known: PromptWithParts, sent: NewPrompt): void => {
  const isSame = sameJson(known.parts, sent.parts) && known.agent === sent.agent && known.model === sent.model;
  if (isSame) return;
  throw new InvalidError(
    'idempotency_key_reused',
    'this messageId was used for another prompt of the session; use a new one',
  );
};

/** Why a prompt cannot join the open turn; undefined when it may. The session is locked. Source: A154. */
const whyNotSteered = async (
  query: Query,
  { sessionUid, sentBy }: NewPrompt,
  open: TurnRow | undefined,
): Promise<DeliveryReason | undefined> => {
  if (open === undefined) return 'turn_ended';
  const sender = (await firstRow(query, getPrompt(sessionUid, open.prompt_id)))?.sent_by ?? null;
  // Where nobody is known to have sent it, nobody is somebody else.
  return sender === null || sender === sentBy ? undefined : 'not_prompter';
};

/** The inbox over a database. */
export const makePromptInbox = (database: Database): PromptInbox => ({
  admit: (session, prompt) =>
    database.withTransaction(async (query) => {
      await query(ensureSessions([session]));
      const locked = await firstRow(query, lockSessions([session.uid]));
      if (locked === undefined || locked.closed_at !== null) return undefined;
      const known = await firstRow(query, getPromptByMessageId(session.uid, prompt.messageId));
      if (known !== undefined) {
        refuseOtherContent(known, prompt);
        return { prompt: known, created: false, abortTurnId: undefined, steerTurnId: undefined };
      }
      const waiting = await firstRow(query, countQueued(session.uid));
      if ((waiting?.count ?? 0) >= MAX_QUEUED) {
        throw new LimitError('rate_limited', `${MAX_QUEUED} prompts wait already; withdraw some or let them run`);
      }
      const open = prompt.delivery === 'steer' ? await firstRow(query, getOpenTurn(session.uid)) : undefined;
      const reason = prompt.delivery === 'steer' ? await whyNotSteered(query, prompt, open) : undefined;
      const placed: NewPrompt =
        reason === undefined ? prompt : { ...prompt, delivery: 'queue', deliveryReason: reason };
      const made = await firstRow(query, insertPrompts([placed]));
      if (made === undefined) throw new Error('a prompt of a locked session was not inserted');
      await query(wantTitles([session.uid]));
      const asked = prompt.delivery === 'interrupt' ? await firstRow(query, askAbort(session.uid)) : undefined;
      await raiseFact(query, { kind: 'session', uid: session.uid });
      return {
        prompt: made,
        created: true,
        abortTurnId: asked?.id,
        steerTurnId: reason === undefined ? open?.id : undefined,
      };
    }),

  admitSeen: (sessions, prompts) =>
    database.withTransaction(async (query) => {
      const created = await query(ensureSessions(sessions));
      const queued = prompts.length === 0 ? [] : await query(insertPrompts(prompts));
      if (queued.length > 0) await query(wantTitles(queued.map((row) => row.session_uid)));
      const uids = new Set([...created.map((row) => row.uid), ...queued.map((row) => row.session_uid)]);
      await raiseFacts(
        query,
        [...uids].map((uid) => ({ kind: 'session', uid })),
      );
    }),

  take: (taker, turnIdOf, pin) =>
    database.withTransaction(async (query) => {
      const uid = taker.sessionUid;
      const session = await firstRow(query, lockSessions([uid]));
      const isNewest = session?.generation === taker.generation && session.closed_at === null;
      if (!isNewest) return { state: 'superseded' };
      const running = await firstRow(query, getRunningPrompt(uid));
      if (running !== undefined) {
        if (running.turn_id === null) throw new Error('a running prompt has no turn');
        const settings = (await firstRow(query, getTurnSettings(running.turn_id)))?.settings ?? null;
        return { state: 'taken', turn: { turnId: running.turn_id, prompt: running, settings } };
      }
      if (session.fenced_pod_uid === taker.podUid) return { state: 'nothing' };
      const next = await firstRow(query, getNextPrompt(uid));
      if (next === undefined) return { state: 'nothing' };
      const attempt = next.attempt + 1;
      const turnId = turnIdOf(next.id, attempt);
      const pinned = pin === undefined ? undefined : pin(await readSettings(query), next);
      const settings = pinned?.settings ?? null;
      await query(startPrompt(next.id, attempt, turnId));
      await query(
        insertTurn({ id: turnId, sessionUid: uid, promptId: next.id, generation: taker.generation, attempt, settings }),
      );
      if (pinned !== undefined) await tellPinned(query, session, turnId, pinned);
      await raiseFact(query, { kind: 'session', uid });
      return { state: 'taken', turn: { turnId, prompt: next, settings } };
    }),

  queueSteered: (sessionUid, id, reason) =>
    database.withTransaction(async (query) => {
      await query(lockSessions([sessionUid]));
      return firstRow(query, queueSteered(sessionUid, id, reason));
    }),

  withdraw: (sessionUid, id) =>
    database.withTransaction(async (query) => {
      await query(lockSessions([sessionUid]));
      const withdrawn = await firstRow(query, withdrawPrompt(sessionUid, id));
      if (withdrawn !== undefined) await raiseFact(query, { kind: 'session', uid: sessionUid });
      return withdrawn !== undefined;
    }),

  askAbort: (sessionUid) =>
    database.withTransaction(async (query) => {
      await query(lockSessions([sessionUid]));
      return (await firstRow(query, askAbort(sessionUid)))?.id;
    }),

  wake: (session) =>
    database.withTransaction(async (query) => {
      await query(ensureSessions([session]));
      await query(lockSessions([session.uid]));
      await query(wantStart(session.uid));
      await raiseFact(query, { kind: 'session', uid: session.uid });
    }),
});
