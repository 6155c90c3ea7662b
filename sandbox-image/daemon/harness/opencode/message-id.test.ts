// Ids that sort in the order in which they were made.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { messageIds } from './message-id.ts';

describe('messageIds', () => {
  it('A145 makes ids that sort as they were made, also within a millisecond and when the clock goes back', () => {
    const times = [1_796_047_972_989, 1_796_047_972_989, 1_796_047_972_990, 1_796_047_900_000, 1_796_047_972_991];
    let at = 0;
    const next = messageIds(
      () => times[at++] ?? 0,
      () => 0.5,
    );
    const ids = times.map(() => next());
    assert.deepEqual([...ids].sort(), ids);
    assert.equal(new Set(ids).size, ids.length);
    for (const id of ids) assert.match(id, /^msg_[0-9a-f]{12}[0-9A-Za-z]{14}$/);
  });

  it('makes the id that OpenCode itself made at the same time', () => {
    // Recorded: a message made at 1796047976845 has the id msg_22ccd398d001…
    assert.equal(
      messageIds(
        () => 1_796_047_976_845,
        () => 0,
      )().slice(0, 16),
      'msg_22ccd398d001',
    );
  });
});
