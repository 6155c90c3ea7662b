// The thread's end of the protocol: calls to the host with an answer each, events in batches of one tick.
// Must not know Pi or what a call means.
import { Buffer } from 'node:buffer';
import type { MessagePort } from 'node:worker_threads';
import type { HarnessEvent } from '../../contract/events.ts';
import type { CallName, Calls, FromWorker, ToWorker } from '../protocol.ts';

/** The link to the host. */
export type Link = Readonly<{
  send: (message: FromWorker) => void;
  emit: (events: readonly HarnessEvent[]) => void;
  log: (level: 'info' | 'warn' | 'error', message: string) => void;
  /** Calls the host; `signal` tells it that nobody waits any more, the answer still comes. */
  call: <N extends CallName>(
    name: N,
    request: Calls[N]['request'],
    signal: AbortSignal | undefined,
    onOutput?: (data: Buffer) => void,
  ) => Promise<Calls[N]['answer']>;
  /** Gives a message of the host to whoever waits for it; false when it is none of ours. */
  receive: (message: ToWorker) => boolean;
}>;

type Waiting = Readonly<{ resolve: (answer: never) => void; onOutput: ((data: Buffer) => void) | undefined }>;

/** A link over a port. */
export const createLink = (port: MessagePort): Link => {
  const waiting = new Map<number, Waiting>();
  let lastId = 0;
  let batch: HarnessEvent[] = [];

  const send = (message: FromWorker): void => port.postMessage(message);
  const flush = (): void => {
    if (batch.length === 0) return;
    const events = batch;
    batch = [];
    send({ kind: 'events', events });
  };

  return {
    send: (message) => {
      // What is said about events comes after them.
      flush();
      send(message);
    },
    emit: (events) => {
      if (events.length === 0) return;
      if (batch.length === 0) setImmediate(flush);
      batch.push(...events);
      // What runs next may be the last thing that this thread does, so only pieces of text wait for more of them.
      if (events.some(({ type }) => type !== 'message.part.delta')) flush();
    },
    log: (level, message) => send({ kind: 'log', level, message: message.slice(0, 2_000) }),
    call: (name, request, signal, onOutput) => {
      flush();
      lastId += 1;
      const id = lastId;
      const cancel = (): void => send({ kind: 'cancel', id });
      const { promise, resolve } = Promise.withResolvers<never>();
      waiting.set(id, { resolve, onOutput });
      send({ kind: 'call', id, name, request } as FromWorker);
      if (signal?.aborted === true) cancel();
      else signal?.addEventListener('abort', cancel, { once: true });
      return promise.finally(() => signal?.removeEventListener('abort', cancel));
    },
    receive: (message) => {
      if (message.kind === 'answer') {
        waiting.get(message.id)?.resolve(message.answer as never);
        waiting.delete(message.id);
        return true;
      }
      if (message.kind === 'output') {
        waiting.get(message.id)?.onOutput?.(Buffer.from(message.data));
        send({ kind: 'taken', id: message.id, bytes: message.data.byteLength });
        return true;
      }
      if (message.kind === 'ping') {
        send({ kind: 'pong', n: message.n });
        return true;
      }
      return false;
    },
  };
};
