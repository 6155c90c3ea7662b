import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock as clock } from '#base/clock.ts';
import { beginProbe, type Isolation, probeIsolation } from './isolation-probe.ts';

const signal = new AbortController().signal;

describe('10-kubernetes §7 the probe of the network policy', () => {
  it('goes on while it is let in, and ends with the first try that is not', async () => {
    const answers = [true, true, false];
    const tryConnect = async (): Promise<boolean> => answers.shift() ?? assert.fail('tried once too often');
    assert.equal(await probeIsolation({ tryConnect, clock }, 60_000, signal), 'enforced');
    assert.deepEqual(answers, []);
  });

  it('gives up on a network that stays open', async () => {
    assert.equal(await probeIsolation({ tryConnect: async () => true, clock }, 0, signal), 'not-enforced');
  });

  it('begins before it is asked, gives that verdict once, and then probes again', async () => {
    const verdicts: Isolation[] = ['not-enforced', 'enforced'];
    let begun = 0;
    const probe = beginProbe(async () => {
      begun += 1;
      return verdicts[begun - 1] ?? 'not-probed';
    });
    assert.equal(begun, 1);
    assert.equal(await probe(), 'not-enforced');
    assert.equal(begun, 1);
    assert.equal(await probe(), 'enforced');
    assert.equal(begun, 2);
  });
});
