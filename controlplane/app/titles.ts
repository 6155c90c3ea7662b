// Gives each session one title, made from its first prompt by the model of the title role. Beside the prompt's own way:
// a prompt never waits for it. The table is the truth; a poke only saves time. Must not know SQL or sockets.
// Source: 40-settings B2 (title), B4.
import { backoffMs } from '#base/backoff.ts';
import { type Clock, sleep } from '#base/clock.ts';
import { errorChain } from '#base/errors.ts';
import type { Logger } from '#base/log.ts';
import type { RoleChoice } from '#schema/rules/resolve-role.ts';
import { TITLE_INSTRUCTION, titleOf, titleQuestion } from './title-text.ts';

/** The table of titles. Errors of all: UnavailableError `database_unavailable`. */
export type TitleStore = Readonly<{
  /** Titles that are due, each given to one caller until its lease ends. `attempts` counts from 1. */
  takeDue: (
    now: string,
    leaseUntil: string,
    limit: number,
  ) => Promise<readonly Readonly<{ sessionUid: string; attempts: number }>[]>;
  /** The text of the first prompt that has some. */
  firstText: (sessionUid: string) => Promise<string | undefined>;
  /** False when the session has a title already, or is gone. */
  save: (sessionUid: string, title: string, model: string) => Promise<boolean>;
  giveUp: (sessionUid: string, reason: string) => Promise<void>;
  postpone: (sessionUid: string, dueAt: string, reason: string) => Promise<void>;
}>;

/** An answer of a model with what it cost. */
export type TitleAnswer = Readonly<{ text: string }>;

/** What titles are made with. */
export type TitlesPorts = Readonly<{
  store: TitleStore;
  /** The model of the title role for a session; undefined when the session is not known yet. */
  chooseModel: (sessionUid: string) => Promise<RoleChoice | undefined>;
  /** Asks it; metered by whoever fills this. */
  ask: (
    sessionUid: string,
    question: Readonly<{ model: string; system: string; user: string; maxOutputTokens: number }>,
    signal: AbortSignal,
  ) => Promise<TitleAnswer>;
  clock: Clock;
  random: () => number;
  log: Logger;
}>;

/** The maker of titles. */
export type Titles = Readonly<{
  /** Looks for due titles soon; calls while it looks come to one more look. */
  poke: () => void;
  /** One look at everything that is due now. */
  lookAtDue: () => Promise<void>;
  /** Ends calls in flight; what they were for is due again when its lease ends. */
  stop: () => Promise<void>;
}>;

/** How long a title belongs to who took it; longer than any call. Units: milliseconds. */
const LEASE_MS = 90_000;
const CALL_LIMIT_MS = 60_000;
/** Least time between two looks that somebody poked for. Units: milliseconds. */
const PAUSE_MS = 500;
const MAX_ATTEMPTS = 4;
const AT_ONCE = 4;
const RETRY = { baseMs: 10_000, maxMs: 300_000 };
/** Room for a title, and for what a model thinks before it. */
const MAX_OUTPUT_TOKENS = 1_024;
const MAX_REASON = 512;

/** Makes the maker; it does nothing before the first call. */
export const makeTitles = (ports: TitlesPorts): Titles => {
  const { store, clock, log } = ports;
  const stopping = new AbortController();
  let looking: Promise<void> | undefined;
  let lookAgain = false;

  const at = (fromNowMs: number): string => new Date(clock.nowMs() + fromNowMs).toISOString();

  const failed = async (sessionUid: string, attempts: number, reason: string): Promise<void> => {
    const words = reason.slice(0, MAX_REASON);
    if (attempts >= MAX_ATTEMPTS) await store.giveUp(sessionUid, words);
    else await store.postpone(sessionUid, at(backoffMs(RETRY, attempts, ports.random)), words);
  };

  const make = async (sessionUid: string, attempts: number): Promise<void> => {
    const text = await store.firstText(sessionUid);
    if (text === undefined) return store.giveUp(sessionUid, 'no prompt has text yet');
    const choice = await ports.chooseModel(sessionUid);
    if (choice === undefined) return failed(sessionUid, attempts, 'the session is not known yet');
    if (choice.model === null) return store.giveUp(sessionUid, choice.reason);
    const controller = new AbortController();
    const cancel = clock.startTimer(CALL_LIMIT_MS, () => controller.abort());
    const signal = AbortSignal.any([controller.signal, stopping.signal]);
    try {
      const question = { model: choice.model, system: TITLE_INSTRUCTION, user: titleQuestion(text) };
      const answer = await ports.ask(sessionUid, { ...question, maxOutputTokens: MAX_OUTPUT_TOKENS }, signal);
      const title = titleOf(answer.text);
      if (title === undefined) return await failed(sessionUid, attempts, 'the model gave no title');
      await store.save(sessionUid, title, choice.model);
    } catch (error) {
      if (stopping.signal.aborted) {
        // Whoever comes next need not wait for the lease; where this is lost, the lease ends by itself.
        await store.postpone(sessionUid, at(0), 'the control plane was stopped').catch(() => undefined);
        return;
      }
      log.info('a title could not be made', { sessionUid, chain: errorChain(error) });
      await failed(sessionUid, attempts, error instanceof Error ? error.message : 'the model call failed');
    } finally {
      cancel();
    }
  };

  const lookAtDue = async (): Promise<void> => {
    for (;;) {
      if (stopping.signal.aborted) return;
      const due = await store.takeDue(at(0), at(LEASE_MS), AT_ONCE);
      await Promise.all(due.map(({ sessionUid, attempts }) => make(sessionUid, attempts)));
      if (due.length < AT_ONCE) return;
    }
  };

  const look = async (): Promise<void> => {
    do {
      lookAgain = false;
      await lookAtDue().catch((error: unknown) => log.warn('titles could not be looked at', { err: error }));
      // Many sessions change at once; a look now and then serves them all.
      await sleep(clock, PAUSE_MS, stopping.signal);
    } while (lookAgain && !stopping.signal.aborted);
  };

  return {
    lookAtDue,
    poke: () => {
      lookAgain = true;
      if (stopping.signal.aborted || looking !== undefined) return;
      looking = look().finally(() => {
        looking = undefined;
      });
    },
    stop: async () => {
      stopping.abort();
      await looking;
    },
  };
};
