// The gate of optional session features in clients.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { runtimeSupports } from './runtime-supports.ts';

describe('runtimeSupports', () => {
  it('A35 says yes while no health answer has arrived', () => {
    assert.equal(runtimeSupports(undefined, 'session.todo'), true);
  });
  it('A35 says yes for a list without any session id, as an old daemon has it', () => {
    assert.equal(runtimeSupports([], 'session.todo'), true);
    assert.equal(runtimeSupports(['file.import', 'config.release.v1'], 'session.todo'), true);
  });
  it('A30 hides what a list with session ids does not name', () => {
    const pi = ['session.subagents', 'session.compact', 'session.commands', 'config.release.v1'];
    assert.equal(runtimeSupports(pi, 'session.todo'), false);
    assert.equal(runtimeSupports(pi, 'session.compact'), true);
    assert.equal(runtimeSupports(pi, 'session.comp'), false);
  });
});
