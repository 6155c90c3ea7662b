// When a prompt is over: only after its own message, its own "busy" and then "idle".
import { describe, it } from 'node:test';
import type { Effect } from './map-events.ts';
import { type TurnWatch, turnEndOf, watchEffect, watchTurn } from './turn-watch.ts';

const after = (...effects: readonly Effect[]): TurnWatch => effects.reduce(watchEffect, watchTurn('msg_1'));
const mine: Effect = { kind: 'message', role: 'user', id: 'msg_1', error: undefined };
const answer = (id: string, error?: { code: 'rate_limit' | 'aborted'; message: string }): Effect => ({
  kind: 'message',
  role: 'assistant',
  id,
  error,
});
const busy: Effect = { kind: 'busy' };
const idle: Effect = { kind: 'idle' };

describe('watchEffect', () => {
  it('D17 takes an idle that came before its own busy for something older', (t) => {
    t.assert.equal(after(idle, mine, idle).phase, 'accepted');
    t.assert.equal(after(busy, idle).phase, 'sent');
  });

  it('D17 is over at the idle after its own busy', (t) => {
    t.assert.equal(after(mine, busy, answer('a'), idle).phase, 'over');
    t.assert.deepEqual(turnEndOf(after(mine, busy, answer('a'), idle)), { kind: 'completed' });
  });

  it('forgets an error that a further answer followed', (t) => {
    const failed: Effect = { kind: 'error', error: { code: 'context_length', message: 'too long' } };
    t.assert.equal(turnEndOf(after(mine, busy, answer('a'), failed, answer('b'), idle)).kind, 'completed');
    t.assert.deepEqual(turnEndOf(after(mine, busy, answer('a'), failed, idle)), {
      kind: 'failed',
      code: 'context_length',
      message: 'too long',
    });
  });

  it('leaves aside the late end of an older answer', (t) => {
    const late = answer('old', { code: 'aborted', message: 'Aborted' });
    t.assert.equal(turnEndOf(after(late, mine, busy, answer('a'), idle)).kind, 'completed');
  });

  it('reports an aborted answer as aborted', (t) => {
    const aborted = answer('a', { code: 'aborted', message: 'Aborted' });
    t.assert.deepEqual(turnEndOf(after(mine, busy, answer('a'), aborted, idle)), { kind: 'aborted' });
  });
});
