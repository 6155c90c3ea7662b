// The calls to one OpenCode server on loopback: basic auth, a time limit on each, one event stream. All of the server's
// routes that the daemon uses are in this file, since OpenCode 2 breaks them. Must not know turns. Source: harness-runtimes §2.4.
import { UnavailableError } from '#base/errors.ts';
import { readSse } from '#base/http/read-stream.ts';
import { type Answer, readText, send as sendPlainly } from '#base/http/send.ts';
import { PROVIDER_ID } from './config-files.ts';
import type { Frame } from './map-events.ts';

/** A prompt in OpenCode's form. */
export type OpencodePrompt = Readonly<{
  messageId: string;
  agent: string | undefined;
  model: string;
  texts: readonly string[];
}>;

/** A slash command in OpenCode's form. */
export type OpencodeCommand = Readonly<{
  messageId: string;
  name: string;
  text: string;
  agent: string | undefined;
  model: string;
}>;

/** A shell command that runs as a turn. */
export type OpencodeShell = Readonly<{ messageId: string; command: string; agent: string; model: string }>;

/** An agent as the server lists it. */
export type ListedAgent = Readonly<{ name: string; mode: string; hidden: boolean }>;

/** A stored message. */
export type StoredMessage = Readonly<{ info: Readonly<Record<string, unknown>>; parts: readonly unknown[] }>;

/** Calls; all reject with UnavailableError `harness_failed` (`detail`: status and text) or `timed_out`. */
export type OpencodeClient = Readonly<{
  version: (timeoutMs: number) => Promise<string>;
  agents: (timeoutMs: number) => Promise<readonly ListedAgent[]>;
  createSession: (title: string) => Promise<string>;
  renameSession: (id: string, title: string) => Promise<void>;
  hasSession: (id: string) => Promise<boolean>;
  deleteSession: (id: string) => Promise<void>;
  /** Runs a command in a session, without a model, and gives back its output. */
  shell: (id: string, command: string, agent: string | undefined, timeoutMs: number) => Promise<string>;
  prompt: (id: string, prompt: OpencodePrompt) => Promise<void>;
  abort: (id: string) => Promise<void>;
  /** Each resolves when its turn is over, however long that takes; `signal` gives up the answer, not the turn. */
  runCommand: (id: string, command: OpencodeCommand, signal: AbortSignal) => Promise<void>;
  runShell: (id: string, shell: OpencodeShell, signal: AbortSignal) => Promise<void>;
  compact: (id: string, model: string, signal: AbortSignal) => Promise<void>;
  commands: () => Promise<readonly Readonly<{ name: string; description: string; source: string }>[]>;
  mcp: () => Promise<readonly Readonly<{ name: string; status: string; error: string }>[]>;
  /** The effective configuration, with secrets in it. */
  config: () => Promise<Json>;
  hasMessage: (id: string, messageId: string) => Promise<boolean>;
  revert: (id: string, messageId: string) => Promise<void>;
  /** Whether a rewind can be taken back: OpenCode does nothing and says nothing where there is none. */
  isReverted: (id: string) => Promise<boolean>;
  unrevert: (id: string) => Promise<void>;
  /** Id of the new session: a copy of what is before the message, or of everything. */
  fork: (id: string, messageId: string | undefined) => Promise<string>;
  /** Sessions that are not idle. */
  busySessions: (timeoutMs: number) => Promise<ReadonlySet<string>>;
  messages: (id: string, limit: number) => Promise<readonly StoredMessage[]>;
  children: (id: string) => Promise<readonly Readonly<{ id: string; title: string }>[]>;
  todo: (id: string) => Promise<readonly Readonly<{ content: string; status: string; priority: string }>[]>;
  /** Open requests, as the properties of their events. */
  openRequests: (kind: 'permission' | 'question') => Promise<readonly Readonly<Record<string, unknown>>[]>;
  answerPermission: (id: string, reply: 'once' | 'always' | 'reject', message: string | null) => Promise<void>;
  /** `null` dismisses. */
  answerQuestion: (id: string, answers: readonly (readonly string[])[] | null) => Promise<void>;
  /** Frames until the server ends the stream or `signal` fires. Resolves once the stream is open. */
  events: (signal: AbortSignal) => Promise<AsyncGenerator<Frame>>;
}>;

type Json = Readonly<Record<string, unknown>>;

const CALL_TIMEOUT_MS = 15_000;
const SLOW_CALL_TIMEOUT_MS = 30_000;

/** Largest answer that is read: a page of messages with what their tools gave. Units: bytes. */
const MAX_ANSWER_BYTES = 134_217_728;

/** A turn may last for hours; its end is told by events. Units: milliseconds. */
const TURN_TIMEOUT_MS = 86_400_000;

const listOf = (value: unknown): readonly Json[] =>
  Array.isArray(value) ? value.filter((item): item is Json => typeof item === 'object' && item !== null) : [];
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

const isOk = ({ status }: Answer): boolean => status >= 200 && status < 300;

const frameOf = (data: string): Frame | undefined => {
  try {
    const parsed = JSON.parse(data) as { payload?: { type?: unknown; properties?: unknown } };
    const { type, properties } = parsed.payload ?? {};
    if (typeof type !== 'string' || typeof properties !== 'object' || properties === null) return undefined;
    return { type, properties: properties as Json };
  } catch {
    return undefined;
  }
};

/** A client for the server at `origin`. */
export const createOpencodeClient = (origin: string, password: string): OpencodeClient => {
  const authorization = `Basic ${Buffer.from(`opencode:${password}`).toString('base64')}`;

  const send = async (
    method: string,
    path: string,
    options: Readonly<{ body?: unknown; timeoutMs?: number; signal?: AbortSignal }> = {},
  ): Promise<Answer> => {
    const limit = AbortSignal.timeout(options.timeoutMs ?? CALL_TIMEOUT_MS);
    const signal = options.signal === undefined ? limit : AbortSignal.any([limit, options.signal]);
    try {
      return await sendPlainly(origin + path, {
        method,
        signal,
        headers: { authorization, ...(options.body === undefined ? {} : { 'content-type': 'application/json' }) },
        ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
      });
    } catch (error) {
      if (limit.aborted)
        throw new UnavailableError('timed_out', `the harness did not answer ${path} in time`, { cause: error });
      throw new UnavailableError('harness_failed', `the harness did not answer ${path}`, { cause: error });
    }
  };

  const read = async (answer: Answer, path: string): Promise<unknown> => {
    const text = await readText(answer, MAX_ANSWER_BYTES).catch(() => '');
    if (!isOk(answer)) {
      throw new UnavailableError('harness_failed', `the harness answered ${answer.status} to ${path}`, {
        detail: text.slice(0, 1_024),
      });
    }
    if (text === '') return undefined;
    try {
      return JSON.parse(text);
    } catch (error) {
      throw new UnavailableError('harness_failed', `the harness answered ${path} with something that is no JSON`, {
        cause: error,
      });
    }
  };

  const call = async (method: string, path: string, options: Parameters<typeof send>[2] = {}): Promise<unknown> =>
    read(await send(method, path, options), path);

  return {
    version: async (timeoutMs) => textOf(((await call('GET', '/global/health', { timeoutMs })) as Json)['version']),
    agents: async (timeoutMs) =>
      listOf(await call('GET', '/agent', { timeoutMs })).map((agent) => ({
        name: textOf(agent['name']),
        mode: textOf(agent['mode']),
        hidden: agent['hidden'] === true,
      })),
    createSession: async (title) => {
      const id = textOf(
        ((await call('POST', '/session', { body: { title }, timeoutMs: SLOW_CALL_TIMEOUT_MS })) as Json)['id'],
      );
      if (id === '') throw new UnavailableError('harness_failed', 'the harness made a session without an id');
      return id;
    },
    renameSession: async (id, title) => {
      await call('PATCH', `/session/${id}`, { body: { title } });
    },
    hasSession: async (id) => {
      const answer = await send('GET', `/session/${id}`, { timeoutMs: SLOW_CALL_TIMEOUT_MS });
      if (answer.status !== 404) {
        await read(answer, '/session/{id}');
        return true;
      }
      await readText(answer, MAX_ANSWER_BYTES);
      return false;
    },
    deleteSession: async (id) => {
      await call('DELETE', `/session/${id}`);
    },
    shell: async (id, command, agent, timeoutMs) => {
      const body = { command, agent: agent ?? 'build' };
      const answer = (await call('POST', `/session/${id}/shell`, { body, timeoutMs })) as Json;
      const tool = listOf(answer['parts']).find((part) => part['type'] === 'tool');
      return textOf(((tool?.['state'] ?? {}) as Json)['output']);
    },
    prompt: async (id, prompt) => {
      const body = {
        messageID: prompt.messageId,
        ...(prompt.agent === undefined ? {} : { agent: prompt.agent }),
        model: { providerID: PROVIDER_ID, modelID: prompt.model },
        parts: prompt.texts.map((text) => ({ type: 'text', text })),
      };
      await call('POST', `/session/${id}/prompt_async`, { body, timeoutMs: SLOW_CALL_TIMEOUT_MS });
    },
    abort: async (id) => {
      await call('POST', `/session/${id}/abort`, { timeoutMs: 5_000 });
    },
    runCommand: async (id, command, signal) => {
      const body = {
        messageID: command.messageId,
        command: command.name,
        arguments: command.text,
        ...(command.agent === undefined ? {} : { agent: command.agent }),
        model: `${PROVIDER_ID}/${command.model}`,
      };
      await call('POST', `/session/${id}/command`, { body, signal, timeoutMs: TURN_TIMEOUT_MS });
    },
    runShell: async (id, shell, signal) => {
      const { messageId: messageID, command, agent } = shell;
      const body = { messageID, command, agent, model: { providerID: PROVIDER_ID, modelID: shell.model } };
      await call('POST', `/session/${id}/shell`, { body, signal, timeoutMs: TURN_TIMEOUT_MS });
    },
    compact: async (id, model, signal) => {
      const body = { providerID: PROVIDER_ID, modelID: model };
      await call('POST', `/session/${id}/summarize`, { body, signal, timeoutMs: TURN_TIMEOUT_MS });
    },
    commands: async () =>
      listOf(await call('GET', '/command')).map((each) => ({
        name: textOf(each['name']),
        description: textOf(each['description']),
        source: textOf(each['source']),
      })),
    mcp: async () =>
      Object.entries((await call('GET', '/mcp')) as Readonly<Record<string, Json>>).map(([name, server]) => ({
        name,
        status: textOf(server['status']),
        error: textOf(server['error']),
      })),
    config: async () => (await call('GET', '/config')) as Json,
    hasMessage: async (id, messageId) => {
      const answer = await send('GET', `/session/${id}/message/${encodeURIComponent(messageId)}`);
      await readText(answer, MAX_ANSWER_BYTES);
      return isOk(answer);
    },
    revert: async (id, messageId) => {
      const body = { messageID: messageId };
      await call('POST', `/session/${id}/revert`, { body, timeoutMs: SLOW_CALL_TIMEOUT_MS });
    },
    isReverted: async (id) => typeof ((await call('GET', `/session/${id}`)) as Json)['revert'] === 'object',
    unrevert: async (id) => {
      await call('POST', `/session/${id}/unrevert`, { timeoutMs: SLOW_CALL_TIMEOUT_MS });
    },
    fork: async (id, messageId) => {
      const body = messageId === undefined ? {} : { messageID: messageId };
      const made = (await call('POST', `/session/${id}/fork`, { body, timeoutMs: SLOW_CALL_TIMEOUT_MS })) as Json;
      return textOf(made['id']);
    },
    busySessions: async (timeoutMs) => {
      const statuses = (await call('GET', '/session/status', { timeoutMs })) as Readonly<Record<string, Json>>;
      const busy = Object.entries(statuses ?? {}).filter(([, status]) => status['type'] !== 'idle');
      return new Set(busy.map(([id]) => id));
    },
    messages: async (id, limit) =>
      listOf(await call('GET', `/session/${id}/message?limit=${limit}`, { timeoutMs: SLOW_CALL_TIMEOUT_MS })).map(
        (entry) => ({
          info: (typeof entry['info'] === 'object' && entry['info'] !== null ? entry['info'] : {}) as Json,
          parts: Array.isArray(entry['parts']) ? entry['parts'] : [],
        }),
      ),
    children: async (id) =>
      listOf(await call('GET', `/session/${id}/children`)).map((child) => ({
        id: textOf(child['id']),
        title: textOf(child['title']),
      })),
    todo: async (id) =>
      listOf(await call('GET', `/session/${id}/todo`)).map((entry) => ({
        content: textOf(entry['content']),
        status: textOf(entry['status']),
        priority: textOf(entry['priority']),
      })),
    openRequests: async (kind) => listOf(await call('GET', `/${kind}`)),
    answerPermission: async (id, reply, message) => {
      await call('POST', `/permission/${id}/reply`, { body: { reply, ...(message === null ? {} : { message }) } });
    },
    answerQuestion: async (id, answers) => {
      if (answers === null) await call('POST', `/question/${id}/reject`, { body: {} });
      else await call('POST', `/question/${id}/reply`, { body: { answers } });
    },
    events: async (signal) => {
      let answer: Answer;
      try {
        answer = await sendPlainly(`${origin}/global/event`, { headers: { authorization }, signal });
      } catch (error) {
        throw new UnavailableError('harness_failed', 'the event stream of the harness cannot be opened', {
          cause: error,
        });
      }
      const { body } = answer;
      if (answer.status !== 200 || body === null) {
        throw new UnavailableError('harness_failed', `the harness answered ${answer.status} to /global/event`);
      }
      return (async function* () {
        for await (const event of readSse(body)) {
          const frame = frameOf(event.data);
          if (frame !== undefined) yield frame;
        }
      })();
    },
  };
};
