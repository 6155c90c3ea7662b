// What the rules know of stored sessions, prompts and turns: the shapes that cross between them and the store.
// Must not know how they are stored.
import type { TurnOutcome } from '#schema/events/envelope.ts';
import type { RunSettings } from '#schema/settings/run-settings.ts';
import type { TurnPart } from '#schema/wire/turns.ts';
import type { AgentRepoint } from './ports.ts';
import type { StoredSettings } from './saved-settings.ts';

/** Names of a session, as the custom resource has them. `projectUid` is empty while the Project is unknown. */
export type SessionKey = Readonly<{ uid: string; namespace: string; name: string; projectUid: string }>;

/** One part of a turn. */
export type PromptPart = Readonly<TurnPart>;

/** How a prompt is given to a session that works. */
export type Delivery = 'queue' | 'interrupt' | 'steer';

/** Why a prompt that should have joined the running turn waits in the queue. Source: A154. */
export type DeliveryReason = 'unsupported' | 'not_prompter' | 'turn_ended';

/** A prompt before it has a place in the queue. */
export type NewPrompt = Readonly<{
  id: string;
  sessionUid: string;
  messageId: string;
  origin: 'spec' | 'rest';
  delivery: Delivery;
  /** Set for a `queue` that should have been a `steer`. */
  deliveryReason?: DeliveryReason | undefined;
  parts: readonly PromptPart[];
  agent: string | null;
  model: string | null;
  /** Name of the caller; null when nobody is known: a Session does not say who wrote its `spec.prompt`. */
  sentBy: string | null;
}>;

/** A stored prompt without its parts. Times in RFC 3339; `ordinal` grows with age of arrival. */
export type PromptState = Readonly<{
  id: string;
  session_uid: string;
  message_id: string;
  ordinal: number;
  state: 'queued' | 'running' | 'ended' | 'withdrawn';
  origin: 'spec' | 'rest';
  delivery: Delivery;
  delivery_reason: DeliveryReason | null;
  agent: string | null;
  model: string | null;
  sent_by: string | null;
  attempt: number;
  turn_id: string | null;
  outcome: TurnOutcome | null;
  message: string | null;
  created_at: string;
  started_at: string | null;
  ended_at: string | null;
}>;

/** A prompt with what the harness is given. */
export type PromptWithParts = PromptState & Readonly<{ parts: readonly PromptPart[] }>;

/** Who takes turns, appends and reports: the generation of one claim. */
export type SandboxClaim = Readonly<{ sessionUid: string; generation: number; podUid: string }>;

/** A prompt with the turn that runs it. `settings` are null for a turn that was taken before settings were pinned. */
export type TakenTurn = Readonly<{ turnId: string; prompt: PromptWithParts; settings: RunSettings | null }>;

/** Gives the settings of the run that takes a prompt now. `at`: time of the pin, RFC 3339. Must not wait. */
export type PinSettings = (
  stored: StoredSettings,
  prompt: PromptState,
) => Readonly<{ at: string; settings: RunSettings }>;

/** What became of an attempt to take a turn. */
export type Taking = Readonly<{ state: 'taken'; turn: TakenTurn } | { state: 'nothing' } | { state: 'superseded' }>;

/** A credential as it is stored. */
export type StoredCredential = Readonly<{ prefix: string; hash: Buffer }>;

/** What a claim stores. `daemonCredential` is sealed; `at` in RFC 3339. */
export type ClaimInput = Readonly<{
  session: SessionKey;
  podUid: string;
  harness: string;
  credential: StoredCredential;
  daemonCredential: Buffer;
  at: string;
  /** A move to another agent, to be told once. */
  agentRepoint?: AgentRepoint | undefined;
}>;

/** What a claim came to. `previous`: the generation before and its last stored event, null for the first claim. */
export type StoredClaim = Readonly<{
  generation: number;
  headSeq: number;
  previous: Readonly<{ generation: number; acknowledgedN: number }> | null;
}>;

/** What a fence came to. `working`: it was not set, as something runs or waits. */
export type Fencing = Readonly<{ state: 'fenced'; openTurnId: string | undefined } | { state: 'working' }>;
