// When a harness is to ask again after a stream that broke, and when the turn is to end.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AGAIN_MS, makeBrokenStreams } from './broken-streams.ts';
import { isFinalText } from './wording.ts';

test('FC1 the first cut may be asked again, the next one ends the turn, until an answer came whole or time went by', () => {
  let nowMs = 0;
  const streams = makeBrokenStreams({ monotonicMs: () => nowMs });
  const isFinal = (session = 'a'): boolean => {
    const { status, type, code, message } = streams.broke(session, undefined);
    const final = status < 500;
    assert.equal(isFinalText(`${message} ${type} ${code}`), final, message);
    return final;
  };
  assert.deepEqual([isFinal(), isFinal(), isFinal()], [false, true, true]);
  assert.equal(isFinal('b'), false, 'another session');
  streams.whole('a');
  assert.deepEqual([isFinal(), isFinal()], [false, true]);
  nowMs += AGAIN_MS + 1;
  assert.equal(isFinal(), false);
});

test('FC2 a provider that went silent ends the turn at once, as every try would take as long', () => {
  const streams = makeBrokenStreams({ monotonicMs: () => 0 });
  for (const [why, words] of [
    ['idle', /stopped sending/],
    ['total', /the time limit of the call is over/],
  ] as const) {
    const error = streams.broke('a', why);
    assert.deepEqual([error.code, error.status], ['provider_timed_out', 400]);
    assert.ok(isFinalText(error.message));
    assert.match(error.message, words);
  }
});
