// Sends one prompt to a session and, if asked, shows its turn until it has ended. Must not know how the words were typed.
import { randomUUID } from 'node:crypto';
import type { StoredEvent } from '#schema/events/envelope.ts';
import { abortRoute, createPromptRoute, getPromptRoute, type PromptView } from '#schema/rest/prompts.ts';
import { sessionWait } from '#schema/rules/session-wait.ts';
import type { Api, ObjectName } from './connection/api.ts';
import { makeEventView } from './event-view.ts';
import { CommandError, EXIT, usageError } from './failure.ts';
import { fetchHead, followEvents } from './follow.ts';
import type { Io } from './io.ts';
import { watchStateBeside } from './watch-state.ts';
import { writeFully } from './write-fully.ts';

/** One prompt. */
export type Words = Readonly<{
  text: string;
  delivery: 'queue' | 'interrupt' | 'steer';
  agent?: string | undefined;
  model?: string | undefined;
}>;

/** Sends it. The message id makes a resend of the same call harmless. Errors: BeeuniError. */
export const sendPrompt = async (api: Api, session: ObjectName, words: Words): Promise<PromptView> => {
  const { text, delivery, agent, model } = words;
  const body = {
    messageId: newMessageId(),
    delivery,
    parts: [{ type: 'text' as const, text }],
    ...(agent === undefined ? {} : { agent }),
    ...(model === undefined ? {} : { model }),
  };
  return (await (await api.client()).call(createPromptRoute, { params: session, body })).body;
};

/**
 * Where text of a turn goes and how Ctrl-C is heard. `seconds`: how long the end of the turn is waited for; without it there is
 * no limit. `onEvent` sees every event that is shown.
 */
type Watching = Readonly<{
  io: Io;
  note: (line: string) => void;
  onStarted?: () => void;
  onEvent?: (event: StoredEvent) => void;
  seconds?: number | undefined;
  /** Said once where nothing runs: how a script leaves, which would hang without a word. */
  leaveHint?: string | undefined;
}>;

/** The value of `--timeout`; undefined where it was not given. Units: seconds. Errors: CommandError (usage). */
export const secondsOf = (text: string | undefined): number | undefined => {
  if (text === undefined || /^\d{1,5}$/.test(text)) return text === undefined ? undefined : Number(text);
  throw usageError('--timeout takes a number of seconds');
};

/** How long a push may take after the end of a turn that left commits. Units: milliseconds. */
const PUSH_LIMIT_MS = 30_000;

/** Whether an event ends the turn of a prompt, or the one that it joined, and how. */
const endOf = ({ type, turnId, data }: StoredEvent, promptId: string, joined: string | null): string | undefined => {
  const isItsOwn = data['promptId'] === promptId || (joined !== null && turnId === joined);
  return type === 'turn.ended' && isItsOwn ? String(data['outcome']) : undefined;
};

/**
 * Whether a prompt whose turn has ended badly waits for another one: a turn that broke off is tried once more. Never rejects;
 * what cannot be asked counts as over. Source: A155.
 */
export const isTriedAgain = async (api: Api, { namespace, name }: ObjectName, promptId: string): Promise<boolean> => {
  try {
    const params = { namespace, name, id: promptId };
    const { state } = (await (await api.client()).call(getPromptRoute, { params })).body;
    return state === 'queued' || state === 'running';
  } catch {
    return false;
  }
};

/** Said of such a prompt. */
export const TRIED_AGAIN = '-- the turn broke off; the prompt is tried again';

/**
 * Shows the events from `since` until the prompt has ended for good and its commits are pushed. Gives back the exit code.
 * Ctrl-C aborts the turn, a second one leaves. Errors: CommandError (unavailable) when its time is over; the turn goes on.
 */
export const watchPrompt = async (
  api: Api,
  session: ObjectName,
  promptId: string,
  since: number,
  watching: Watching,
): Promise<number> => {
  const { io, note, onStarted, onEvent, seconds } = watching;
  const leaving = new AbortController();
  let interrupts = 0;
  const forget = io.onInterrupt(() => {
    interrupts += 1;
    if (interrupts > 1) {
      leaving.abort();
      return;
    }
    note('\nending the turn; Ctrl-C again leaves');
    api
      .client()
      .then((client) => client.call(abortRoute, { params: session, body: {} }))
      .catch(() => note('the turn could not be ended; Ctrl-C leaves'));
  });
  const view = makeEventView({ prompts: false });
  let outcome: string | undefined;
  let joined: string | null = null;
  let commits = false;
  let timer: NodeJS.Timeout | undefined;
  let isLate = false;
  const limit =
    seconds === undefined
      ? undefined
      : setTimeout(() => {
          isLate = true;
          leaving.abort();
        }, seconds * 1_000);
  try {
    for await (const event of followEvents(api, session, { since, follow: true, signal: leaving.signal, note })) {
      await writeFully(io.stdout, view(event));
      onEvent?.(event);
      const isJoining = event.type === 'prompt.steered' && event.data['promptId'] === promptId;
      if (isJoining) joined = event.turnId;
      if (isJoining || (event.type === 'turn.started' && event.data['promptId'] === promptId)) onStarted?.();
      if (event.type === 'workspace.committed') commits = true;
      const ended = endOf(event, promptId, joined);
      outcome = ended ?? outcome;
      if (outcome === undefined) continue;
      if (ended !== undefined && ended !== 'Succeeded' && (await isTriedAgain(api, session, promptId))) {
        note(TRIED_AGAIN);
        [outcome, joined, commits] = [undefined, null, false];
        continue;
      }
      const isPushed = event.type === 'workspace.pushed' || event.type === 'workspace.push_failed';
      if (outcome !== 'Succeeded' || !commits || isPushed) break;
      timer ??= setTimeout(() => leaving.abort(), PUSH_LIMIT_MS);
    }
    if (outcome === undefined && isLate) {
      throw new CommandError(
        EXIT.unavailable,
        `the turn of prompt ${promptId} is not over after ${seconds} s`,
        `it goes on without you: ${followCall(session)}`,
      );
    }
    if (outcome === undefined) return EXIT.interrupted;
    return outcome === 'Succeeded' ? EXIT.done : EXIT.failed;
  } finally {
    clearTimeout(timer);
    clearTimeout(limit);
    forget();
    leaving.abort();
  }
};

/** The call that shows what a session does from now on. */
export const followCall = ({ namespace, name }: ObjectName): string =>
  `beeuni sessions log ${namespace}/${name} --follow`;

/** Sends something that becomes a turn, and shows that turn. Gives back the exit code. Errors: BeeuniError, CommandError. */
export const sendAndWatch = async (
  api: Api,
  session: ObjectName,
  send: () => Promise<PromptView>,
  watching: Watching,
): Promise<number> => {
  const head = await fetchHead(api, session, AbortSignal.timeout(60_000));
  const prompt = await send();
  if (prompt.deliveryReason !== null) watching.note(DELIVERY_REASONS[prompt.deliveryReason]);
  let hint = watching.leaveHint;
  const stopWatch = watchStateBeside(api, session, watching.note, (view) => {
    if (hint === undefined || sessionWait(view) === undefined) return false;
    watching.note(hint);
    hint = undefined;
    return false;
  });
  try {
    return await watchPrompt(api, session, prompt.id, head, { ...watching, onStarted: stopWatch });
  } finally {
    stopWatch();
  }
};

/** Why a prompt that should have joined the running turn waits instead. */
export const DELIVERY_REASONS = {
  unsupported: '-- this harness takes no prompt into a running turn: it waits behind it',
  not_prompter: "-- the running turn is somebody else's, and only they may add to it: it waits behind it",
  turn_ended: '-- no turn runs that could take the prompt: it is a turn of its own',
} as const;

/** A new message id: a resend of the same call is the same prompt. */
export const newMessageId = (): string => `cli-${randomUUID()}`;

/** Largest text that is read from a pipe. Units: bytes. */
const MAX_PIPED_BYTES = 1_048_576;

/** Everything that a pipe gives, as text. Errors: CommandError when it is too long or empty. */
export const readPiped = async (io: Io): Promise<string> => {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of io.stdin) {
    const bytes = Buffer.from(chunk as Uint8Array);
    size += bytes.length;
    if (size > MAX_PIPED_BYTES) throw new CommandError(EXIT.failed, 'the prompt is above 1 MiB');
    chunks.push(bytes);
  }
  const text = Buffer.concat(chunks).toString('utf8').trim();
  if (text === '') throw new CommandError(EXIT.usage, 'the prompt is empty');
  return text;
};
