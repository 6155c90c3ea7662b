// Runs prompts as turns, one at a time. Owns the start and the one terminal event of each turn, whatever the harness
// does; then pushes the branch and takes the next. The inbox of the control plane is the truth, a nudge only saves time.
// Must not know any harness, git or HTTP. States: closed -> idle <-> running -> closed (drained). Source: D17.

import { type BackoffBounds, backoffMs } from '#base/backoff.ts';
import { type Clock, sleep } from '#base/clock.ts';
import { asBeeuniError } from '#base/errors.ts';
import { headOfBytes } from '#base/head-of-text.ts';
import type { Logger } from '#base/log.ts';
import type { Harness, TurnEnd } from '#daemon/harness/contract/adapter.ts';
import type { SteeredPrompt } from '#daemon/harness/contract/capabilities.ts';
import { type HarnessEvent, ROOT_THREAD } from '#daemon/harness/contract/events.ts';
import type { TurnErrorCode, TurnOutcome, TypedEvent } from '#schema/events/envelope.ts';
import type { TurnBlock } from '#schema/wire/health.ts';
import type { Turn } from '#schema/wire/turns.ts';
import { runTurn } from './run-turn.ts';
import { closeOpenCalls, EMPTY_RECORD, MAX_SUMMARY_BYTES, recordEvent, type TurnRecord } from './turn-record.ts';

/** Who ended a turn that the harness did not end: a person or the control plane, or the end of this sandbox. */
export type AbortReason = 'asked' | 'sandbox';

/** The workspace as turns need it. None rejects. */
export type TurnWorkspace = Readonly<{
  head: () => Promise<string | null>;
  commitsSince: (commit: string) => Promise<readonly Readonly<{ commit: string; subject: string }>[]>;
  /** Pushes the branch and reports it as events of the turn. */
  push: (turnId: string | null) => Promise<void>;
  /** Makes sure that the session branch is checked out; false when it is not and cannot be. */
  onBranch: () => Promise<boolean>;
}>;

/** Ports of the turns. */
export type TurnsPorts = Readonly<{
  takeNextTurn: () => Promise<Turn | null>;
  harness: Harness;
  harnessId: string;
  branch: string;
  defaults: Readonly<{ agent: string | null; model: string | null }>;
  workspace: TurnWorkspace;
  emit: (event: TypedEvent, place: Readonly<{ threadId: string; turnId: string | null }>) => void;
  /** Stores all events before the next prompt is taken, so that an ended prompt is never given again. */
  flush: (deadlineMs: number) => Promise<boolean>;
  closeRequests: () => void;
  redact: (text: string) => string;
  onChange: () => void;
  clock: Clock;
  random: () => number;
  log: Logger;
}>;

/** The turns of this daemon. */
export type Turns = Readonly<{
  /** Looks for a prompt now; does nothing while a turn runs, while closed and while the harness is not ready. */
  poke: () => void;
  /** The running turn and since when, or since when there is none. */
  activity: () => Readonly<{ turnId: string | null; sinceMs: number }>;
  /** How the turn of a client's message stands, or the running or last one. Source: A24. */
  standing: (messageId?: string) => TurnBlock;
  /** Passes an event of the harness on as one of the running turn. */
  fromHarness: (event: HarnessEvent) => void;
  /** Ends the running turn; false when none runs or another one does. */
  abort: (reason: AbortReason, turnId?: string) => boolean;
  /**
   * Does work while no turn runs and none can begin; undefined when one runs. What follows the end of a turn is waited
   * for, up to 15 s. Rejects as `work` does.
   */
  whileIdle: <T>(work: () => Promise<T>) => Promise<Readonly<{ value: T }> | undefined>;
  /**
   * Lets a prompt join the running turn by `steer`; gives back the turn's id, undefined when it could not. A prompt that
   * has joined is told to the log, once.
   */
  join: (prompt: SteeredPrompt, steer: (prompt: SteeredPrompt) => Promise<boolean>) => Promise<string | undefined>;
  /** Takes no more prompts; resolves when no turn runs. After `deadlineMs` a running turn is aborted for `reason`. */
  drain: (deadlineMs: number, reason: AbortReason) => Promise<void>;
}>;

const TAKE_BACKOFF: BackoffBounds = { baseMs: 250, maxMs: 5_000 };
const FLUSH_LIMIT_MS = 30_000;
const REMEMBERED_TURNS = 64;
/** How long work between turns waits for the push and the look for the next prompt that follow a turn. Units: milliseconds. */
const SETTLE_LIMIT_MS = 15_000;

type Running = {
  readonly turn: Turn;
  readonly controller: AbortController;
  reason: AbortReason | undefined;
  record: TurnRecord;
};

type Verdict = Readonly<{ outcome: TurnOutcome; code: TurnErrorCode | null; message: string | null }>;

/** Errors that are about the model that was called. */
const ABOUT_MODEL: ReadonlySet<TurnErrorCode> = new Set([
  'auth',
  'context_length',
  'output_length',
  'rate_limit',
  'request_too_large',
  'unknown_model',
]);
const MAX_MESSAGE_CHARACTERS = 1_024;

/**
 * The message with the model that it is about. What the gateway says holds no name, as digits in it would make a harness
 * call again; here no harness reads it any more.
 */
const naming = (code: TurnErrorCode, message: string, model: string | null): string => {
  if (model === null || !ABOUT_MODEL.has(code) || message.includes(model))
    return message.slice(0, MAX_MESSAGE_CHARACTERS);
  const tail = ` (model ${model})`;
  return `${message.slice(0, MAX_MESSAGE_CHARACTERS - tail.length)}${tail}`;
};

/** What a turn's end means for its prompt. `model`: the one that it called; null where that is not known. */
export const verdictOf = (end: TurnEnd, reason: AbortReason | undefined, model: string | null = null): Verdict => {
  switch (end.kind) {
    case 'completed':
      return { outcome: 'Succeeded', code: null, message: null };
    case 'aborted':
      return reason === 'sandbox'
        ? { outcome: 'Interrupted', code: 'sandbox_lost', message: 'the sandbox was ended while the turn ran' }
        : { outcome: 'Aborted', code: 'aborted', message: 'the turn was aborted' };
    case 'failed':
      return { outcome: 'Failed', code: end.code, message: naming(end.code, end.message, model) };
  }
};

/** Turns of one session; nothing happens before the first `poke`. */
export const createTurns = (ports: TurnsPorts): Turns => {
  const { clock, log, workspace } = ports;
  const closed = new AbortController();
  const ended: string[] = [];
  /** Ends of turns by the client's message, oldest first; `stored`: the control plane has the end. */
  const ends = new Map<string, Readonly<{ outcome: TurnOutcome; stored: boolean }>>();
  /** Prompts that ran as turns of their own. */
  const ranByItself = new Set<string>();
  /** Prompts that joined a turn, or are about to, by their id. */
  const joined = new Map<string, Promise<string | undefined>>();
  let running: Running | undefined;
  let looking = false;
  let lookAgain = false;
  /** Set once a drain is over its deadline: a prompt that was being taken meanwhile is ended at its start. */
  let overdue: AbortReason | undefined;
  let sinceMs = clock.nowMs();
  let idleWaiters: (() => void)[] = [];
  /** Woken by every change of what runs. */
  const changeWaiters: (() => void)[] = [];

  const wakeWaiters = (): void => {
    for (const resolve of changeWaiters.splice(0)) resolve();
  };

  const change = (next: Running | undefined): void => {
    running = next;
    sinceMs = clock.nowMs();
    wakeWaiters();
    ports.onChange();
  };

  const place = (turn: Turn, threadId: string = ROOT_THREAD) => ({ threadId, turnId: turn.turnId });

  const submit = async (current: Running): Promise<TurnEnd> => {
    try {
      return await runTurn(ports.harness, current.turn, current.controller.signal);
    } catch (error) {
      log.error('the harness adapter broke', { turnId: current.turn.turnId, err: error });
      return { kind: 'failed', code: 'unknown', message: 'the harness adapter failed' };
    }
  };

  /** The model of a turn. Another agent than the session's may bring its own. */
  const modelOf = (turn: Turn): string | null => {
    if (turn.model !== null) return turn.model;
    return turn.agent === null || turn.agent === ports.defaults.agent ? ports.defaults.model : null;
  };

  const announceStart = (turn: Turn): void => {
    const data = {
      promptId: turn.promptId,
      messageId: turn.messageId,
      agent: turn.agent ?? ports.defaults.agent,
      model: turn.model ?? ports.defaults.model,
      harness: ports.harnessId,
    };
    ports.emit({ type: 'turn.started', data }, place(turn));
    ports.emit({ type: 'session.status', data: { status: 'busy' } }, place(turn));
  };

  const announceEnd = async (current: Running, end: TurnEnd, before: string | null): Promise<void> => {
    const { turn, record } = current;
    const verdict = verdictOf(end, current.reason, modelOf(turn));
    ports.closeRequests();
    for (const event of closeOpenCalls(record, verdict.code === 'harness_died')) {
      ports.emit(event, place(turn, event.threadId));
    }
    const commit = await workspace.head();
    const commits = before === null || commit === before ? [] : await workspace.commitsSince(before);
    for (const each of commits) {
      ports.emit({ type: 'workspace.committed', data: { branch: ports.branch, ...each } }, place(turn));
    }
    if (verdict.outcome === 'Failed' && verdict.code !== null) {
      ports.emit({ type: 'session.error', data: { code: verdict.code, message: verdict.message ?? '' } }, place(turn));
    }
    ports.emit({ type: 'session.status', data: { status: 'idle' } }, place(turn));
    ports.emit({ type: 'session.idle', data: {} }, place(turn));
    const summary = record.answer === null ? null : headOfBytes(ports.redact(record.answer), MAX_SUMMARY_BYTES);
    ports.emit({ type: 'turn.ended', data: { promptId: turn.promptId, ...verdict, summary, commit } }, place(turn));
    ends.delete(turn.messageId);
    ends.set(turn.messageId, { outcome: verdict.outcome, stored: false });
    for (const oldest of ends.keys()) {
      if (ends.size <= REMEMBERED_TURNS) break;
      ends.delete(oldest);
    }
    log.info('turn ended', { turnId: turn.turnId, outcome: verdict.outcome, code: verdict.code });
  };

  const run = async (turn: Turn): Promise<void> => {
    const current: Running = { turn, controller: new AbortController(), reason: undefined, record: EMPTY_RECORD };
    ranByItself.add(turn.promptId);
    change(current);
    log.info('turn started', { turnId: turn.turnId });
    const before = await workspace.head();
    announceStart(turn);
    if (overdue !== undefined) abort(overdue);
    const end = await submit(current);
    await announceEnd(current, end, before);
    ended.push(turn.turnId);
    if (ended.length > REMEMBERED_TURNS) ended.shift();
    await workspace.push(turn.turnId);
    change(undefined);
  };

  const isReady = (): boolean => ports.harness.health().state === 'ok';

  const take = async (): Promise<Turn | null> => {
    for (let failures = 1; !closed.signal.aborted; failures += 1) {
      try {
        if (!(await ports.flush(FLUSH_LIMIT_MS))) throw new Error('events of the last turn are not stored yet');
        for (const [messageId, end] of ends) ends.set(messageId, { ...end, stored: true });
        const turn = await ports.takeNextTurn();
        if (turn === null || !ended.includes(turn.turnId)) return turn;
        log.warn('an ended turn was given again', { turnId: turn.turnId });
      } catch (error) {
        if (closed.signal.aborted) return null;
        log.warn('no prompt could be taken', { code: asBeeuniError(error)?.code, err: error });
      }
      await sleep(clock, backoffMs(TAKE_BACKOFF, failures, ports.random), closed.signal);
    }
    return null;
  };

  const look = async (): Promise<void> => {
    do {
      lookAgain = false;
      while (!closed.signal.aborted && isReady() && (await workspace.onBranch())) {
        const turn = await take();
        if (turn === null) break;
        await run(turn);
      }
    } while (lookAgain && !closed.signal.aborted);
  };

  const poke = (): void => {
    if (looking) {
      lookAgain = true;
      return;
    }
    if (closed.signal.aborted || !isReady()) return;
    looking = true;
    look()
      .catch((error: unknown) => log.error('taking turns broke', { err: error }))
      .finally(() => {
        looking = false;
        wakeWaiters();
        for (const resolve of idleWaiters.splice(0)) resolve();
        if (lookAgain) poke();
      });
  };

  const abort = (reason: AbortReason, turnId?: string): boolean => {
    if (running === undefined || (turnId !== undefined && running.turn.turnId !== turnId)) return false;
    if (ended.at(-1) === running.turn.turnId) return false;
    running.reason ??= reason;
    running.controller.abort();
    return true;
  };

  /** Waits for a change of what runs, unless a turn without its end runs; false when there is nothing to wait for. */
  const settles = async (late: Promise<void>, isLate: () => boolean): Promise<boolean> => {
    const hasEnd = running === undefined || ended.at(-1) === running.turn.turnId;
    if (!hasEnd || isLate()) return false;
    await Promise.race([new Promise<void>((wake) => changeWaiters.push(wake)), late]);
    return true;
  };

  const joinNow = async (
    prompt: SteeredPrompt,
    steer: (prompt: SteeredPrompt) => Promise<boolean>,
  ): Promise<string | undefined> => {
    const current = running;
    if (current === undefined || current.controller.signal.aborted) return undefined;
    // Calls that come late: the turn that was meant has ended, or the prompt runs, or ran, by itself meanwhile.
    if (prompt.turnId !== undefined && prompt.turnId !== current.turn.turnId) return undefined;
    if (ranByItself.has(prompt.promptId)) return undefined;
    if (!(await steer(prompt))) return undefined;
    const { promptId, messageId } = prompt;
    ports.emit({ type: 'prompt.steered', data: { promptId, messageId } }, place(current.turn));
    return current.turn.turnId;
  };

  return {
    poke,
    abort,
    whileIdle: async (work) => {
      let isLate = false;
      const { promise: late, resolve } = Promise.withResolvers<void>();
      const cancel = clock.startTimer(SETTLE_LIMIT_MS, () => {
        isLate = true;
        resolve();
      });
      while (looking) {
        if (await settles(late, () => isLate)) continue;
        cancel();
        return undefined;
      }
      cancel();
      looking = true;
      try {
        return { value: await work() };
      } finally {
        looking = false;
        wakeWaiters();
        for (const resolve of idleWaiters.splice(0)) resolve();
        if (lookAgain) poke();
      }
    },
    join: async (prompt, steer) => {
      const known = joined.get(prompt.promptId);
      if (known !== undefined) return known;
      const joining = joinNow(prompt, steer);
      joined.set(prompt.promptId, joining);
      const forget = (): void => void joined.delete(prompt.promptId);
      try {
        const turnId = await joining;
        if (turnId === undefined) forget();
        return turnId;
      } catch (error) {
        forget();
        throw error;
      }
    },
    activity: () => ({ turnId: running?.turn.turnId ?? null, sinceMs }),
    standing: (messageId = running?.turn.messageId ?? [...ends.keys()].at(-1)) => {
      const runs = running !== undefined && running.turn.messageId === messageId;
      const end = messageId === undefined ? undefined : ends.get(messageId);
      const isKnown = messageId === undefined || runs || end !== undefined;
      return {
        in_flight: isKnown ? runs : null,
        end: runs ? null : (end?.outcome ?? null),
        orphaned_prompt: !runs && end?.stored === false ? (messageId ?? null) : null,
      };
    },
    fromHarness: (event) => {
      if (running !== undefined) running.record = recordEvent(running.record, event);
      ports.emit(event, { threadId: event.threadId, turnId: running?.turn.turnId ?? null });
    },
    drain: async (deadlineMs, reason) => {
      closed.abort();
      if (!looking) return;
      const idle = new Promise<void>((resolve) => {
        idleWaiters.push(resolve);
      });
      const expire = (): void => {
        overdue = reason;
        abort(reason);
      };
      if (deadlineMs <= 0) expire();
      const cancel = clock.startTimer(deadlineMs, expire);
      await idle;
      cancel();
    },
  };
};
