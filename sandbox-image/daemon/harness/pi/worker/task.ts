// The `task` tool: a subagent in a conversation of its own below the session, readable as a thread, resumable by its id.
// Source: A42, A124 to A127.
import { randomBytes } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PiContent } from '../pi-events.ts';
import type { ChildSummary } from '../protocol.ts';
import { openConversation, type Shared } from './conversation.ts';
import { type Persona, PROVIDER_ID, subagentsOf } from './persona.ts';
import type { PiTool } from './pi-api.ts';

/** A child as it is remembered. */
type Child = Readonly<{ id: string; title: string; agent: string }>;

/** The children of a session, kept in a file beside their conversations. */
export type Children = Readonly<{
  all: () => readonly Child[];
  add: (child: Child) => void;
}>;

const isChild = (value: unknown): value is Child => {
  const fields = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>;
  return ['id', 'title', 'agent'].every((name) => typeof fields[name] === 'string');
};

/** The list of children in a folder; one that cannot be read counts as empty. */
export const openChildren = (folder: string): Children => {
  const file = join(folder, 'children.json');
  let all: readonly Child[] = [];
  try {
    const stored: unknown = JSON.parse(readFileSync(file, 'utf8'));
    all = Array.isArray(stored) ? stored.filter(isChild) : [];
  } catch {
    all = [];
  }
  return {
    all: () => all,
    add: (child) => {
      all = [...all, child];
      writeFileSync(`${file}.next`, JSON.stringify(all), { mode: 0o600 });
      renameSync(`${file}.next`, file);
    },
  };
};

/** Ports of the tool. `parent`: who calls, as it is when the call runs. */
export type TaskPorts = Readonly<{
  shared: Shared;
  children: Children;
  parentFile: () => string | undefined;
  persona: () => Persona;
  model: () => string;
}>;

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const say = (words: string): readonly PiContent[] => [{ type: 'text', text: words }];

/** Subagents that run at once; more of one message wait. */
const MAX_AT_ONCE = 8;

/** Runs so many at once and lets the rest wait, first come first served. */
const createQueue = (most: number) => {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async <T>(run: () => Promise<T>): Promise<T> => {
    if (running >= most) await new Promise<void>((resolve) => waiting.push(resolve));
    running += 1;
    try {
      return await run();
    } finally {
      running -= 1;
      waiting.shift()?.();
    }
  };
};

/** The tool. */
export const createTaskTool = (ports: TaskPorts): PiTool => {
  const { shared, children } = ports;
  const { start, link } = shared;
  const subagents = subagentsOf(start);
  const busy = new Set<string>();
  const queue = createQueue(MAX_AT_ONCE);
  const list = subagents.map(({ name, description }) => `- ${name}: ${description}`).join('\n');

  const childOf = (input: Readonly<Record<string, unknown>>): Child => {
    const known = text(input['task_id']);
    if (known !== '') {
      const child = children.all().find(({ id }) => id === known);
      if (child === undefined) throw new Error(`There is no task with the id ${known}.`);
      if (busy.has(child.id)) throw new Error(`The task ${known} still runs.`);
      return child;
    }
    const agent = text(input['subagent_type']);
    if (!subagents.some(({ name }) => name === agent))
      throw new Error(`There is no subagent ${agent}. There are:\n${list}`);
    const id = `ses_${randomBytes(12).toString('hex')}`;
    const child = { id, title: text(input['description']).slice(0, 200) || agent, agent };
    children.add(child);
    const summary: ChildSummary = { id, title: child.title };
    link.send({ kind: 'child', child: summary });
    return child;
  };

  /** Runs one task in the conversation of its child and gives back the child's last words. */
  const work = async (child: Child, prompt: string, signal: AbortSignal): Promise<string> => {
    const subagent = subagents.find(({ name }) => name === child.agent);
    if (subagent === undefined) throw new Error(`The subagent ${child.agent} does not exist any more.`);
    const persona = subagent.persona(ports.persona());
    const own = persona.model;
    const isKnown = own !== undefined && shared.runtime.getModel(PROVIDER_ID, own) !== undefined;
    const model = isKnown ? own : ports.model();
    const conversation = await openConversation(shared, {
      id: child.id,
      threadId: child.id,
      parentFile: ports.parentFile(),
      persona,
      model,
      more: () => [],
    });
    try {
      const { variant } = persona;
      const end = await conversation.prompt(
        { text: prompt, messageId: '', persona, model, variant, expand: false },
        signal,
      );
      if (end.kind === 'aborted') throw new Error('Operation aborted');
      if (end.kind === 'failed') throw new Error(`task_id: ${child.id}\n\nThe subagent failed: ${end.message}`);
      return conversation.answer();
    } finally {
      conversation.dispose();
    }
  };

  return {
    name: 'task',
    label: 'task',
    description: `Give a task to a subagent that works on its own and answers once. Several calls in one message run side by side. Give task_id to go on with an earlier task. Subagents:\n${list}`,
    parameters: {
      type: 'object',
      required: ['description', 'prompt', 'subagent_type'],
      properties: {
        description: { type: 'string', description: 'Three to five words that name the task' },
        prompt: { type: 'string', description: 'The whole task; the subagent sees nothing else' },
        subagent_type: { type: 'string', description: 'Name of the subagent' },
        task_id: { type: 'string', description: 'Id of an earlier task to go on with' },
      },
    },
    execute: async (_callId, input, signal, onUpdate) => {
      const child = childOf(input);
      const details = { sessionId: child.id, title: child.title };
      onUpdate?.({ content: [], details });
      busy.add(child.id);
      try {
        const result = await queue(() => work(child, text(input['prompt']), signal ?? new AbortController().signal));
        return { content: say(`task_id: ${child.id}\n\n<task_result>\n${result}\n</task_result>`), details };
      } finally {
        busy.delete(child.id);
      }
    },
  };
};
