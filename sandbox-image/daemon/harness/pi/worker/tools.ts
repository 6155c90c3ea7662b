// The tools of a conversation: Pi's own with commands run by the host, the search tools, `question`, and what the tool
// host offers. Every one is judged again where it is run, since an extension may have changed its arguments meanwhile.
// Source: A41, A49, A50, A81, A120.
import { randomBytes } from 'node:crypto';
import type { Permissions } from '../../judge/permissions.ts';
import type { PiContent, PiToolResult } from '../pi-events.ts';
import type { WorkerStart } from '../protocol.ts';
import { EDIT_OPERATIONS, READ_OPERATIONS, WRITE_OPERATIONS } from './file-operations.ts';
import type { Link } from './link.ts';
import type { BashOperations, PiModule, PiTool } from './pi-api.ts';
import { createSearchTools } from './search-tools.ts';

/** Ports of the tools of one conversation. */
export type ToolPorts = Readonly<{
  pi: PiModule;
  start: WorkerStart;
  link: Link;
  threadId: string;
  agent: () => string | null;
  permissions: Permissions;
  messageOf: (callId: string) => string | undefined;
  /** Runs calls of a batch that must not run side by side one after the other. Source: A126. */
  inTurn: <T>(run: () => Promise<T>) => Promise<T>;
}>;

const say = (text: string): readonly PiContent[] => [{ type: 'text', text }];

/** Commands are run by the host, in process groups that it owns, with the environment that it grants. */
const hostCommands = (link: Link): BashOperations => ({
  exec: async (command, cwd, { onData, signal, timeout }) => {
    const timeoutMs = timeout === undefined ? null : timeout * 1_000;
    const result = await link.call('exec', { command, cwd, timeoutMs }, signal, onData);
    if (result.kind === 'exited') return { exitCode: result.code };
    if (result.kind === 'aborted') throw new Error('aborted');
    throw new Error(result.kind === 'timeout' ? `timeout:${timeout}` : result.message);
  },
});

const QUESTION_PARAMETERS = {
  type: 'object',
  required: ['questions'],
  properties: {
    questions: {
      type: 'array',
      minItems: 1,
      items: {
        type: 'object',
        required: ['question', 'header', 'options'],
        properties: {
          question: { type: 'string', description: 'The whole question' },
          header: { type: 'string', maxLength: 30, description: 'A very short name of it' },
          options: {
            type: 'array',
            minItems: 1,
            items: {
              type: 'object',
              required: ['label', 'description'],
              properties: { label: { type: 'string' }, description: { type: 'string' } },
            },
          },
          multiple: { type: 'boolean', description: 'More than one option may be chosen' },
          custom: { type: 'boolean', description: 'The user may answer in own words' },
        },
      },
    },
  },
} as const;

type Question = Readonly<{ question: string }>;

const questionTool = ({ link, threadId, messageOf }: ToolPorts): PiTool => ({
  name: 'question',
  label: 'question',
  description: 'Ask the user one or more questions and wait for the answers. Use it when you cannot decide yourself.',
  parameters: QUESTION_PARAMETERS,
  execute: async (callId, input, signal) => {
    const questions = input['questions'] as readonly Question[];
    const messageId = messageOf(callId);
    const tool = messageId === undefined ? {} : { tool: { messageId, callId } };
    const id = `que_${randomBytes(12).toString('hex')}`;
    const request = { kind: 'question' as const, id, threadId, data: { questions, ...tool } };
    const answer = await link.call('ask', request, signal);
    if (answer.kind !== 'question' || answer.answers === null) {
      return { content: say('The user dismissed the question.'), isError: true, terminate: true };
    }
    const { answers } = answer;
    const lines = questions.map(
      ({ question }, at) => `${question}\n${(answers[at] ?? []).join(', ') || '(no answer)'}`,
    );
    return { content: say(lines.join('\n\n')), details: { answers } };
  },
});

/** A tool of the tool host. */
const hostTool = (ports: ToolPorts, spec: WorkerStart['tools'][number]): PiTool => ({
  name: spec.name,
  label: spec.name,
  description: spec.description,
  parameters: spec.parameters,
  execute: async (callId, input, signal) => {
    const call = { name: spec.name, arguments: input, threadId: ports.threadId, callId, agent: ports.agent() };
    const outcome = await ports.link.call('tool', call, signal);
    if (outcome.kind === 'failed') throw new Error(outcome.message);
    const images = outcome.attachments.flatMap(({ mime, url }): PiContent[] => {
      const data = /^data:[^,]*;base64,(.*)$/s.exec(url)?.[1];
      return data === undefined || !mime.startsWith('image/') ? [] : [{ type: 'image', data, mimeType: mime }];
    });
    return { content: [...say(outcome.output), ...images], details: outcome.metadata };
  },
});

/** A tool that judges its call and keeps its place in the batch before it runs. */
const guarded = (ports: ToolPorts, tool: PiTool): PiTool => ({
  ...tool,
  execute: (callId, input, signal, onUpdate, context) =>
    ports.inTurn(async (): Promise<PiToolResult> => {
      const verdict = await ports.permissions.judge({ tool: tool.name, callId, input }, signal);
      if (!verdict.allowed) throw new Error(verdict.reason);
      return tool.execute(callId, input, signal, onUpdate, context);
    }),
});

/** All tools of a conversation. `more`: those that only a root has. */
export const createTools = (ports: ToolPorts, more: readonly PiTool[]): readonly PiTool[] => {
  const { pi, start } = ports;
  const cwd = start.workspace;
  const bash = pi.createBashToolDefinition(cwd, {
    operations: hostCommands(ports.link),
    exposeSessionEnvironment: false,
  });
  const own = [
    pi.createReadToolDefinition(cwd, { operations: READ_OPERATIONS }),
    pi.createEditToolDefinition(cwd, { operations: EDIT_OPERATIONS }),
    pi.createWriteToolDefinition(cwd, { operations: WRITE_OPERATIONS }),
  ];
  const isRoot = more.length > 0;
  return [
    bash,
    ...own,
    pi.createFindToolDefinition(cwd),
    pi.createLsToolDefinition(cwd),
    ...createSearchTools(cwd),
    ...(isRoot && !start.unattended ? [questionTool(ports)] : []),
    ...more,
    ...start.tools.map((spec) => hostTool(ports, spec)),
  ].map((tool) => guarded(ports, tool));
};
