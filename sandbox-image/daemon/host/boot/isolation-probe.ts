// Finds out whether the network policy of this pod is in force, by a connection that must fail. New pods are open for a
// moment on some network plug-ins, so one open answer proves nothing. Must not know what follows from the verdict.
// Source: 10-kubernetes §7, sandbox-pod §9.
import { type Clock, sleep } from '#base/clock.ts';
import { connectTcp } from './connect-tcp.ts';

/** The verdict, in the words of the health document. */
export type Isolation = 'enforced' | 'not-enforced' | 'not-probed';

/** One try: whether the address let us in. */
export type TryConnect = (limitMs: number) => Promise<boolean>;

/** Time between tries, limit of one, and how long an open network is watched. Units: milliseconds. */
const TRY_INTERVAL_MS = 100;
const TRY_LIMIT_MS = 1_000;
/** How long `report` and `require` wait for the policy. Units: milliseconds. */
export const PROBE_LIMIT_MS = { report: 2_000, require: 10_000 } as const;

/** A try against a TCP address. Anything but an open connection counts as closed. */
export const tryTcp =
  (host: string, port: number): TryConnect =>
  async (limitMs) =>
    (await connectTcp(host, port, limitMs)) === 'open';

/** Gives a verdict each time it is asked. */
export type Probe = () => Promise<Isolation>;

/**
 * Begins a probe now, since a verdict takes a second and the claim can be made meanwhile; whoever asks first gets it, and
 * later ones a new one. Only for a pod that was made for its session: the policy of another is not there before its claim.
 */
export const beginProbe = (probe: Probe): Probe => {
  let begun: Promise<Isolation> | undefined = probe();
  return () => {
    const verdict = begun ?? probe();
    begun = undefined;
    return verdict;
  };
};

/** Probes until a try is refused or `limitMs` is over. A connection that was let in is closed at once. */
export const probeIsolation = async (
  ports: Readonly<{ tryConnect: TryConnect; clock: Clock }>,
  limitMs: number,
  signal: AbortSignal,
): Promise<Isolation> => {
  const begin = ports.clock.monotonicMs();
  while (!signal.aborted) {
    if (!(await ports.tryConnect(TRY_LIMIT_MS))) return 'enforced';
    if (ports.clock.monotonicMs() - begin >= limitMs) return 'not-enforced';
    await sleep(ports.clock, TRY_INTERVAL_MS, signal);
  }
  return 'not-probed';
};
