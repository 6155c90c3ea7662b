import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { describe, it } from 'node:test';
import { systemClock as clock } from '#base/clock.ts';
import { connectTcp } from './connect-tcp.ts';
import { untilAnswered, waitForNetwork } from './open-network.ts';

const signal = new AbortController().signal;

describe('the network of a new pod', () => {
  it('is asked with growing limits until something comes back', async () => {
    const limits: number[] = [];
    const ask = async (limitMs: number): Promise<boolean> => limits.push(limitMs) === 6;
    assert.equal(await untilAnswered(ask, clock, signal), true);
    assert.deepEqual(limits, [100, 200, 400, 800, 800, 800]);
  });

  it('is not waited for longer than its limit, nor after the end of the process was asked for', async () => {
    let nowMs = 0;
    const passing = { ...clock, monotonicMs: () => nowMs };
    const silent = async (limitMs: number): Promise<boolean> => {
      nowMs += limitMs;
      return false;
    };
    assert.equal(await untilAnswered(silent, passing, signal), false);
    assert.ok(nowMs >= 10_000 && nowMs < 11_000, String(nowMs));
    assert.equal(await untilAnswered(() => assert.fail('asked'), clock, AbortSignal.abort()), false);
  });

  it('counts a refusal as an answer: the claim says what is wrong', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    assert.equal(await connectTcp('127.0.0.1', port, 5_000), 'open');
    await waitForNetwork(`http://127.0.0.1:${port}`, clock, signal);
    await new Promise((resolve) => server.close(resolve));
    assert.equal(await connectTcp('127.0.0.1', port, 5_000), 'refused');
    await waitForNetwork(`http://127.0.0.1:${port}/path`, clock, signal);
  });
});
