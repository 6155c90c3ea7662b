// The spool on a real disk: what survives a daemon, what is trimmed, what a cut line costs.
import assert from 'node:assert/strict';
import { appendFileSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { openSpool, readLeftovers } from '#daemon/host/event-log/spool.ts';

const line = (n: number, size = 10): string =>
  JSON.stringify({
    n,
    id: `e${n}`,
    type: 'session.idle',
    at: '2026-01-01T00:00:00.000Z',
    threadId: 'root',
    turnId: null,
    hidden: false,
    causedBy: null,
    data: { pad: 'x'.repeat(size) },
  });

describe('the event spool', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'beeuni-spool-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const numbers = (stored: Parameters<typeof readLeftovers>[1] = null) =>
    readLeftovers(folder, stored).events.map((event) => event.n);

  it('gives lines back in order, in batches, until they are acknowledged', () => {
    const spool = openSpool(folder, '1-a');
    for (let n = 1; n <= 5; n += 1) spool.append(line(n));
    assert.equal(spool.next(3).lines.length, 3);
    const batch = spool.next(3);
    spool.acknowledge(batch.bytes, 3);
    assert.deepEqual(
      spool.next(10).lines.map((text) => (JSON.parse(text) as { n: number }).n),
      [4, 5],
    );
    spool.close();
    assert.deepEqual(numbers(), [4, 5]);
  });

  it('reads a line that is longer than one read', () => {
    const spool = openSpool(folder, '1-a');
    spool.append(line(1, 3_000_000));
    spool.append(line(2));
    assert.equal(spool.next(10).lines.length, 2);
    spool.close();
  });

  it('FB9 empties its file once all is acknowledged, so that it does not grow with the session', () => {
    const spool = openSpool(folder, '1-a');
    for (let n = 1; n <= 30; n += 1) {
      spool.append(line(n, 100_000));
      const batch = spool.next(10);
      spool.acknowledge(batch.bytes, n);
    }
    assert.ok(statSync(join(folder, 'events-1-a.ndjson')).size < 2_000_000);
    assert.equal(spool.waitingBytes(), 0);
    spool.close();
    assert.deepEqual(numbers(), []);
  });

  it('skips a line that was cut by the death of its daemon', () => {
    const spool = openSpool(folder, '1-a');
    spool.append(line(1));
    spool.close();
    appendFileSync(join(folder, 'events-1-a.ndjson'), line(2).slice(0, 40));
    assert.deepEqual(numbers(), [1]);
  });

  it('leaves out what the claim says is stored, though the daemon never learned it', () => {
    const spool = openSpool(folder, '4-a');
    for (let n = 1; n <= 4; n += 1) spool.append(line(n));
    spool.acknowledge(spool.next(1).bytes, 1);
    spool.close();
    assert.deepEqual(numbers({ generation: 4, acknowledgedN: 3 }), [4]);
    assert.deepEqual(numbers({ generation: 5, acknowledgedN: 3 }), [2, 3, 4]);
  });

  it('takes each event once when a daemon died between copying and forgetting', () => {
    for (const name of ['9-a', '10-b']) {
      const spool = openSpool(folder, name);
      for (let n = 1; n <= 2; n += 1) spool.append(line(n));
      spool.close();
    }
    const leftovers = readLeftovers(folder, null);
    assert.deepEqual(
      leftovers.events.map((event) => event.id),
      ['e1', 'e2'],
    );
    leftovers.forget();
    assert.deepEqual(readdirSync(folder), []);
  });
});
