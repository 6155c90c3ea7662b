// When a prompt is over: only after its own message, its own "busy" and then "idle".
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ROOT_THREAD } from '../contract/events.ts';
import type { Effect } from './map-events.ts';
import { doesNotFit, type TurnWatch, turnEndOf, watchEffect, watchOn, watchTurn } from './turn-watch.ts';

const after = (...effects: readonly Effect[]): TurnWatch => effects.reduce(watchEffect, watchTurn('msg_1'));
const mine: Effect = { kind: 'message', role: 'user', id: 'msg_1', error: undefined };
const answer = (id: string, error?: { code: 'rate_limit' | 'aborted'; message: string }): Effect => ({
  kind: 'message',
  role: 'assistant',
  id,
  error,
});
const part = (fields: { type: 'step-finish' }): Effect => ({
  kind: 'emit',
  event: {
    type: 'message.part.updated',
    threadId: ROOT_THREAD,
    data: { part: { id: 'prt_1', messageId: 'msg_2', ...fields } },
  },
});
const compacted = (auto: boolean): Effect => ({
  kind: 'emit',
  event: { type: 'session.compacted', threadId: ROOT_THREAD, data: { auto } },
});
const busy: Effect = { kind: 'busy' };
const idle: Effect = { kind: 'idle' };

describe('watchEffect', () => {
  it('D17 takes an idle that came before its own busy for something older', () => {
    assert.equal(after(idle, mine, idle).phase, 'accepted');
    assert.equal(after(busy, idle).phase, 'sent');
  });

  it('D17 is over at the idle after its own busy', () => {
    assert.equal(after(mine, busy, answer('msg_2'), idle).phase, 'over');
    assert.deepEqual(turnEndOf(after(mine, busy, answer('msg_2'), idle)), { kind: 'completed' });
  });

  it('A155 fails a prompt that OpenCode ended without any answer', () => {
    const end = turnEndOf(after(mine, busy, idle));
    assert.equal(end.kind, 'failed');
    const failed: Effect = { kind: 'error', error: { code: 'context_length', message: 'too long' } };
    assert.deepEqual(turnEndOf(after(mine, busy, failed, idle)), {
      ...end,
      code: 'context_length',
      message: 'too long',
    });
  });

  it('forgets an error that a further answer followed', () => {
    const failed: Effect = { kind: 'error', error: { code: 'context_length', message: 'too long' } };
    assert.equal(turnEndOf(after(mine, busy, answer('msg_2'), failed, answer('msg_3'), idle)).kind, 'completed');
    assert.deepEqual(turnEndOf(after(mine, busy, answer('msg_2'), failed, idle)), {
      kind: 'failed',
      code: 'context_length',
      message: 'too long',
    });
  });

  it('leaves aside the late end of an older answer, whenever it comes', () => {
    const late = answer('msg_0', { code: 'aborted', message: 'Aborted' });
    assert.equal(turnEndOf(after(late, mine, busy, answer('msg_2'), idle)).kind, 'completed');
    assert.equal(turnEndOf(after(mine, busy, answer('msg_2'), late, answer('msg_2'), idle)).kind, 'completed');
  });

  it('is settled once an error is told of the answer too, which comes after "idle"', () => {
    const failed: Effect = { kind: 'error', error: { code: 'credits', message: 'used up' } };
    const over = after(mine, busy, answer('msg_2'), failed, idle);
    assert.deepEqual([over.phase, over.settled], ['over', false]);
    const settled = watchEffect(over, answer('msg_2', { code: 'rate_limit', message: 'told of the answer' }));
    assert.equal(settled.settled, true);
    assert.deepEqual(turnEndOf(settled), { kind: 'failed', code: 'rate_limit', message: 'told of the answer' });
    assert.equal(watchEffect(over, answer('msg_3', { code: 'aborted', message: 'of the next turn' })), over);
  });

  it('goes on when the server says that it still works', () => {
    const again = watchOn(after(mine, busy, idle));
    assert.equal(watchEffect(again, idle).phase, 'over');
  });

  it('A47 gives up a conversation that is too long again and again, right after it was compacted', () => {
    const step = (): Effect => part({ type: 'step-finish' });
    const round = [step(), step(), compacted(true)];
    const still = after(mine, busy, step(), ...round, ...round, ...round);
    assert.equal(doesNotFit(still), false);
    const stuck = round.reduce(watchEffect, still);
    assert.equal(doesNotFit(stuck), true);
    const end = turnEndOf(watchEffect(stuck, idle));
    assert.equal(end.kind === 'failed' && end.code, 'context_length');
  });

  it('A47 goes on where a compaction made room for two steps, or where somebody asked for it', () => {
    const step = (): Effect => part({ type: 'step-finish' });
    const work = [step(), step(), step(), compacted(true)];
    assert.equal(doesNotFit(after(mine, busy, ...work, ...work, ...work, ...work, ...work)), false);
    const asked = [step(), compacted(false)];
    assert.equal(doesNotFit(after(mine, busy, ...asked, ...asked, ...asked, ...asked, ...asked)), false);
  });

  it('reports an aborted answer as aborted', () => {
    const aborted = answer('msg_2', { code: 'aborted', message: 'Aborted' });
    assert.deepEqual(turnEndOf(after(mine, busy, answer('msg_2'), aborted, idle)), { kind: 'aborted' });
  });
});
