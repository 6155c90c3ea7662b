// Which sessions take prompts, and what the others are told.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConflictError, InvalidError, UnsupportedError } from '#base/errors.ts';
import type { Session } from '#schema/resources/session.ts';
import { checkPromptSize, checkTakesPrompts, checkThread, MAX_PROMPT_BYTES } from './prompts.ts';

const session = (status: Record<string, unknown>, metadata: Record<string, unknown> = {}): Session =>
  ({ metadata: { name: 'talk', ...metadata }, status }) as unknown as Session;

test('a session that works, sleeps or starts takes prompts', () => {
  for (const phase of [undefined, 'Pending', 'Starting', 'Running', 'Suspended']) {
    assert.doesNotThrow(() => checkTakesPrompts(session({ phase })));
  }
});

test('a prompt may hold a mebibyte of text in all its parts, counted in bytes, and no more', () => {
  const text = (bytes: number) => ({ type: 'text', text: 'x'.repeat(bytes) });
  assert.doesNotThrow(() => checkPromptSize([text(MAX_PROMPT_BYTES - 10), text(10)]));
  for (const parts of [
    [text(MAX_PROMPT_BYTES), text(1)],
    [{ type: 'text', text: 'é'.repeat(MAX_PROMPT_BYTES / 2 + 1) }],
  ]) {
    assert.throws(
      () => checkPromptSize(parts),
      (error: unknown) => error instanceof InvalidError && error.code === 'prompt_too_large' && error.status === 413,
    );
  }
});

const refused: readonly [Session, RegExp][] = [
  [
    session({ phase: 'Failed', failure: { message: 'registry.example.com/img:1 not found' } }),
    /^session talk has failed: registry\.example\.com\/img:1 not found; restart it first$/,
  ],
  [session({ phase: 'Failed' }), /its failure is in status\.failure/],
  [session({ phase: 'Succeeded' }), /finished \(Succeeded\); create another one/],
  [session({ phase: 'Expired' }), /finished \(Expired\)/],
  [session({ phase: 'Running' }, { deletionTimestamp: '2026-01-01T00:00:00Z' }), /is being deleted/],
];
for (const [which, message] of refused) {
  test(`refuses with 409: ${message.source}`, () => {
    assert.throws(
      () => checkTakesPrompts(which),
      (error: unknown) => {
        assert.ok(error instanceof ConflictError);
        assert.equal(error.code, 'session_failed');
        assert.match(error.message, message);
        return true;
      },
    );
  });
}

test('A65 a write to the conversation of a subagent is refused as not supported, one to the root is not', () => {
  for (const thread of [undefined, 'root']) assert.doesNotThrow(() => checkThread(thread));
  assert.throws(
    () => checkThread('ses_child'),
    (error) =>
      error instanceof UnsupportedError &&
      error.code === 'feature_not_supported' &&
      error.details?.['capability'] === 'session.subagents',
  );
});
