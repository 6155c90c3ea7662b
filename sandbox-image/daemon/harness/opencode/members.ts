// What OpenCode does for a session: prompts, and the optional features, one member each, over the ready server.
// Must not know the host. Source: A62, harness-runtimes §2.4.
import { ConflictError, NotFoundError, UnavailableError } from '#base/errors.ts';
import type { Harness } from '../contract/adapter.ts';
import type { OptionalMembers, VerbTurn } from '../contract/capabilities.ts';
import type { HarnessEvent } from '../contract/events.ts';
import { ROOT_THREAD } from '../contract/events.ts';
import type { TurnEnd } from '../contract/turn-end.ts';
import type { Server } from './supervisor.ts';
import { DIED, type TurnRunner } from './turn-runner.ts';

/** What the members need. */
export type MembersPorts = Readonly<{
  /** The ready server, undefined while there is none. */
  server: () => Server | undefined;
  runner: TurnRunner;
  nextMessageId: () => string;
  /** Agent and model that a turn runs with; `model: undefined` when its model is not available. */
  choose: (server: Server, turn: VerbTurn) => Readonly<{ agent: string | undefined; model: string | undefined }>;
  /** The end of a turn whose model is not available. */
  noModel: (turn: VerbTurn) => TurnEnd;
  /** Makes another session of the server the conversation of this one. */
  switchTo: (server: Server, sessionId: string) => Promise<void>;
  emit: (event: HarnessEvent) => void;
  program: string;
  workspace: string;
}>;

/** Commands that OpenCode brings itself and that make no sense in a sandbox. */
const HIDDEN_COMMANDS: ReadonlySet<string> = new Set(['customize-opencode']);
/** The agent of a shell command when the session has none. */
const DEFAULT_AGENT = 'build';

type Chosen = Readonly<{ messageId: string; agent: string | undefined; model: string }>;

/** The turns and all members; the standard harness serves every one. */
export const opencodeMembers = (
  ports: MembersPorts,
): Readonly<{ submit: Harness['submit']; optional: Required<OptionalMembers> }> => {
  const { runner, nextMessageId } = ports;
  let running: Chosen | undefined;

  const ready = (): Server => {
    const server = ports.server();
    if (server === undefined) throw new UnavailableError('runtime_not_ready', 'the harness is not ready');
    return server;
  };

  const requireMessage = async (server: Server, messageId: string): Promise<void> => {
    if (/^msg_\w+$/.test(messageId) && (await server.client.hasMessage(server.sessionId(), messageId))) return;
    throw new NotFoundError('message_not_found', `the conversation has no message ${messageId}`);
  };

  /** Runs one turn of any kind. */
  const runTurn = async (
    turn: VerbTurn,
    signal: AbortSignal,
    starts: 'prompt' | 'shell' | 'compact',
    send: (server: Server, chosen: Chosen) => Promise<void>,
  ): Promise<TurnEnd> => {
    const server = ports.server();
    if (server === undefined) return { ...DIED, message: 'the harness is not running' };
    const { agent, model } = ports.choose(server, turn);
    if (model === undefined) return ports.noModel(turn);
    const chosen = { messageId: nextMessageId(), agent, model };
    // Only a model's run reads further prompts.
    running = starts === 'prompt' ? chosen : undefined;
    return runner.run(server, { messageId: chosen.messageId, starts, send: () => send(server, chosen) }, signal);
  };

  const submit: Harness['submit'] = ({ parts, ...turn }, signal) =>
    runTurn(turn, signal, 'prompt', (server, chosen) =>
      server.client.prompt(server.sessionId(), { ...chosen, texts: parts.map((part) => part.text) }),
    );

  const optional: Required<OptionalMembers> = {
    children: async () => {
      const { client, sessionId } = ready();
      return (await client.children(sessionId())).map((child) => ({ threadId: child.id, title: child.title }));
    },
    todo: async () => {
      const { client, sessionId } = ready();
      return client.todo(sessionId());
    },
    compact: (turn, signal) =>
      runTurn(turn, signal, 'compact', (server, { model }) =>
        server.client.compact(server.sessionId(), model, server.lost),
      ),
    commands: {
      list: async () => {
        const commands = await ready().client.commands();
        return commands
          .filter(({ name }) => !HIDDEN_COMMANDS.has(name))
          .map(({ name, description, source }) => ({
            name,
            description: description === '' ? null : description,
            source: source === '' ? 'command' : source,
          }));
      },
      run: async (turn, name, text, signal) => {
        const server = ports.server();
        const known = (await server?.client.commands()) ?? [];
        if (server !== undefined && !known.some((command) => command.name === name)) {
          return { kind: 'failed', code: 'unknown', message: `there is no command /${name}` };
        }
        return runTurn(turn, signal, 'prompt', (running, chosen) =>
          running.client.runCommand(running.sessionId(), { ...chosen, name, text }, running.lost),
        );
      },
    },
    rewind: {
      revert: async (messageId) => {
        const server = ready();
        await requireMessage(server, messageId);
        await server.client.revert(server.sessionId(), messageId);
        ports.emit({ type: 'session.reverted', threadId: ROOT_THREAD, data: { messageId } });
      },
      unrevert: async () => {
        const server = ready();
        if (!(await server.client.isReverted(server.sessionId()))) {
          throw new ConflictError(
            'not_rewound',
            'nothing was rewound, or a prompt followed: there is nothing to take back',
          );
        }
        await server.client.unrevert(server.sessionId());
        ports.emit({ type: 'session.unreverted', threadId: ROOT_THREAD, data: {} });
      },
    },
    mcp: async () =>
      (await ready().client.mcp()).map(({ name, status, error }) => ({
        name,
        status,
        error: error === '' ? null : error.slice(0, 1_024),
      })),
    attach: async () => {
      const { process, sessionId } = ready();
      return {
        command: [ports.program, 'attach', process.origin, '--session', sessionId(), '--dir', ports.workspace],
        environment: { OPENCODE_SERVER_PASSWORD: process.password },
      };
    },
    config: async () => ready().client.config(),
    fork: async (messageId) => {
      const server = ready();
      if (messageId !== null) await requireMessage(server, messageId);
      const before = server.sessionId();
      const forked = await server.client.fork(before, messageId ?? undefined);
      if (forked === '') throw new UnavailableError('harness_failed', 'the harness made a fork without an id');
      ports.emit({ type: 'session.forked', threadId: ROOT_THREAD, data: { messageId, threadId: before } });
      await ports.switchTo(server, forked);
      return { threadId: before };
    },
    shell: (turn, command, signal) =>
      runTurn(turn, signal, 'shell', (server, { messageId, agent, model }) =>
        server.client.runShell(
          server.sessionId(),
          { messageId, command, agent: agent ?? DEFAULT_AGENT, model },
          server.lost,
        ),
      ),
    steer: async ({ parts }) => {
      const server = ready();
      const chosen = running;
      if (chosen === undefined || runner.messageId() !== chosen.messageId) return false;
      const messageId = nextMessageId();
      const texts = parts.map((part) => part.text);
      return runner.join(messageId, () => server.client.prompt(server.sessionId(), { ...chosen, messageId, texts }));
    },
  };
  return { submit, optional };
};
