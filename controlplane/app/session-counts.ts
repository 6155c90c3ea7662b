// What is counted of turns, tool calls and appends, around the functions that they pass through. Pure but for the clock.
// Must not know instruments. Source: 10-kubernetes §10.
import type { Clock } from '#base/clock.ts';
import type { DaemonEvent, TurnOutcome } from '#schema/events/envelope.ts';
import type { DecideTurnEnd } from './ports.ts';

/** A turn that ended. `seconds`: how long it ran; undefined for one that never began, or began and ended in one append. */
export type TurnCount = Readonly<{ harness: string; outcome: TurnOutcome; seconds: number | undefined }>;

/** The rule, telling of every end that it decides about. */
export const countingTurnEnds =
  (decide: DecideTurnEnd, count: (turn: TurnCount) => void): DecideTurnEnd =>
  (ended) => {
    const verdict = decide(ended);
    const ms = ended.startedAt === null ? Number.NaN : Date.parse(ended.endedAt) - Date.parse(ended.startedAt);
    const seconds = Number.isFinite(ms) ? Math.max(0, ms) / 1_000 : undefined;
    count({ harness: ended.harness ?? 'other', outcome: verdict.outcome, seconds });
    return verdict;
  };

/** Outcomes of the tool calls that ended in the events. */
export const toolOutcomes = (events: readonly DaemonEvent[]): readonly string[] =>
  events.flatMap(({ type, data }) => (type === 'tool.terminal' ? [String(data['outcome'])] : []));

/** What became of the appends of one transaction, and how long it took. Units: seconds. */
export type AppendCount = Readonly<{ result: 'stored' | 'refused' | 'failed'; appends: number }>;

/** The function that stores a batch, telling of every batch. */
export const countingAppends =
  <Append, Result extends object>(
    store: (batch: readonly Append[]) => Promise<Result[]>,
    clock: Pick<Clock, 'monotonicMs'>,
    count: (counts: readonly AppendCount[], seconds: number) => void,
  ): ((batch: readonly Append[]) => Promise<Result[]>) =>
  async (batch) => {
    const startedMs = clock.monotonicMs();
    const tell = (...counts: readonly AppendCount[]): void =>
      count(
        counts.filter(({ appends }) => appends > 0),
        (clock.monotonicMs() - startedMs) / 1_000,
      );
    try {
      const results = await store(batch);
      const refused = results.filter((result) => 'refused' in result).length;
      tell({ result: 'stored', appends: results.length - refused }, { result: 'refused', appends: refused });
      return results;
    } catch (error) {
      tell({ result: 'failed', appends: batch.length });
      throw error;
    }
  };
