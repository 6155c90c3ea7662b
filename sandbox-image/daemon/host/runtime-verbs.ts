// What clients ask of the harness besides prompts. Here and nowhere else a missing feature becomes 501, or 404 for a
// document, a harness that starts 503, and a running turn 409. Must not know HTTP or any harness. Source: A62 to A67, A144.
import { ConflictError, NotFoundError, UnavailableError, UnsupportedError } from '#base/errors.ts';
import type { Harness } from '#daemon/harness/contract/adapter.ts';
import {
  type AttachCommand,
  CAPABILITY_OF,
  type ChildThread,
  type Fork,
  type McpServer,
  type OptionalMembers,
  type SlashCommand,
  type SteeredPrompt,
  type TodoEntry,
} from '#daemon/harness/contract/capabilities.ts';
import { redactConfig } from './redact-config.ts';
import type { Turns } from './turns/turns.ts';

/** Ports of the verbs. */
export type RuntimeVerbsPorts = Readonly<{
  /** The harness, undefined before it was started. */
  harness: () => Harness | undefined;
  turns: () => Turns | undefined;
  /** Resolves once every event so far is stored, or after a bounded time: who changed something reads it then. */
  stored: () => Promise<unknown>;
  /** Texts that must not leave. */
  secrets: () => readonly string[];
}>;

/** The verbs. Errors: UnsupportedError `feature_not_supported`, UnavailableError `runtime_not_ready`, and as noted. */
export type RuntimeVerbs = Readonly<{
  children: (signal: AbortSignal) => Promise<readonly ChildThread[]>;
  todo: (signal: AbortSignal) => Promise<readonly TodoEntry[]>;
  commands: (signal: AbortSignal) => Promise<readonly SlashCommand[]>;
  mcp: (signal: AbortSignal) => Promise<readonly McpServer[]>;
  /** The command line alone; its password stays in the sandbox. */
  attach: (signal: AbortSignal) => Promise<readonly string[]>;
  /** The same with its password, for a terminal of this sandbox. */
  client: (signal: AbortSignal) => Promise<AttachCommand>;
  /** NotFoundError `not_found` for a harness without the document. */
  config: (signal: AbortSignal) => Promise<Readonly<Record<string, unknown>>>;
  /** NotFoundError `message_not_found`, ConflictError `turn_running`. */
  revert: (messageId: string, signal: AbortSignal) => Promise<void>;
  /** ConflictError `turn_running`, `not_rewound`. */
  unrevert: (signal: AbortSignal) => Promise<void>;
  /** NotFoundError `message_not_found`, ConflictError `turn_running`. */
  fork: (messageId: string | null, signal: AbortSignal) => Promise<Fork>;
  /** Gives back the turn's id. ConflictError `no_active_turn`. The same prompt twice joins once. */
  steer: (prompt: SteeredPrompt, signal: AbortSignal) => Promise<string>;
}>;

/** The verbs over a harness. */
export const makeRuntimeVerbs = (ports: RuntimeVerbsPorts): RuntimeVerbs => {
  const member = <M extends keyof OptionalMembers>(name: M): NonNullable<OptionalMembers[M]> => {
    const harness = ports.harness();
    if (harness === undefined) throw new UnavailableError('runtime_not_ready', 'the harness is still starting');
    const found = harness.optional[name];
    if (found === undefined) {
      const capability = CAPABILITY_OF[name];
      throw new UnsupportedError('feature_not_supported', `this harness does not offer ${capability}`, {
        details: { capability },
      });
    }
    if (harness.health().state !== 'ok') throw new UnavailableError('runtime_not_ready', 'the harness is not ready');
    return found;
  };

  const whileIdle = async <T>(work: () => Promise<T>): Promise<T> => {
    const turns = ports.turns();
    if (turns === undefined) throw new UnavailableError('runtime_not_ready', 'the harness is still starting');
    const result = await turns.whileIdle(work);
    if (result === undefined) throw new ConflictError('turn_running', 'a turn runs; wait for its end or abort it');
    await ports.stored();
    return result.value;
  };

  return {
    children: async (signal) => member('children')(signal),
    todo: async (signal) => member('todo')(signal),
    commands: async (signal) => member('commands').list(signal),
    mcp: async (signal) => member('mcp')(signal),
    attach: async (signal) => (await member('attach')(signal)).command,
    client: async (signal) => member('attach')(signal),
    config: async (signal) => {
      const harness = ports.harness();
      if (harness !== undefined && harness.optional.config === undefined) {
        throw new NotFoundError('not_found', `this harness has no configuration document (${CAPABILITY_OF.config})`);
      }
      return redactConfig(await member('config')(signal), ports.secrets());
    },
    revert: async (messageId, signal) => {
      const { revert } = member('rewind');
      await whileIdle(() => revert(messageId, signal));
    },
    unrevert: async (signal) => {
      const { unrevert } = member('rewind');
      await whileIdle(() => unrevert(signal));
    },
    fork: async (messageId, signal) => {
      const fork = member('fork');
      return whileIdle(() => fork(messageId, signal));
    },
    steer: async (prompt, signal) => {
      const steer = member('steer');
      const turnId = await ports.turns()?.join(prompt, (joining) => steer(joining, signal));
      if (turnId === undefined) throw new ConflictError('no_active_turn', 'no turn runs that could take the prompt');
      return turnId;
    },
  };
};
