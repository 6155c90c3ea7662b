// Follows one prompt through the effects of its session until it is over. Pure: a state in, a state out.
// States: sent -> accepted (our message is in the session) -> running (busy) -> over (idle). An idle before "running"
// belongs to something older; after "over" only the late end of an own answer still counts. Prompts that joined on the
// way must be in the session too before an idle counts. Must not know HTTP. Source: harness-runtimes §2.4, A146.
import type { TurnEnd } from '../contract/adapter.ts';
import { type HarnessEvent, ROOT_THREAD } from '../contract/events.ts';
import type { TurnError } from '../contract/turn-error.ts';
import type { Effect } from './map-events.ts';

/**
 * How a turn shows that it is ours. `prompt`: by a message of our id, then busy. `shell`: by a message of our id alone,
 * since busy comes before it. `compact`: by the first message of a user after our id, then busy.
 */
export type TurnStart = 'prompt' | 'shell' | 'compact';

/**
 * Where one prompt is. `error`: the last one that nothing followed, since a retry or a compaction may mend it.
 * `settled`: false while an error was told of the session and not yet of the answer, which OpenCode does after "idle".
 */
export type TurnWatch = Readonly<{
  messageId: string;
  starts: TurnStart;
  /** Prompts that were sent to join this turn and that the session does not show yet. */
  joining: ReadonlySet<string>;
  phase: 'sent' | 'accepted' | 'running' | 'over';
  error: TurnError | undefined;
  settled: boolean;
  assistantIds: ReadonlySet<string>;
  /** Automatic compactions in a row that made room for one step of the model at most. */
  fruitless: number;
  /** Steps of the model since the last compaction, that of the next compaction included. */
  steps: number;
}>;

/** So many compactions in a row that made no room are the end of a turn: each costs two calls of the model. */
const MOST_FRUITLESS = 4;

/** A prompt that was just sent; `messageId` sorts after everything that the session holds. */
export const watchTurn = (messageId: string, starts: TurnStart = 'prompt'): TurnWatch => ({
  messageId,
  starts,
  joining: new Set(),
  phase: 'sent',
  error: undefined,
  settled: true,
  assistantIds: new Set(),
  fruitless: 0,
  steps: 0,
});

const onEvent = (watch: TurnWatch, event: HarnessEvent): TurnWatch => {
  if (event.threadId !== ROOT_THREAD) return watch;
  if (event.type === 'message.part.updated' && event.data.part.type === 'step-finish') {
    return { ...watch, steps: watch.steps + 1 };
  }
  if (event.type !== 'session.compacted') return watch;
  const isAgain = watch.fruitless > 0 && watch.steps <= 2;
  const fruitless = isAgain ? watch.fruitless + 1 : 1;
  return { ...watch, fruitless: event.data.auto ? fruitless : 0, steps: 0 };
};

const onAnswer = (watch: TurnWatch, id: string, error: TurnError | undefined): TurnWatch => {
  // Ids sort by time: an answer below our message ends something older, as late as it comes.
  if (id < watch.messageId) return watch;
  if (watch.assistantIds.has(id)) return error === undefined ? watch : { ...watch, error, settled: true };
  return { ...watch, assistantIds: new Set(watch.assistantIds).add(id), error, settled: true };
};

const onQuestion = (watch: TurnWatch, id: string): TurnWatch => {
  if (watch.joining.has(id)) {
    const joining = new Set(watch.joining);
    joining.delete(id);
    return { ...watch, joining };
  }
  const isOurs = watch.starts === 'compact' ? id > watch.messageId : id === watch.messageId;
  if (!isOurs || watch.phase !== 'sent') return watch;
  return { ...watch, phase: watch.starts === 'shell' ? 'running' : 'accepted' };
};

/** The watch of a turn that one more prompt is about to join. */
export const watchJoin = (watch: TurnWatch, messageId: string): TurnWatch => ({
  ...watch,
  joining: new Set(watch.joining).add(messageId),
});

/** The watch of a turn that a prompt did not join after all. */
export const watchLeave = (watch: TurnWatch, messageId: string): TurnWatch => {
  const joining = new Set(watch.joining);
  joining.delete(messageId);
  return { ...watch, joining };
};

/** The watch after one effect. */
export const watchEffect = (watch: TurnWatch, effect: Effect): TurnWatch => {
  if (effect.kind === 'message' && effect.role === 'assistant') {
    const isLate = watch.phase === 'over' && !watch.assistantIds.has(effect.id);
    return isLate ? watch : onAnswer(watch, effect.id, effect.error);
  }
  if (watch.phase === 'over') return watch;
  switch (effect.kind) {
    case 'emit':
      return onEvent(watch, effect.event);
    case 'message':
      return onQuestion(watch, effect.id);
    case 'busy':
      return watch.phase === 'accepted' ? { ...watch, phase: 'running' } : watch;
    case 'error':
      return { ...watch, error: effect.error, settled: false };
    case 'idle':
      return watch.phase === 'running' && watch.joining.size === 0 ? { ...watch, phase: 'over' } : watch;
    default:
      return watch;
  }
};

/** The watch of a turn whose "over" was a mistake: the server says that it still works. */
export const watchOn = (watch: TurnWatch): TurnWatch => ({ ...watch, phase: 'running' });

/**
 * Whether OpenCode would compact for ever: what it cannot leave out (its own prompt, the rules, the summary) is above the
 * model's window. It knows no end of this itself. Source: A47.
 */
export const doesNotFit = (watch: TurnWatch): boolean => watch.fruitless >= MOST_FRUITLESS;

/** How a turn that is over ended. */
export const turnEndOf = (watch: TurnWatch): TurnEnd => {
  const { error } = watch;
  if (doesNotFit(watch)) {
    return {
      kind: 'failed',
      code: 'context_length',
      message: `the conversation is above the model's context window right after it was compacted, ${MOST_FRUITLESS} times in a row; choose a model with a larger one`,
    };
  }
  // OpenCode goes idle without a word when it dies of a prompt inside (measured: a tool file that does not load).
  const isMute = watch.starts === 'prompt' && watch.assistantIds.size === 0;
  if (error === undefined && isMute) {
    return { kind: 'failed', code: 'unknown', message: 'the harness ended the turn without an answer' };
  }
  if (error === undefined) return { kind: 'completed' };
  if (error.code === 'aborted') return { kind: 'aborted' };
  return { kind: 'failed', ...error };
};
