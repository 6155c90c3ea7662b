import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock as clock } from '#base/clock.ts';
import { createLogger } from '#base/log.ts';
import { type EventFeedPorts, startEventFeed } from './event-feed.ts';
import type { Frame } from './map-events.ts';

const log = createLogger({ level: 'error', write: () => {} });

/** A server whose streams tell of no change before the `deafTo`-th. Each stream ends with the next call of `cut`. */
const makeServer = (deafTo: number) => {
  const said: string[] = [];
  let changes = 0;
  let tell: (frame: Frame | undefined) => void = () => {};
  const client: EventFeedPorts['client'] = {
    events: async (signal) => {
      said.push('stream');
      changes = 0;
      const waiting: (Frame | undefined)[] = [];
      let wake = (): void => {};
      tell = (frame) => {
        waiting.push(frame);
        wake();
      };
      signal.addEventListener('abort', () => tell(undefined), { once: true });
      return (async function* () {
        yield { type: 'server.connected', properties: {} };
        for (;;) {
          if (waiting.length === 0) await new Promise<void>((resolve) => (wake = resolve));
          const frame = waiting.shift();
          if (frame === undefined) return;
          yield frame;
        }
      })();
    },
    createSession: async () => {
      said.push('create');
      return `ses_proof${said.length}`;
    },
    renameSession: async (id) => {
      changes += 1;
      if (changes >= deafTo) tell({ type: 'session.updated', properties: { info: { id } } });
    },
    deleteSession: async () => void said.push('delete'),
  };
  return { client, said, changes: () => changes, tell: (frame: Frame) => tell(frame), cut: () => tell(undefined) };
};

const listen = (server: ReturnType<typeof makeServer>, lost: AbortSignal) => {
  const seen: string[] = [];
  const reread = Promise.withResolvers<void>();
  const heard = startEventFeed({
    client: server.client,
    apply: ({ type }) => void seen.push(type),
    reread: async () => {
      server.said.push('reread');
      reread.resolve();
    },
    lost,
    clock,
    log,
  });
  return { seen, heard, reread: reread.promise };
};

describe('the event stream of OpenCode', () => {
  it('counts once it tells of a change, however long the server takes to subscribe, and leaves no session behind', async () => {
    const server = makeServer(3);
    const lost = new AbortController();
    const feed = listen(server, lost.signal);
    await feed.heard;
    assert.equal(server.changes(), 3);
    server.tell({ type: 'message.updated', properties: {} });
    server.cut();
    await feed.reread;
    lost.abort();
    assert.deepEqual(server.said, ['stream', 'create', 'delete', 'stream', 'create', 'reread']);
    assert.deepEqual(feed.seen.slice(0, 3), ['server.connected', 'session.updated', 'message.updated']);
  });

  it('is opened again, and the broken one closed, where the server refuses the change', async () => {
    const server = makeServer(1);
    const lost = new AbortController();
    let isRefused = false;
    const { renameSession } = server.client;
    const client = {
      ...server.client,
      renameSession: async (id: string, title: string): Promise<void> => {
        if (isRefused) return renameSession(id, title);
        isRefused = true;
        throw new Error('not now');
      },
    };
    const feed = listen({ ...server, client }, lost.signal);
    await feed.heard;
    lost.abort();
    assert.deepEqual(server.said.slice(0, 5), ['stream', 'create', 'delete', 'stream', 'create']);
  });
});
