// The prompt inbox: a prompt is stored before it is answered, runs exactly once, in order; the daemon is nudged behind.
// Must not know SQL or HTTP. Source: 20-control-plane §9, A145, A154.
import { ConflictError, NotFoundError } from '#base/errors.ts';
import { headOfBytes } from '#base/head-of-text.ts';
import type { Session } from '#schema/resources/session.ts';
import type { PromptView } from '#schema/rest/prompts.ts';
import { modelsTrouble, sessionWait, waitSentence } from '#schema/rules/session-wait.ts';
import type { SteeredPrompt } from '#schema/wire/runtime.ts';
import { afterKey, type Page, type PageRequest, pageFrom } from './page.ts';
import type { FindProject } from './ports.ts';
import type { Delivery, DeliveryReason, NewPrompt, PromptPart, PromptState, SessionKey } from './session-records.ts';

/** A prompt as a client sends it. `sentBy`: see callerName. */
export type PromptInput = Readonly<{
  messageId: string | undefined;
  delivery: Delivery;
  parts: readonly PromptPart[];
  agent: string | undefined;
  model: string | undefined;
  sentBy: string;
}>;

/** What the inbox needs. */
export type PromptsPorts = Readonly<{
  keyOf: (session: Session) => SessionKey;
  /** From memory. */
  findProject: FindProject;
  /** Stores a prompt; undefined for a closed session. Errors: LimitError `rate_limited`. */
  admit: (
    session: SessionKey,
    prompt: NewPrompt,
  ) => Promise<
    | Readonly<{
        prompt: PromptState;
        created: boolean;
        abortTurnId: string | undefined;
        steerTurnId: string | undefined;
      }>
    | undefined
  >;
  /** See PromptInbox. */
  queueSteered: (sessionUid: string, id: string, reason: DeliveryReason) => Promise<PromptState | undefined>;
  /** Whether the session's harness takes prompts while it works. */
  maySteer: (sessionUid: string) => Promise<boolean>;
  /** Gives the daemon a prompt for its running turn; never fails. `unknown`: it may or may not have it. */
  steer: (sessionUid: string, prompt: SteeredPrompt) => Promise<'joined' | 'unknown' | DeliveryReason>;
  /** Creates rows for sessions that are new, and their prompts. */
  admitSeen: (sessions: readonly SessionKey[], prompts: readonly NewPrompt[]) => Promise<void>;
  findPrompt: (sessionUid: string, id: string) => Promise<PromptState | undefined>;
  /** Prompts below an ordinal, newest first. */
  listBelow: (sessionUid: string, below: number, limit: number) => Promise<readonly PromptState[]>;
  withdraw: (sessionUid: string, id: string) => Promise<boolean>;
  askAbort: (sessionUid: string) => Promise<string | undefined>;
  wake: (session: SessionKey) => Promise<void>;
  /** Tells the daemon to look; never fails, never waits long. */
  nudge: (sessionUid: string) => void;
  /** Tells the daemon to end a turn; never fails: the daemon also hears of it in the answer to its next report. */
  abort: (sessionUid: string, turnId: string) => void;
  /** A new random id without prefix: 20 hex digits. */
  newId: () => string;
}>;

/** Functions on prompts; each is for a session that exists. */
export type Prompts = Readonly<{
  /** Errors: ConflictError `session_failed` for a session that is being removed, LimitError `rate_limited`. */
  send: (session: Session, input: PromptInput) => Promise<PromptView>;
  list: (session: Session, page: PageRequest) => Promise<Page<PromptView>>;
  /** Errors: NotFoundError `prompt_not_found`. */
  get: (session: Session, id: string) => Promise<PromptView>;
  /** Errors: NotFoundError `prompt_not_found`, ConflictError `prompt_started`. */
  withdraw: (session: Session, id: string) => Promise<void>;
  /** Gives back the turn's id. Errors: ConflictError `no_active_turn`. */
  abortTurn: (session: Session) => Promise<string>;
  /** Wishes for a start of a session that sleeps. */
  wake: (session: Session) => Promise<void>;
  /** Makes sure that sessions, and the prompts of their specs, are in the database. */
  admitSeen: (sessions: readonly Session[]) => Promise<void>;
}>;

/** The message id of a session's `spec.prompt`. */
export const specMessageId = (sessionUid: string): string => `spec:${sessionUid}`;

/** Id of the turn that runs one attempt of a prompt: the same for a resend. */
export const turnIdOf = (promptId: string, attempt: number): string =>
  `trn_${promptId.replace(/^prm_/, '')}_${attempt}`;

const MAX_NOTE_BYTES = 512;

const FIRST_PAGE_BELOW = Number.MAX_SAFE_INTEGER;

/** Makes the functions. */
export const makePrompts = (ports: PromptsPorts): Prompts => {
  /** Why a queued prompt waits for more than the turns before it, or will get no answer; null for neither. Source: 10-kubernetes §4. */
  const waitNote = (
    { metadata: { namespace, name }, spec, status }: Session,
    { state }: PromptState,
  ): string | null => {
    if (state !== 'queued') return null;
    const wait = sessionWait({ namespace, name, spec, status: status ?? {} });
    const project = spec.projectRef.name;
    const says =
      wait === undefined ? modelsTrouble(project, ports.findProject(namespace, project)?.status) : waitSentence(wait);
    return says === undefined ? null : headOfBytes(says, MAX_NOTE_BYTES);
  };

  const viewOf = (session: Session, prompt: PromptState, deduplicated: boolean): PromptView => ({
    id: prompt.id,
    messageId: prompt.message_id,
    state: prompt.state,
    origin: prompt.origin,
    turnId: prompt.turn_id,
    outcome: prompt.outcome,
    createdAt: prompt.created_at,
    delivery: prompt.delivery,
    deliveryReason: prompt.delivery_reason,
    startedAt: prompt.started_at,
    endedAt: prompt.ended_at,
    deduplicated,
    note: waitNote(session, prompt),
  });

  const found = async (session: Session, id: string): Promise<PromptState> => {
    const prompt = await ports.findPrompt(session.metadata.uid, id);
    if (prompt !== undefined) return prompt;
    throw new NotFoundError('prompt_not_found', `session ${session.metadata.name} has no prompt ${id}`);
  };
  const newPrompt = (sessionUid: string, from: Omit<NewPrompt, 'id' | 'sessionUid'>): NewPrompt => ({
    id: `prm_${ports.newId()}`,
    sessionUid,
    ...from,
  });

  /** Lets a stored prompt join a turn while it runs, or wait in the queue with the reason. Source: A146, A154. */
  const steered = async (
    uid: string,
    turnId: string,
    stored: PromptState,
    { messageId, parts }: NewPrompt,
  ): Promise<PromptState> => {
    const texts = parts.filter((part) => part.type === 'text');
    const result = await ports.steer(uid, { promptId: stored.id, turnId, messageId, parts: texts });
    if (result === 'joined' || result === 'unknown') return stored;
    const queued = await ports.queueSteered(uid, stored.id, result);
    ports.nudge(uid);
    return queued ?? stored;
  };

  return {
    send: async (session, input) => {
      const { uid, name } = session.metadata;
      const canSteer = input.delivery !== 'steer' || (await ports.maySteer(uid));
      const prompt = newPrompt(uid, {
        messageId: input.messageId ?? `msg_${ports.newId()}`,
        origin: 'rest',
        delivery: canSteer ? input.delivery : 'queue',
        deliveryReason: canSteer ? undefined : 'unsupported',
        parts: input.parts,
        agent: input.agent ?? null,
        model: input.model ?? null,
        sentBy: input.sentBy,
      });
      const stored = await ports.admit(ports.keyOf(session), prompt);
      if (stored === undefined) throw new ConflictError('session_failed', `session ${name} is being removed`);
      if (stored.abortTurnId !== undefined) ports.abort(uid, stored.abortTurnId);
      if (stored.steerTurnId !== undefined) {
        return viewOf(session, await steered(uid, stored.steerTurnId, stored.prompt, prompt), false);
      }
      if (stored.created) ports.nudge(uid);
      return viewOf(session, stored.prompt, !stored.created);
    },

    list: async (session, page) => {
      const key = afterKey(page);
      const below = key === '' ? FIRST_PAGE_BELOW : Number(key);
      const prompts = await ports.listBelow(session.metadata.uid, below, page.limit + 1);
      const shown = pageFrom(prompts, page.limit, (prompt) => String(prompt.ordinal));
      return { items: shown.items.map((prompt) => viewOf(session, prompt, false)), cursor: shown.cursor };
    },

    get: async (session, id) => viewOf(session, await found(session, id), false),

    withdraw: async (session, id) => {
      const prompt = await found(session, id);
      if (prompt.state === 'withdrawn' || (await ports.withdraw(session.metadata.uid, id))) return;
      if ((await found(session, id)).state === 'withdrawn') return;
      throw new ConflictError('prompt_started', `prompt ${id} has started; abort its turn instead`);
    },

    abortTurn: async (session) => {
      const { uid, name } = session.metadata;
      const turnId = await ports.askAbort(uid);
      if (turnId === undefined) throw new ConflictError('no_active_turn', `session ${name} runs no turn`);
      ports.abort(uid, turnId);
      return turnId;
    },

    wake: (session) => ports.wake(ports.keyOf(session)),

    admitSeen: async (seen) => {
      // What is being deleted was admitted before, or needs no row any more.
      const sessions = seen.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
      const keys = sessions.map(ports.keyOf).sort((a, b) => (a.uid < b.uid ? -1 : 1));
      const prompts = sessions.flatMap(({ metadata: { uid }, spec }) =>
        spec.prompt === undefined
          ? []
          : newPrompt(uid, {
              messageId: specMessageId(uid),
              origin: 'spec',
              delivery: 'queue',
              parts: [{ type: 'text', text: spec.prompt }],
              agent: null,
              model: null,
              sentBy: null,
            }),
      );
      if (keys.length > 0) await ports.admitSeen(keys, prompts);
    },
  };
};
