// A process that stands for election and writes while it leads: the other side of the lease tests.
// Arguments: kubeconfig, namespace, identity, times as JSON. Prints one word per line:
// synced, leading, wrote, refused, lost, released.
import { systemClock } from '#base/clock.ts';
import { mergePatch } from '#kube/apply.ts';
import { Informer } from '#kube/informer.ts';
import { LeaderElection, type LeaseState, type LeaseTimes, leaseSelection, leaseState } from '#kube/lease.ts';
import { LEASES, SERVICE_ACCOUNTS } from '#kube/resource-types.ts';
import { openTestClient } from './kube.ts';

const [kubeconfigPath = '', namespace = '', identity = '', times = '{}'] = process.argv.slice(2);
const say = (word: string): void => void process.stdout.write(`${word}\n`);
const { client, log, metrics } = await openTestClient(kubeconfigPath, { userAgent: identity });
const lease = { namespace, name: 'leader' };
const ports = { client, clock: systemClock, random: Math.random, log, metrics };
const informer = new Informer<LeaseState>(
  { type: LEASES, selection: leaseSelection(lease), project: leaseState },
  ports,
);
const election: LeaderElection = new LeaderElection(
  {
    lease,
    identity,
    times: JSON.parse(times) as LeaseTimes,
    onAcquired: () => say('leading'),
    onLost: () => {
      say('lost');
      process.exit(1);
    },
  },
  { ...ports, informer },
);
const guarded = client.guarded(() => election.surelyHeld());
// A writer that does not know about the lease, as a reconcile in flight.
setInterval(() => {
  mergePatch(
    guarded,
    SERVICE_ACCOUNTS,
    { namespace, name: 'target' },
    { metadata: { labels: { writer: identity } } },
    { manager: identity },
  )
    .then(() => say('wrote'))
    .catch(() => say('refused'));
}, 50);
process.on('SIGTERM', () => {
  void election.release().then(() => {
    say('released');
    process.exit(0);
  });
});
informer.start();
await informer.whenSynced();
say('synced');
election.start();
