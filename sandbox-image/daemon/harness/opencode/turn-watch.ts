// Follows one prompt through the effects of its session until it is over. Pure: a state in, a state out.
// States: sent -> accepted (our message is in the session) -> running (busy) -> over (idle). An idle before "running"
// belongs to something older; after "over" only the late end of an own answer still counts.
// Must not know HTTP. Source: harness-runtimes §2.4.
import type { TurnEnd } from '../contract/adapter.ts';
import type { Effect } from './map-events.ts';
import type { TurnError } from './turn-error.ts';

/**
 * Where one prompt is. `error`: the last one that nothing followed, since a retry or a compaction may mend it.
 * `settled`: false while an error was told of the session and not yet of the answer, which OpenCode does after "idle".
 */
export type TurnWatch = Readonly<{
  messageId: string;
  phase: 'sent' | 'accepted' | 'running' | 'over';
  error: TurnError | undefined;
  settled: boolean;
  assistantIds: ReadonlySet<string>;
}>;

/** A prompt that was just sent. */
export const watchTurn = (messageId: string): TurnWatch => ({
  messageId,
  phase: 'sent',
  error: undefined,
  settled: true,
  assistantIds: new Set(),
});

const onAnswer = (watch: TurnWatch, id: string, error: TurnError | undefined): TurnWatch => {
  // Ids sort by time: an answer below our message ends something older, as late as it comes.
  if (id < watch.messageId) return watch;
  if (watch.assistantIds.has(id)) return error === undefined ? watch : { ...watch, error, settled: true };
  return { ...watch, assistantIds: new Set(watch.assistantIds).add(id), error, settled: true };
};

/** The watch after one effect. */
export const watchEffect = (watch: TurnWatch, effect: Effect): TurnWatch => {
  if (effect.kind === 'message' && effect.role === 'assistant') {
    const isLate = watch.phase === 'over' && !watch.assistantIds.has(effect.id);
    return isLate ? watch : onAnswer(watch, effect.id, effect.error);
  }
  if (watch.phase === 'over') return watch;
  switch (effect.kind) {
    case 'message':
      return effect.id === watch.messageId && watch.phase === 'sent' ? { ...watch, phase: 'accepted' } : watch;
    case 'busy':
      return watch.phase === 'accepted' ? { ...watch, phase: 'running' } : watch;
    case 'error':
      return { ...watch, error: effect.error, settled: false };
    case 'idle':
      return watch.phase === 'running' ? { ...watch, phase: 'over' } : watch;
    default:
      return watch;
  }
};

/** The watch of a turn whose "over" was a mistake: the server says that it still works. */
export const watchOn = (watch: TurnWatch): TurnWatch => ({ ...watch, phase: 'running' });

/** How a turn that is over ended. */
export const turnEndOf = (watch: TurnWatch): TurnEnd => {
  const { error } = watch;
  if (error === undefined) return { kind: 'completed' };
  if (error.code === 'aborted') return { kind: 'aborted' };
  return { kind: 'failed', ...error };
};
