// When a prompt is over: only after its own message, its own "busy" and then "idle".
import assert from 'node:assert/strict';
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
  it('D17 takes an idle that came before its own busy for something older', () => {
    assert.equal(after(idle, mine, idle).phase, 'accepted');
    assert.equal(after(busy, idle).phase, 'sent');
  });

  it('D17 is over at the idle after its own busy', () => {
    assert.equal(after(mine, busy, answer('a'), idle).phase, 'over');
    assert.deepEqual(turnEndOf(after(mine, busy, answer('a'), idle)), { kind: 'completed' });
  });

  it('forgets an error that a further answer followed', () => {
    const failed: Effect = { kind: 'error', error: { code: 'context_length', message: 'too long' } };
    assert.equal(turnEndOf(after(mine, busy, answer('a'), failed, answer('b'), idle)).kind, 'completed');
    assert.deepEqual(turnEndOf(after(mine, busy, answer('a'), failed, idle)), {
      kind: 'failed',
      code: 'context_length',
      message: 'too long',
    });
  });

  it('leaves aside the late end of an older answer', () => {
    const late = answer('old', { code: 'aborted', message: 'Aborted' });
    assert.equal(turnEndOf(after(late, mine, busy, answer('a'), idle)).kind, 'completed');
  });

  it('reports an aborted answer as aborted', () => {
    const aborted = answer('a', { code: 'aborted', message: 'Aborted' });
    assert.deepEqual(turnEndOf(after(mine, busy, answer('a'), aborted, idle)), { kind: 'aborted' });
  });
});
