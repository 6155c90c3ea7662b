// Open permission and question requests: announced, answered once by a person, and "no" at the deadline or when the turn
// ends. What a person allowed for the session is not asked again. Must not know harnesses or HTTP. Source: A119 to A123.
import type { Clock } from '#base/clock.ts';
import type { HumanAnswer, HumanRequest } from '#daemon/harness/contract/adapter.ts';
import type { TypedEvent } from '#schema/events/envelope.ts';
import { matchesPattern } from '#schema/rules/permission.ts';

/** How long a request waits for a person. Units: milliseconds. Source: 20-control-plane §9, docs/decisions/0035. */
export const REQUEST_DEADLINE_MS = { permission: 120_000, question: 3_600_000 } as const;

/** Permissions that hold for the session: name of the permission to patterns. */
export type Allowed = Readonly<Record<string, readonly string[]>>;

/** Ports of the broker. */
export type BrokerPorts = Readonly<{
  emit: (event: TypedEvent, threadId: string) => void;
  /** The number of open requests changed. */
  onChange: () => void;
  /** What earlier daemons of the session were allowed, and where more is kept. Never throw. */
  allowed: Readonly<{ read: () => Allowed; write: (allowed: Allowed) => void }>;
  clock: Clock;
  deadlineMs?: Readonly<{ permission: number; question: number }> | undefined;
}>;

/** What became of an answer. `ended`: the request has another answer or none is wanted any more. */
export type Answering = 'taken' | 'ended' | 'unknown';

/** The open requests of this daemon. */
export type Broker = Readonly<{
  /** Resolves with the answer; never rejects. The same id twice shares one answer. */
  ask: (request: HumanRequest, signal: AbortSignal) => Promise<HumanAnswer>;
  /** Gives a person's answer. The same answer twice counts once; an answer of the wrong kind is for an unknown request. */
  answer: (id: string, answer: HumanAnswer) => Answering;
  /** Closes all with "no". */
  closeAll: () => void;
  openCount: () => number;
}>;

/** Ended requests that are remembered, so that a repeated answer is known. */
const REMEMBERED = 256;
/** Patterns that one permission keeps. */
const MAX_PATTERNS = 200;

/** The "no" of a kind of request, with what a model may read. */
const refusal = (kind: HumanRequest['kind'], message: string | null): HumanAnswer =>
  kind === 'permission' ? { kind, reply: 'reject', message } : { kind, answers: null };

const textsOf = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((text): text is string => typeof text === 'string') : [];

type Open = Readonly<{
  request: HumanRequest;
  answer: Promise<HumanAnswer>;
  close: (answer: HumanAnswer, byPerson: boolean) => void;
}>;

/** A broker. */
export const createBroker = (ports: BrokerPorts): Broker => {
  const { clock, emit } = ports;
  const deadlineMs = ports.deadlineMs ?? REQUEST_DEADLINE_MS;
  const open = new Map<string, Open>();
  /** Ended requests, and whether a person ended them. */
  const ended = new Map<string, Readonly<{ answer: HumanAnswer; byPerson: boolean }>>();
  let allowed = ports.allowed.read();

  const announce = (request: HumanRequest): void => {
    const deadlineAt = new Date(clock.nowMs() + deadlineMs[request.kind]).toISOString();
    const data = { ...request.data, id: request.id, deadlineAt };
    emit({ type: request.kind === 'permission' ? 'permission.asked' : 'question.asked', data }, request.threadId);
  };

  const announceAnswer = ({ id, threadId }: HumanRequest, answer: HumanAnswer): void => {
    if (answer.kind === 'permission') emit({ type: 'permission.replied', data: { id, reply: answer.reply } }, threadId);
    else if (answer.answers === null) emit({ type: 'question.rejected', data: { id } }, threadId);
    else emit({ type: 'question.replied', data: { id, answers: answer.answers } }, threadId);
  };

  const isAllowed = ({ kind, data }: HumanRequest): boolean => {
    const patterns = textsOf(data['patterns']);
    const known = allowed[String(data['permission'])] ?? [];
    if (kind !== 'permission') return false;
    // A tool without a subject is allowed as a whole or not at all.
    if (patterns.length === 0) return known.includes('*');
    return patterns.every((subject) => known.some((pattern) => matchesPattern(pattern, subject)));
  };

  const allow = ({ data }: HumanRequest): void => {
    const permission = String(data['permission']);
    const suggested = textsOf(data['always']);
    const more = suggested.length === 0 ? textsOf(data['patterns']) : suggested;
    const patterns = [...new Set([...(allowed[permission] ?? []), ...more])].slice(-MAX_PATTERNS);
    allowed = { ...allowed, [permission]: patterns };
    ports.allowed.write(allowed);
  };

  const remember = (id: string, answer: HumanAnswer, byPerson: boolean): void => {
    ended.set(id, { answer, byPerson });
    for (const oldest of ended.keys()) {
      if (ended.size <= REMEMBERED) break;
      ended.delete(oldest);
    }
  };

  /** Harnesses are told "once": what holds for longer is decided here, where it never beats a rule of theirs. */
  const forHarness = (answer: HumanAnswer): HumanAnswer =>
    answer.kind === 'permission' && answer.reply === 'always' ? { ...answer, reply: 'once' } : answer;

  return {
    ask: (request, signal) => {
      const known = open.get(request.id);
      if (known !== undefined) return known.answer;
      const before = ended.get(request.id);
      if (before !== undefined) return Promise.resolve(forHarness(before.answer));
      if (isAllowed(request)) return Promise.resolve({ kind: 'permission', reply: 'once', message: null });
      const { promise, resolve } = Promise.withResolvers<HumanAnswer>();
      const close = (answer: HumanAnswer, byPerson: boolean): void => {
        if (!open.delete(request.id)) return;
        remember(request.id, answer, byPerson);
        cancel();
        signal.removeEventListener('abort', onAbort);
        announceAnswer(request, answer);
        resolve(forHarness(answer));
        ports.onChange();
      };
      const refuse = (message: string | null): void => close(refusal(request.kind, message), false);
      const onAbort = (): void => refuse(null);
      const cancel = clock.startTimer(deadlineMs[request.kind], () =>
        refuse('nobody answered in time; the call is denied'),
      );
      open.set(request.id, { request, answer: promise, close });
      announce(request);
      ports.onChange();
      if (signal.aborted) refuse(null);
      else signal.addEventListener('abort', onAbort, { once: true });
      return promise;
    },
    answer: (id, answer) => {
      const asked = open.get(id);
      if (asked === undefined) {
        const before = ended.get(id);
        if (before === undefined) return 'unknown';
        return before.byPerson && JSON.stringify(before.answer) === JSON.stringify(answer) ? 'taken' : 'ended';
      }
      if (asked.request.kind !== answer.kind) return 'unknown';
      if (answer.kind === 'permission' && answer.reply === 'always') allow(asked.request);
      asked.close(answer, true);
      return 'taken';
    },
    closeAll: () => {
      for (const { request, close } of open.values()) close(refusal(request.kind, null), false);
    },
    openCount: () => open.size,
  };
};
