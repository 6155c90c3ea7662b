// A conversation in the terminal: what the agent does as it comes, what the person types as prompts. Ctrl-C ends the running turn,
// a second one leaves; what is typed while a turn runs waits behind it. Must not know how a server is reached.
import { createInterface } from 'node:readline';
import type { StoredEvent } from '#schema/events/envelope.ts';
import { abortRoute, type PromptView } from '#schema/rest/prompts.ts';
import { answerPermissionRoute, answerQuestionRoute } from '#schema/rest/requests.ts';
import { runCommandRoute, runShellRoute } from '#schema/rest/session-verbs.ts';
import type { Api, ObjectName } from './connection/api.ts';
import { makeEventView } from './event-view.ts';
import { EXIT, failureOf } from './failure.ts';
import { followEvents } from './follow.ts';
import { choicesOf, questionCount, readPermission } from './human-requests.ts';
import type { Io } from './io.ts';
import { DELIVERY_REASONS, isTriedAgain, newMessageId, sendPrompt, TRIED_AGAIN, type Words } from './send-prompt.ts';
import { watchStateBeside } from './watch-state.ts';

/** Settings of a conversation. `since`: the event after which it is shown. `withPrompts`: earlier prompts are shown too. */
export type ChatOptions = Readonly<{
  since: number | undefined;
  withPrompts: boolean;
  delivery: Words['delivery'];
  agent: string | undefined;
  model: string | undefined;
}>;

/** What a typed line is. Pure. */
export type Typed =
  | Readonly<{ kind: 'nothing' | 'leave' | 'abort' | 'help' }>
  | Readonly<{ kind: 'prompt'; text: string }>
  | Readonly<{ kind: 'shell'; text: string }>
  | Readonly<{ kind: 'command'; name: string; text: string }>;

/** Reads a typed line: `/quit`, `/abort`, `/help`, another slash command, `!` with a shell command, or a prompt. */
export const readTyped = (line: string): Typed => {
  const text = line.trim();
  if (text === '') return { kind: 'nothing' };
  if (text === '/quit' || text === '/exit') return { kind: 'leave' };
  if (text === '/abort' || text === '/stop') return { kind: 'abort' };
  if (text === '/help') return { kind: 'help' };
  if (/^!./.test(text)) return { kind: 'shell', text: text.slice(1).trim() };
  const [, name, rest = ''] = /^\/([a-zA-Z0-9][\w:.-]*)(?:\s+([^]*))?$/.exec(text) ?? [];
  return name === undefined ? { kind: 'prompt', text } : { kind: 'command', name, text: rest };
};

/** What Ctrl-C does. Pure: `turnRuns`, and whether the turn was already asked to end. */
export const onCtrlC = (turnRuns: boolean, asked: boolean): 'abort' | 'leave' =>
  turnRuns && !asked ? 'abort' : 'leave';

const HELP =
  'type a prompt, /COMMAND or !SHELL; /abort ends the turn, /quit leaves; Ctrl-C ends the turn, a second one leaves';

const ANSWER_HELP = {
  'permission.asked': '   type o (once), a (always) or r (reject)',
  'question.asked': '   type your answer, or /reject; several questions: beeuni sessions answer',
} as const;

/** Talks until the person leaves. Gives back the exit code: `interrupted` after Ctrl-C. */
export const chat = async (api: Api, session: ObjectName, io: Io, options: ChatOptions): Promise<number> => {
  const leaving = new AbortController();
  /** Messages of this conversation that are shell commands. */
  const shellMessages = new Set<string>();
  const view = makeEventView({ prompts: options.withPrompts, isShell: (id) => shellMessages.has(id) });
  const lines = createInterface({ input: io.stdin, output: io.stdout, terminal: true, prompt: '> ' });
  let turnRuns = false;
  let abortAsked = false;
  let promptShown = false;
  let isLineStart = true;
  let sending = 0;
  let isInterrupted = false;
  /** Prompts of this conversation that have not ended, and those that ended before the answer to them came. */
  const mine = new Set<string>();
  const over = new Set<string>();
  /** What the agent asks and nobody has answered, oldest first. */
  let asked: readonly StoredEvent[] = [];

  const write = (text: string): void => {
    if (text === '') return;
    // What was typed so far is put back below the new text.
    if (promptShown) io.stdout.write('\r\u001b[K');
    io.stdout.write(text);
    isLineStart = text.endsWith('\n');
    if (promptShown) {
      if (!text.endsWith('\n')) io.stdout.write('\n');
      lines.prompt(true);
    }
  };
  const note = (line: string): void => write(`${isLineStart || promptShown ? '' : '\n'}${line}\n`);
  const showPrompt = (): void => {
    promptShown = true;
    isLineStart = true;
    lines.prompt();
  };
  const isIdle = (): boolean => !turnRuns && sending === 0 && mine.size === 0;
  /** Says why nothing runs while a prompt of this conversation waits and no turn runs. */
  let stopWatch: (() => void) | undefined;
  const watchWait = (): void => {
    if (mine.size === 0 || turnRuns || leaving.signal.aborted) return;
    stopWatch ??= watchStateBeside(api, session, note);
  };
  const endWatch = (): void => {
    stopWatch?.();
    stopWatch = undefined;
  };
  const sayFailure = (error: unknown): void => {
    for (const line of failureOf(error, api.hintOf).lines) note(line);
  };

  const abort = async (): Promise<void> => {
    abortAsked = true;
    note('ending the turn; Ctrl-C again leaves');
    try {
      await (await api.client()).call(abortRoute, { params: session, body: {} });
    } catch (error) {
      sayFailure(error);
    }
  };
  const leave = (): void => {
    leaving.abort();
    endWatch();
    lines.close();
  };

  /** Answers what the agent asks by a typed line; false when the line is no answer to it. */
  const answer = async (request: StoredEvent, line: string): Promise<boolean> => {
    const params = { ...session, id: String(request.data['id']) };
    const client = await api.client();
    if (request.type === 'permission.asked') {
      const reply = readPermission(line);
      if (reply === undefined) return false;
      await client.call(answerPermissionRoute, { params, body: { reply } });
      return true;
    }
    const isDismissed = line.trim() === '/reject';
    if (!isDismissed && (line.trim() === '' || line.startsWith('/') || questionCount(request.data) > 1)) return false;
    const body = isDismissed ? { reject: true as const } : { answers: [choicesOf(request.data, 0, line)] };
    await client.call(answerQuestionRoute, { params, body });
    return true;
  };

  /** Sends what becomes a turn. */
  const send = async (typed: Extract<Typed, { text: string }>): Promise<PromptView> => {
    const { delivery, agent, model } = options;
    if (typed.kind === 'prompt') return sendPrompt(api, session, { text: typed.text, delivery, agent, model });
    const client = await api.client();
    const messageId = newMessageId();
    const params = session;
    if (typed.kind === 'shell') {
      shellMessages.add(messageId);
      return (await client.call(runShellRoute, { params, body: { messageId, command: typed.text } })).body;
    }
    const body = { messageId, name: typed.name, arguments: typed.text };
    return (await client.call(runCommandRoute, { params, body })).body;
  };

  const onLine = async (line: string): Promise<void> => {
    promptShown = false;
    const [request] = asked;
    if (request !== undefined) {
      try {
        if (await answer(request, line)) return;
      } catch (error) {
        sayFailure(error);
        return showPrompt();
      }
    }
    const typed = readTyped(line);
    if (typed.kind === 'leave') return leave();
    if (typed.kind === 'help') note(HELP);
    if (typed.kind === 'abort') await abort();
    if (typed.kind === 'prompt' || typed.kind === 'shell' || typed.kind === 'command') {
      const { delivery } = options;
      if (turnRuns && delivery === 'queue') note('-- waits behind the running turn');
      sending += 1;
      try {
        const prompt = await send(typed);
        if (turnRuns && prompt.deliveryReason !== null) note(DELIVERY_REASONS[prompt.deliveryReason]);
        if (!over.has(prompt.id)) mine.add(prompt.id);
        watchWait();
      } catch (error) {
        sayFailure(error);
      }
      sending -= 1;
      if (sending === 0) over.clear();
    }
    if (isIdle()) showPrompt();
  };

  const tellRetry = async (promptId: string): Promise<void> => {
    if (await isTriedAgain(api, session, promptId)) note(TRIED_AGAIN);
  };

  const onEvent = (event: StoredEvent): void => {
    write(view(event));
    if (event.type === 'turn.started') {
      turnRuns = true;
      endWatch();
      abortAsked = false;
    }
    if (event.type === 'permission.asked' || event.type === 'question.asked') {
      asked = [...asked, event];
      note(ANSWER_HELP[event.type]);
      showPrompt();
    }
    if (/^(permission|question)\.(replied|rejected)$/.test(event.type)) {
      asked = asked.filter(({ data }) => data['id'] !== event.data['id']);
    }
    // A prompt ends with the turn that it started, or as soon as it joined one.
    if (event.type === 'turn.ended' || event.type === 'prompt.steered') {
      const promptId = String(event.data['promptId']);
      if (sending > 0) over.add(promptId);
      mine.delete(promptId);
    }
    if (event.type === 'turn.ended') {
      turnRuns = false;
      asked = [];
      if (event.data['outcome'] !== 'Succeeded') void tellRetry(String(event.data['promptId']));
      watchWait();
      if (isIdle()) showPrompt();
    }
  };

  lines.on('line', (line) => void onLine(line));
  lines.on('SIGINT', () => {
    if (onCtrlC(turnRuns, abortAsked) === 'abort') void abort();
    else {
      isInterrupted = true;
      leave();
    }
  });
  lines.on('close', () => leaving.abort());
  note(`session ${session.namespace}/${session.name}: ${HELP}`);
  showPrompt();
  try {
    const { since } = options;
    for await (const event of followEvents(api, session, { since, follow: true, signal: leaving.signal, note })) {
      onEvent(event);
    }
    return isInterrupted ? EXIT.interrupted : EXIT.done;
  } finally {
    leave();
    io.stdout.write('\n');
  }
};
