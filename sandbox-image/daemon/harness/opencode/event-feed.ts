// The event stream of an OpenCode server, read as long as the server lives. OpenCode 1.18.33 sends the head of the stream, and a
// first event, before it subscribes, and what happens in between is lost (seen: the events of a first prompt). So a stream
// counts once it has told of a change that was made through it: of a session that nobody else knows.
// Must not know what the events mean. Source: harness-runtimes §2.4.
import { type Clock, sleep } from '#base/clock.ts';
import type { Logger } from '#base/log.ts';
import type { OpencodeClient } from './client.ts';
import type { Frame } from './map-events.ts';

/** Ports of a feed. `lost` ends it. */
export type EventFeedPorts = Readonly<{
  client: Pick<OpencodeClient, 'events' | 'createSession' | 'renameSession' | 'deleteSession'>;
  apply: (frame: Frame) => void;
  /** What happened while nobody listened; called once a later stream is heard. */
  reread: () => Promise<void>;
  lost: AbortSignal;
  clock: Clock;
  log: Logger;
}>;

const RECONNECT_PAUSE_MS = 200;
/** Time between two changes that a stream should tell of. Units: milliseconds. */
const PROOF_INTERVAL_MS = 50;
const PROOF_TITLE = 'event stream';

/** Starts reading; resolves when the first stream is heard, and never when `lost` fires before. */
export const startEventFeed = (ports: EventFeedPorts): Promise<void> => {
  const { client, lost, clock, log } = ports;
  const first = Promise.withResolvers<void>();
  let isFirst = true;

  const changeUntilHeard = async (proof: string, heard: AbortSignal): Promise<void> => {
    for (let change = 1; !heard.aborted; change += 1) {
      await client.renameSession(proof, `${PROOF_TITLE} ${change}`);
      await sleep(clock, PROOF_INTERVAL_MS, heard);
    }
  };

  const forget = async (proof: string): Promise<void> => {
    try {
      await client.deleteSession(proof);
    } catch (error) {
      if (!lost.aborted) log.warn('the session that proved the event stream is left behind', { err: error });
    }
  };

  const onHeard = async (): Promise<void> => {
    if (isFirst) first.resolve();
    else await ports.reread();
    isFirst = false;
  };

  const readOne = async (): Promise<void> => {
    const over = new AbortController();
    const heard = new AbortController();
    let proof: string | undefined;
    try {
      const frames = await client.events(AbortSignal.any([lost, over.signal]));
      proof = await client.createSession(PROOF_TITLE);
      // A server that refuses the change is not read on: the stream would never count.
      const changes = changeUntilHeard(proof, AbortSignal.any([lost, heard.signal])).catch(() => over.abort());
      for await (const frame of frames) {
        if (proof !== undefined && JSON.stringify(frame.properties).includes(proof)) {
          heard.abort();
          void changes.then(forget.bind(undefined, proof));
          proof = undefined;
          await onHeard();
        }
        ports.apply(frame);
      }
    } finally {
      heard.abort();
      over.abort();
      if (proof !== undefined) await forget(proof);
    }
  };

  const read = async (): Promise<void> => {
    while (!lost.aborted) {
      try {
        await readOne();
      } catch (error) {
        if (lost.aborted) return;
        log.warn('the event stream of the harness broke', { err: error });
      }
      await sleep(clock, RECONNECT_PAUSE_MS, lost);
    }
  };
  void read();
  return first.promise;
};
