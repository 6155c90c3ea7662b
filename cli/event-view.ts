// What a person sees of the event log: the agent's words as they come, a line for each tool, turn, question and push.
// Pure but for what it remembers of the log so far. Every foreign text is made harmless here. Must not know where text goes.
import type { StoredEvent } from '#schema/events/envelope.ts';
import type { MessageView } from '#schema/rest/transcript.ts';
import { plainLine, plainText } from './plain-text.ts';

/** Text to write for the next event, exactly as it is; empty for an event that says nothing to a person. */
export type EventView = (event: StoredEvent) => string;

/**
 * What is shown. `prompts`: the person's own prompts too, for a log that is read later. `isShell`: whether a message is a shell
 * command of the person, who wants to see what it printed.
 */
export type EventViewOptions = Readonly<{ prompts: boolean; isShell?: (messageId: string) => boolean }>;

/** The thread of the session itself; others are subagents. */
const ROOT = 'root';
const TOOL_LINE = 120;
const COMMIT_DIGITS = 12;

type Fields = Readonly<Record<string, unknown>>;
const fieldsOf = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {});
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

const commitText = (value: unknown): string => plainLine(textOf(value).slice(0, COMMIT_DIGITS));

/** One line of a tool call: its name and the most telling part of its input. */
const toolText = (part: Fields): string => {
  const state = fieldsOf(part['state']);
  const input = fieldsOf(state['input']);
  const told = ['command', 'filePath', 'path', 'pattern', 'query', 'url', 'description'].map((key) => input[key]);
  const first = told.find((value) => typeof value === 'string' && value !== '');
  const words = textOf(first) || textOf(state['title']) || (JSON.stringify(state['input'] ?? {}) ?? '');
  return plainLine(`${textOf(part['tool'])} ${words}`, TOOL_LINE);
};

const questionLines = (data: Fields): readonly string[] => {
  const questions = Array.isArray(data['questions']) ? data['questions'] : [];
  return questions.flatMap((entry: unknown, at: number) => {
    const question = fieldsOf(entry);
    const options = Array.isArray(question['options']) ? question['options'] : [];
    const labels = options.map((option: unknown) => plainLine(textOf(fieldsOf(option)['label']), 60));
    const choice = labels.length === 0 ? '' : ` [${labels.join(' | ')}]`;
    return [`  ${questions.length > 1 ? `${at + 1}. ` : ''}${plainLine(textOf(question['question']), 300)}${choice}`];
  });
};

const retryLine = (data: Fields): string => `-- waiting for the model: ${plainLine(textOf(data['message']), 200)}`;
const BEGINS_AGAIN = '-- the answer begins again: what is shown of it so far does not count';

/** Lines for events that are no part of a message. */
const plainLines = (event: StoredEvent): readonly string[] => {
  const data = event.data as Fields;
  const id = plainLine(textOf(data['id']), 128);
  switch (event.type) {
    case 'turn.ended': {
      const outcome = textOf(data['outcome']).toLowerCase();
      if (outcome === 'succeeded') return [];
      const why = plainLine(textOf(data['message']) || textOf(data['code']), 400);
      return [`-- turn ${plainLine(outcome, 20)}${why === '' ? '' : `: ${why}`}`];
    }
    case 'session.status':
      return data['status'] === 'retry' ? [retryLine(data)] : [];
    case 'session.compacted':
      return ['-- the conversation was summarised'];
    case 'workspace.committed':
      return [`-- commit ${commitText(data['commit'])} ${plainLine(textOf(data['subject']), 100)}`];
    case 'workspace.pushed':
      return [`-- pushed ${plainLine(textOf(data['branch']), 200)} at ${commitText(data['commit'])}`];
    case 'workspace.push_failed':
      return [`-- push failed: ${plainLine(textOf(data['message']), 400)}`];
    case 'workspace.commits_aside': {
      const [count, kept] = [Number(data['commits']), plainLine(textOf(data['keptAs']), 200)];
      const what = count === 1 ? '1 commit is' : `${count} commits are`;
      return [`-- ${what} not on the session branch and not pushed; kept in the workspace as ${kept}`];
    }
    case 'workspace.restored': {
      const files = data['filesKept'] === true ? '; files were left as they are' : '';
      return [`-- the repository was gone and was made again at ${commitText(data['commit'])}${files}`];
    }
    case 'permission.asked': {
      const patterns = Array.isArray(data['patterns']) ? data['patterns'].map(textOf).join(', ') : '';
      const command = textOf(fieldsOf(data['metadata'])['command']);
      const what = plainLine(`${textOf(data['permission'])} ${command || patterns}`, 300);
      return [`?? may the agent: ${what}   (${id})`];
    }
    case 'permission.replied':
      return [`-- permission ${id}: ${plainLine(textOf(data['reply']), 20)}`];
    case 'question.asked':
      return [`?? the agent asks   (${id})`, ...questionLines(data)];
    case 'question.rejected':
      return [`-- question ${id} was not answered`];
    case 'effect.uncertain':
      return [`-- it is not known whether ${plainLine(textOf(data['tool']), 60)} took effect`];
    default:
      return [];
  }
};

/** A view from the start of what is read. */
export const makeEventView = (options: EventViewOptions): EventView => {
  const roles = new Map<string, string>();
  const kinds = new Map<string, string>();
  const printed = new Map<string, number>();
  const tools = new Map<string, string>();
  const shellTurns = new Set<string | null>();
  let isInLine = false;
  /** Whether something of the answer that the model is giving now was shown: a harness that asks again gets it from its beginning. */
  let isAnswerShown = false;

  const lines = (texts: readonly string[]): string => {
    if (texts.length === 0) return '';
    const start = isInLine ? '\n' : '';
    isInLine = false;
    return `${start}${texts.join('\n')}\n`;
  };
  const endLine = (): string => {
    const end = isInLine ? '\n' : '';
    isInLine = false;
    return end;
  };
  const words = (partId: string, text: string): string => {
    printed.set(partId, (printed.get(partId) ?? 0) + text.length);
    const safe = plainText(text);
    if (safe !== '') isInLine = !safe.endsWith('\n');
    if (safe !== '') isAnswerShown = true;
    return safe;
  };

  const onPart = (event: StoredEvent): string => {
    const part = fieldsOf(fieldsOf(event.data)['part']);
    const id = textOf(part['id']);
    kinds.set(id, textOf(part['type']));
    if (event.threadId === ROOT && textOf(part['type']).startsWith('step-')) isAnswerShown = false;
    if (part['type'] === 'tool') {
      const status = textOf(fieldsOf(part['state'])['status']);
      const key = textOf(part['callId']) || id;
      if (tools.get(key) === status || status === 'pending') return '';
      tools.set(key, status);
      const indent = event.threadId === ROOT ? '' : '  ';
      if (status === 'running') return lines([`${indent}> ${toolText(part)}`]);
      if (status === 'completed' && shellTurns.has(event.turnId)) {
        const output = plainText(textOf(fieldsOf(part['state'])['output'])).replace(/\n+$/, '');
        return output === '' ? '' : lines([output]);
      }
      const error = plainLine(textOf(fieldsOf(part['state'])['error']), 300);
      return status === 'error' ? lines([`${indent}! ${plainLine(textOf(part['tool']), 60)}: ${error}`]) : '';
    }
    if (part['type'] !== 'text' || event.threadId !== ROOT) return '';
    const text = textOf(part['text']);
    const role = roles.get(textOf(part['messageId']));
    if (role === 'user') {
      if (!options.prompts || printed.has(id)) return '';
      printed.set(id, text.length);
      return lines([
        '',
        ...plainText(text)
          .split('\n')
          .map((line) => `>> ${line}`),
      ]);
    }
    const known = printed.get(id) ?? 0;
    // What came in pieces was written; the whole part only adds what no piece brought.
    return text.length > known ? words(id, text.slice(known)) : '';
  };

  return (event) => {
    const data = event.data as Fields;
    switch (event.type) {
      case 'turn.started':
        if (options.isShell?.(textOf(data['messageId'])) === true) shellTurns.add(event.turnId);
        return '';
      case 'message.updated': {
        const message = fieldsOf(data['message']);
        if (event.threadId === ROOT && !roles.has(textOf(message['id']))) isAnswerShown = false;
        roles.set(textOf(message['id']), textOf(message['role']));
        return '';
      }
      case 'message.part.updated':
        return onPart(event);
      case 'message.part.delta': {
        const partId = textOf(data['partId']);
        if (data['field'] !== 'text' || event.threadId !== ROOT || kinds.get(partId) !== 'text') return '';
        return words(partId, textOf(data['delta']));
      }
      case 'session.status': {
        const begins = data['status'] === 'retry' && event.threadId === ROOT && isAnswerShown;
        if (begins) isAnswerShown = false;
        return lines([...plainLines(event), ...(begins ? [BEGINS_AGAIN] : [])]);
      }
      case 'turn.ended':
        return lines(plainLines(event)) || endLine();
      default:
        return lines(plainLines(event));
    }
  };
};

/** One conversation that is over or stands still, as a log would show it. It may be any thread. */
export const messagesText = (messages: readonly MessageView[]): string => {
  const view = makeEventView({ prompts: true });
  const frame = {
    id: '',
    seq: 0,
    sessionUid: '',
    runId: null,
    threadId: ROOT,
    turnId: null,
    at: '',
    hidden: false,
    causedBy: null,
  };
  const texts = messages.flatMap(({ message, parts }) => [
    view({ ...frame, type: 'message.updated', data: { message } }),
    ...parts.map((part) => {
      const isOver = part.type === 'tool' && part.state?.status === 'completed';
      const shown = isOver ? { ...part, state: { ...part.state, status: 'running' } } : part;
      return view({ ...frame, type: 'message.part.updated', data: { part: shown } });
    }),
  ]);
  const text = texts.join('');
  return text === '' || text.endsWith('\n') ? text : `${text}\n`;
};
