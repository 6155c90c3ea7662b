// The one interface between the host and every harness. Must not know any single harness, nor how the host works.
// Source: D13, D14, D17, docs/decisions.
import type { Clock } from '#base/clock.ts';
import type { Logger } from '#base/log.ts';
import type { ClaimedModel, ClaimedRole, CompiledAgent } from '#schema/wire/claim.ts';
import type { Turn, TurnPart } from '#schema/wire/turns.ts';
import type { OptionalMembers } from './capabilities.ts';
import type { HarnessEvent } from './events.ts';
import type { HarnessPackage } from './packages.ts';
import type { Skill } from './skills.ts';
import type { ToolHost } from './tools.ts';
import type { TurnEnd } from './turn-end.ts';

/** See turn-end.ts. */
export type { TurnEnd } from './turn-end.ts';

/** What a harness must know of its session. Known after the claim, fixed for the life of the process. */
export type HarnessSession = Readonly<{
  uid: string;
  title: string;
  /** The session's agent; null: the harness's own default. */
  agent: string | null;
  agents: readonly CompiledAgent[];
  model: ClaimedModel | null;
  models: readonly ClaimedModel[];
  /** The models of the roles; a harness obeys those whose job it does itself. Source: 40-settings B2. */
  roles?: readonly ClaimedRole[] | undefined;
  /** Nobody watches: questions are not offered. Source: A123. */
  unattended: boolean;
}>;

/** The loopback endpoints that stand for the control plane. The token is worth something on this loopback only. */
export type RelayAddress = Readonly<{
  /** OpenAI-compatible base URL. */
  modelBaseUrl: string;
  /** `GET` with the token gives the environment of commands as a JSON map. */
  environmentUrl: string;
  /** `POST` to a tool's name below this, with the token, calls it: for a harness in a process of its own. Source: A110. */
  toolsUrl: string;
  /** `POST` with the token asks whether a subagent's call may run by the rules of the agent above it. Source: A127, J7. */
  judgeUrl: string;
  token: string;
}>;

/** Absolute paths of the sandbox. `data` survives a restart, `config` and `home` do not have to. */
export type SandboxPaths = Readonly<{
  workspace: string;
  data: string;
  config: string;
  home: string;
  temporary: string;
}>;

/** The rules file of the project as the host checked it. Source: A26, A61. */
export type RulesFile = Readonly<{ source: 'release' | 'workspace'; path: string; bytes: number; sha: string }>;

/** Something a human is asked. `data` goes to clients as it is, with `id` added. Source: A119, A120. */
export type HumanRequest = Readonly<{
  kind: 'permission' | 'question';
  id: string;
  threadId: string;
  data: Readonly<Record<string, unknown>>;
}>;

/** The answer; `reject` is also what a deadline or the end of the turn gives. Source: A121, A123. */
export type HumanAnswer =
  | Readonly<{ kind: 'permission'; reply: 'once' | 'always' | 'reject'; message: string | null }>
  | Readonly<{ kind: 'question'; answers: readonly (readonly string[])[] | null }>;

/** All that an adapter may touch. */
export type HarnessHost = Readonly<{
  session: HarnessSession;
  relay: RelayAddress;
  paths: SandboxPaths;
  rules: RulesFile | null;
  /** Platform and project tools; a harness in this process calls them directly. Source: A50. */
  tools: ToolHost;
  /** Skills that exist; which agent may use which is in `contract/skills.ts`. */
  skills: readonly Skill[];
  /** The project's folder for this harness as the base commit has it, copied and read-only; null: there is none. Source: A69, A70. */
  configDirectory: string | null;
  /** Packages that the manifest names for this harness. Source: A72. */
  packages?: readonly HarnessPackage[] | undefined;
  /** Environment entry that marks every process of the harness, so that none is left behind. */
  marker: Readonly<{ name: string; value: string }>;
  /** Search path of programs for the child's environment. */
  searchPath: string;
  /** To the event log; never waits, never throws. */
  emit: (event: HarnessEvent) => void;
  /** To the broker; resolves also at the deadline and when the turn ends; never rejects. */
  ask: (request: HumanRequest, signal: AbortSignal) => Promise<HumanAnswer>;
  /** One line of the harness's own output, for the log ring. */
  output: (line: string) => void;
  /** Says that `health()` would now answer something else. */
  healthChanged: () => void;
  /** Ends every process that carries the marker and is still there. */
  endLeftovers: () => Promise<void>;
  /** Says that a part of this process can neither be used nor ended; the process ends itself after its last word. Source: FB10. */
  giveUp?: ((reason: string) => void) | undefined;
  log: Logger;
  clock: Clock;
}>;

/** State of a harness, from memory. Source: A23. */
export type HarnessHealth = Readonly<{
  version: string | null;
  state: 'starting' | 'ok' | 'down' | 'error';
  error: string | null;
  sessionId: string | null;
  details: Readonly<Record<string, unknown>>;
}>;

/** A turn whose parts are all text. */
export type PromptTurn = Omit<Turn, 'parts'> & Readonly<{ parts: readonly Extract<TurnPart, { type: 'text' }>[] }>;

/** A running harness. */
export type Harness = Readonly<{
  health: () => HarnessHealth;
  /**
   * Runs one turn of text parts; resolves for failure too, and within seconds after `signal` fired. One at a time. Turns
   * that are no prompt come to the member of `optional` that runs them.
   */
  submit: (turn: PromptTurn, signal: AbortSignal) => Promise<TurnEnd>;
  /** The rules file was looked at again; what it says now holds from the next turn on. Absent: only a start reads it. Source: A59, A179. */
  rulesChanged?: ((rules: RulesFile | null) => Promise<void>) | undefined;
  /** Ends the harness and all its processes; `deadlineMs` bounds the polite part. */
  stop: (deadlineMs: number) => Promise<void>;
  optional: OptionalMembers;
}>;

/** Code for one harness. `start` resolves as soon as there is a harness to ask for its health; it may still be starting. */
export type Adapter = Readonly<{ id: string; start: (host: HarnessHost) => Promise<Harness> }>;
