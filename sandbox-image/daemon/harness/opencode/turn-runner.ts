// Runs one turn at a time on an OpenCode server: sends it, follows it by its effects until it is over, ends it on request,
// and finds a server that hangs or an end that nobody told. Must not know what kinds of turns there are, nor the host.
// Source: harness-runtimes §2.4, §2.9.
import { type Clock, sleep } from '#base/clock.ts';
import type { Logger } from '#base/log.ts';
import type { TurnEnd } from '../contract/turn-end.ts';
import type { Effect } from './map-events.ts';
import type { Server } from './supervisor.ts';
import {
  doesNotFit,
  type TurnStart,
  type TurnWatch,
  turnEndOf,
  watchEffect,
  watchJoin,
  watchLeave,
  watchOn,
  watchTurn,
} from './turn-watch.ts';

/** Times that a test may shorten. Units: milliseconds. */
export type OpencodeTimes = Readonly<{
  /** How often a running turn is looked at, and how long the server may take to answer. */
  probeIntervalMs: number;
  probeTimeoutMs: number;
  /** How long an abort may take before the process is killed. */
  abortLimitMs: number;
}>;

/** What a runner needs. */
export type TurnRunnerPorts = Readonly<{
  times: OpencodeTimes;
  /** Reads again what the session holds and applies it. */
  reread: (server: Server) => Promise<void>;
  /** Calls of the conversation that have no end yet. */
  openCalls: () => number;
  /** What in the workspace would hold the harness up; undefined: nothing. Pipes are removed by looking. */
  findTrap: () => string | undefined;
  /** Removes pipes anywhere in the workspace that the harness would read; never rejects. */
  clearPipes: (signal: AbortSignal) => Promise<void>;
  clock: Clock;
  log: Logger;
}>;

/** One turn to run. `send` may resolve at once or at the turn's end; it rejects when the server refuses the turn. */
export type Sending = Readonly<{ messageId: string; starts: TurnStart; send: () => Promise<void> }>;

/** The runner of one session. */
export type TurnRunner = Readonly<{
  run: (server: Server, sending: Sending, signal: AbortSignal) => Promise<TurnEnd>;
  /** Passes on what happened in the session. */
  apply: (effect: Effect) => void;
  /** Id of the running turn's message, while one runs. */
  messageId: () => string | undefined;
  /** Sends one more prompt into the running turn; false when none runs that could take it. Rejects when it is refused. */
  join: (messageId: string, send: () => Promise<void>) => Promise<boolean>;
}>;

/** Missed probes in a row after which the server counts as hanging. Source: harness-runtimes §2.9. */
const MISSED_PROBES = 3;
/** After an abort the last parts come a moment after "idle". */
const SETTLE_LIMIT_MS = 1_000;

type Active = {
  watch: TurnWatch;
  /** Joins that were begun and not answered yet. */
  joins: number;
  /** No prompt joins any more. */
  closing: boolean;
  readonly waiting: Set<() => void>;
  /** Ends a turn that cannot come to an end by itself. */
  giveUp: () => void;
};

/** The end of a turn whose server is gone. */
export const DIED: Extract<TurnEnd, { kind: 'failed' }> = {
  kind: 'failed',
  code: 'harness_died',
  message: 'the harness ended while the turn ran',
};

/** A runner that has nothing to do yet. */
export const createTurnRunner = (ports: TurnRunnerPorts): TurnRunner => {
  const { clock, log, times } = ports;
  let active: Active | undefined;

  const changed = (turn: Active): void => {
    for (const look of turn.waiting) look();
  };

  /** Resolves true once the test holds, false when the process is gone before. */
  const waitFor = (turn: Active, test: (watch: TurnWatch) => boolean, lost: AbortSignal): Promise<boolean> =>
    new Promise((resolve) => {
      const finish = (done: boolean): void => {
        lost.removeEventListener('abort', onLost);
        turn.waiting.delete(look);
        resolve(done);
      };
      const look = (): void => {
        if (test(turn.watch)) finish(true);
      };
      const onLost = (): void => finish(false);
      turn.waiting.add(look);
      if (lost.aborted) finish(false);
      else lost.addEventListener('abort', onLost, { once: true });
      look();
    });

  const isOver = (watch: TurnWatch): boolean => watch.phase === 'over';

  /** Looks at a turn from time to time: a server that does not answer is ended, a missed end is found. */
  const guardTurn = async (server: Server, over: AbortSignal): Promise<void> => {
    let missed = 0;
    let idle = 0;
    while (await sleep(clock, times.probeIntervalMs, over)) {
      // A command of the turn may have made a pipe that the server waits for since.
      ports.findTrap();
      await ports.clearPipes(over);
      try {
        const busy = (await server.client.busySessions(times.probeTimeoutMs)).has(server.sessionId());
        missed = 0;
        idle = busy ? 0 : idle + 1;
        if (idle >= 2 && !over.aborted) await ports.reread(server);
      } catch (error) {
        if (over.aborted) return;
        missed += 1;
        log.warn('the harness did not answer a probe', { missed, err: error });
        if (missed >= MISSED_PROBES) {
          log.error('the harness hangs and is ended');
          await server.process.end(0);
          return;
        }
      }
    }
  };

  /** Lets the last parts of a turn arrive that was aborted or failed. */
  const settle = async (server: Server, turn: Active): Promise<void> => {
    const begin = clock.monotonicMs();
    const isOpen = (): boolean => !turn.watch.settled || ports.openCalls() > 0;
    while (isOpen() && clock.monotonicMs() - begin < SETTLE_LIMIT_MS) await sleep(clock, 20, server.lost);
  };

  /** Whether the server itself says that the session rests; an "idle" may be the late one of an aborted run. */
  const isIdle = async (server: Server): Promise<boolean> => {
    try {
      return !(await server.client.busySessions(times.probeTimeoutMs)).has(server.sessionId());
    } catch (error) {
      log.warn('the harness did not say whether it works', { err: error });
      return true;
    }
  };

  const abort = async (server: Server, over: AbortSignal): Promise<void> => {
    try {
      await server.client.abort(server.sessionId());
    } catch (error) {
      log.warn('the harness did not take the abort', { err: error });
    }
    if (await sleep(clock, times.abortLimitMs, over)) {
      log.error('the harness does not end its turn and is ended');
      await server.process.end(0);
    }
  };

  /** Resolves once the server has the turn; rejects when it refuses it. What a call says later is told by events too. */
  const taken = async (server: Server, turn: Active, send: () => Promise<void>): Promise<void> => {
    const sent = send();
    const shown = waitFor(turn, (watch) => watch.phase !== 'sent', server.lost);
    sent.catch((error: unknown) => {
      if (turn.watch.phase !== 'sent') log.warn('a call of the harness broke while its turn ran', { err: error });
    });
    await Promise.race([sent, shown]);
  };

  const waitForRest = async (server: Server, turn: Active): Promise<boolean> => {
    for (;;) {
      if (!(await waitFor(turn, isOver, server.lost))) return false;
      if (turn.joins === 0 && (await isIdle(server)) && turn.joins === 0 && isOver(turn.watch)) {
        turn.closing = true;
        return true;
      }
      turn.watch = watchOn(turn.watch);
    }
  };

  const follow = async (server: Server, turn: Active, sending: Sending, signal: AbortSignal): Promise<TurnEnd> => {
    const over = new AbortController();
    let isEnding = false;
    const onAbort = (): void => {
      if (isEnding) return;
      isEnding = true;
      void abort(server, over.signal);
    };
    turn.giveUp = onAbort;
    try {
      await taken(server, turn, sending.send);
      if (signal.aborted) onAbort();
      else signal.addEventListener('abort', onAbort, { once: true });
      void guardTurn(server, over.signal);
      if (!(await waitForRest(server, turn))) return signal.aborted ? { kind: 'aborted' } : DIED;
      await settle(server, turn);
      const end = turnEndOf(turn.watch);
      // A shell command that was ended reports success, and a prompt that was ended at once has no answer.
      const saysLittle = sending.starts === 'shell' ? end.kind === 'completed' : turn.watch.assistantIds.size === 0;
      return signal.aborted && saysLittle ? { kind: 'aborted' } : end;
    } finally {
      over.abort();
      signal.removeEventListener('abort', onAbort);
    }
  };

  return {
    messageId: () => active?.watch.messageId,
    apply: (effect) => {
      if (active === undefined) return;
      active.watch = watchEffect(active.watch, effect);
      if (doesNotFit(active.watch)) active.giveUp();
      changed(active);
    },
    run: async (server, sending, signal) => {
      if (signal.aborted) return { kind: 'aborted' };
      const trap = ports.findTrap();
      if (trap !== undefined) return { kind: 'failed', code: 'unknown', message: trap };
      const own: Active = {
        watch: watchTurn(sending.messageId, sending.starts),
        joins: 0,
        closing: false,
        waiting: new Set(),
        giveUp: () => {},
      };
      active = own;
      try {
        return await follow(server, own, sending, signal);
      } catch (error) {
        if (server.lost.aborted) return DIED;
        log.error('the harness did not take the turn', { messageId: sending.messageId, err: error });
        await server.process.end(0);
        return { ...DIED, message: 'the harness did not take the prompt and was restarted' };
      } finally {
        active = undefined;
      }
    },
    join: async (messageId, send) => {
      const turn = active;
      if (turn === undefined || turn.closing || turn.watch.phase !== 'running') return false;
      turn.joins += 1;
      turn.watch = watchJoin(turn.watch, messageId);
      try {
        await send();
        return true;
      } catch (error) {
        turn.watch = watchLeave(turn.watch, messageId);
        throw error;
      } finally {
        turn.joins -= 1;
        changed(turn);
      }
    },
  };
};
