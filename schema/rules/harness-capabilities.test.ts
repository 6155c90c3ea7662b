// What a switch of harnesses costs.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CAPABILITIES } from '../wire/runtime.ts';
import { HARNESS_CAPABILITIES, lostCapabilities } from './harness-capabilities.ts';

describe('lostCapabilities', () => {
  it('A62 names what only the standard harness has when a session goes to the experimental one', () => {
    assert.deepEqual(lostCapabilities(CAPABILITIES, 'pi'), [
      'session.rewind',
      'session.mcp',
      'session.todo',
      'session.attach',
      'session.config',
      'session.fork',
      'session.shell',
      'session.steer',
    ]);
  });
  it('A34 names nothing on the way back, for host ids, and for a harness that is not known', () => {
    assert.deepEqual(lostCapabilities(HARNESS_CAPABILITIES['pi'] ?? [], 'opencode'), []);
    assert.deepEqual(lostCapabilities(['config.release.v1'], 'pi'), []);
    assert.deepEqual(lostCapabilities(CAPABILITIES, 'constructor'), []);
  });
});
