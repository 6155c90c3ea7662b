// Follows one prompt through the effects of its session until it is over. Pure: a state in, a state out.
// States: sent -> accepted (our message is in the session) -> running (busy) -> over (idle). An idle before "running"
// belongs to something older. Must not know HTTP. Source: harness-runtimes §2.4.
import type { TurnEnd } from '../contract/adapter.ts';
import type { Effect } from './map-events.ts';
import type { TurnError } from './turn-error.ts';

/** Where one prompt is. `error`: the last one that nothing followed, since a retry or a compaction may mend it. */
export type TurnWatch = Readonly<{
  messageId: string;
  phase: 'sent' | 'accepted' | 'running' | 'over';
  error: TurnError | undefined;
  assistantIds: ReadonlySet<string>;
}>;

/** A prompt that was just sent. */
export const watchTurn = (messageId: string): TurnWatch => ({
  messageId,
  phase: 'sent',
  error: undefined,
  assistantIds: new Set(),
});

/** The watch after one effect. */
export const watchEffect = (watch: TurnWatch, effect: Effect): TurnWatch => {
  if (watch.phase === 'over') return watch;
  switch (effect.kind) {
    case 'message': {
      if (effect.role === 'user') {
        return effect.id === watch.messageId && watch.phase === 'sent' ? { ...watch, phase: 'accepted' } : watch;
      }
      // Before our message is there, an answer belongs to something older.
      if (watch.phase === 'sent') return watch;
      if (watch.assistantIds.has(effect.id)) return { ...watch, error: effect.error ?? watch.error };
      return { ...watch, assistantIds: new Set(watch.assistantIds).add(effect.id), error: effect.error };
    }
    case 'busy':
      return watch.phase === 'accepted' ? { ...watch, phase: 'running' } : watch;
    case 'error':
      return { ...watch, error: effect.error };
    case 'idle':
      return watch.phase === 'running' ? { ...watch, phase: 'over' } : watch;
    default:
      return watch;
  }
};

/** How a turn that is over ended. */
export const turnEndOf = (watch: TurnWatch): TurnEnd => {
  const { error } = watch;
  if (error === undefined) return { kind: 'completed' };
  if (error.code === 'aborted') return { kind: 'aborted' };
  return { kind: 'failed', ...error };
};
