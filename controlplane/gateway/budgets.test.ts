// What a replica does with its leases, with a database that a test answers for.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type BudgetRefusal, type Hold, type Lease, makeBudgets } from './budgets.ts';

const KEY = { scope: 'session', uid: 's', period: '' } as const;
const LIMITS = { budgets: [{ ...KEY, limitMicroUsd: 1_000 }], runs: undefined };

test('what becomes stored while a lease is asked for is taken off it, also when other calls end meanwhile', async () => {
  const wanted: number[] = [];
  const answers: ((lease: Lease) => void)[] = [];
  const budgets = makeBudgets({
    lease: (_limit, want) => {
      wanted.push(want);
      return new Promise((resolve) => answers.push(resolve));
    },
    rankOfTurn: async () => 1,
    clock: { monotonicMs: () => 0 },
  });
  const take = async (): Promise<Hold> => {
    const taken: Hold | BudgetRefusal = await budgets.take(LIMITS, 100, null);
    if ('reason' in taken) throw new Error(taken.reason);
    return taken;
  };
  const grant = (heldMicroUsd: number): void =>
    answers.shift()?.({ spentMicroUsd: 0, othersMicroUsd: 0, heldMicroUsd });
  const first = take();
  grant(200);
  const [one, other] = [await first, await take()];
  one.settle(100);
  const third = take();
  assert.deepEqual(wanted, [100, 300]);
  // The database had granted the lease when it stored the first call; its answer arrives after both.
  budgets.stored([{ ...KEY, costMicroUsd: 100 }]);
  other.settle(100);
  grant(300);
  await third;
  const fourth = take();
  assert.equal(wanted.length, 3, 'of 300 the first call had spent 100, and two more are not stored');
  grant(400);
  await fourth;
});
