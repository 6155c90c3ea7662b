// The boot of a claimed session up to its harness: network closed, branch checked out, harness started. Each step is
// repeated until it holds, and what holds it up is reported. Must not know turns. Source: A22, 10-kubernetes §7.
import { type BackoffBounds, backoffMs } from '#base/backoff.ts';
import { type Clock, sleep } from '#base/clock.ts';
import type { Logger } from '#base/log.ts';
import type { DaemonState } from '../daemon-state.ts';
import type { Checkout } from '../git/checkout.ts';
import type { Probe } from './isolation-probe.ts';

const CHECKOUT_BACKOFF: BackoffBounds = { baseMs: 1_000, maxMs: 30_000 };

/** Ports of the steps. */
export type BringUpPorts = Readonly<{ state: DaemonState; clock: Clock; random: () => number; log: Logger }>;

/** The checkout, tried until it works; undefined when `signal` fired. */
export const checkOutUntilDone = async (
  ports: BringUpPorts,
  checkOut: () => Promise<Checkout>,
  signal: AbortSignal,
): Promise<Checkout | undefined> => {
  for (let failures = 1; !signal.aborted; failures += 1) {
    try {
      const checkout = await checkOut();
      ports.state.report({
        checkout: { branch: checkout.branch, commit: checkout.commit },
        onBranch: true,
        bootError: null,
      });
      ports.state.reach('checked-out');
      return checkout;
    } catch (error) {
      if (signal.aborted) return undefined;
      const message = error instanceof Error ? error.message : 'the checkout failed';
      ports.log.warn('the checkout failed; it is tried again', { failures, err: error });
      ports.state.report({ bootError: { category: 'CloneFailed', message } });
      await sleep(ports.clock, backoffMs(CHECKOUT_BACKOFF, failures, ports.random), signal);
    }
  }
  return undefined;
};

/**
 * Probes the network policy. `report` notes the verdict and goes on; `require` holds until it is in force, and for ever
 * where nothing can be probed. Resolves false when `signal` fired first.
 */
export const waitForIsolation = async (
  ports: BringUpPorts,
  mode: 'report' | 'require' | 'off',
  probe: Probe | undefined,
  signal: AbortSignal,
): Promise<boolean> => {
  if (mode === 'off') return !signal.aborted;
  while (!signal.aborted) {
    const isolation = probe === undefined ? 'not-probed' : await probe();
    if (signal.aborted) return false;
    ports.state.report({ isolation });
    if (isolation === 'enforced' || mode === 'report') {
      ports.state.reach('isolated');
      return true;
    }
    const message =
      isolation === 'not-probed'
        ? 'the network isolation is required and cannot be probed here'
        : 'the network policy of this pod is not in force';
    ports.log.error('the harness is held back', { reason: message });
    ports.state.report({ bootError: { category: 'HarnessBoot', message } });
    await sleep(ports.clock, 5_000, signal);
  }
  return false;
};
