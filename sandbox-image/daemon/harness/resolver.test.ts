// Which harness an id gives, and that it never gives another one.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { SERVED_RUNTIMES } from '#schema/resources/sandbox-fields.ts';
import { ADAPTER_IDS, findAdapter, KNOWN_HARNESS_IDS } from './resolver.ts';

describe('findAdapter', () => {
  it('A12 gives an adapter of exactly the asked id, or none', async () => {
    for (const id of [...KNOWN_HARNESS_IDS, 'other', '', 'constructor', '__proto__']) {
      const adapter = await findAdapter(id);
      assert.equal(adapter?.id, ADAPTER_IDS.includes(id) ? id : undefined, id);
    }
  });

  it('A13 the validator warns of exactly the runtimes without an adapter', () => {
    assert.deepEqual([...ADAPTER_IDS].sort(), [...SERVED_RUNTIMES].sort());
  });
});
