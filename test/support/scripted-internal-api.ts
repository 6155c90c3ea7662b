// The control plane's internal API over real HTTP, with answers that a test sets: routes and shapes are those of schema/wire.
// It keeps facts and streams them as the control plane does; it has no database and decides nothing.

import { ConflictError, UnavailableError } from '#base/errors.ts';
import { listen } from '#base/http/listen.ts';
import { answer, mount, mountNdjson } from '#base/http/mount.ts';
import type { NdjsonWriter } from '#base/http/ndjson.ts';
import { createHttpServer } from '#base/http/server.ts';
import type { Logger } from '#base/log.ts';
import {
  closeProjectRoute,
  closeSessionRoute,
  type FactsFrame,
  factsRoute,
  type ProjectFact,
  podGoneRoute,
  REGISTRY_UID,
  type RegistryFact,
  type SessionFact,
  type SyncRequest,
  secretChangedRoute,
  stopSessionRoute,
  syncProjectRoute,
} from '#schema/wire/sync.ts';
import { aRegistryFact } from './session-fixtures.ts';

type AnyFact = ProjectFact | SessionFact | RegistryFact;

/** One call that was answered. */
export type InternalCall = Readonly<{ operation: string; uid: string; body: unknown }>;

/** A running server. */
export type ScriptedInternalApi = Readonly<{
  url: string;
  calls: readonly InternalCall[];
  callsOf: (operation: string) => readonly InternalCall[];
  /** Makes a fact true and tells every open stream. */
  raise: (fact: AnyFact) => void;
  fact: (uid: string) => AnyFact | undefined;
  /** What the sync call answers and becomes the Project's fact. */
  onSync: (make: (request: SyncRequest) => ProjectFact) => void;
  /** What a stop answers from now on: `not_idle` is a refusal. */
  onStop: (state: 'stopped' | 'draining' | 'not_idle') => void;
  /** Refuses every call and breaks every stream, until `comeBack`. */
  goDown: () => void;
  comeBack: () => void;
  stop: () => Promise<void>;
}>;

const HEARTBEAT_MS = 1_000;

/** Starts the server on a free port of loopback. */
export const startScriptedInternalApi = async (log: Logger): Promise<ScriptedInternalApi> => {
  const server = createHttpServer({ listener: 'internal', log });
  const facts = new Map<string, ProjectFact | SessionFact | RegistryFact>([[REGISTRY_UID, aRegistryFact()]]);
  const calls: InternalCall[] = [];
  const streams = new Map<NdjsonWriter<FactsFrame>, () => void>();
  let version = 0;
  let down = false;
  let stopState: 'stopped' | 'draining' | 'not_idle' = 'stopped';
  let sync: (request: SyncRequest) => ProjectFact = () => {
    throw new UnavailableError('control_plane_unavailable', 'no answer of the sync call was scripted');
  };

  const record = (operation: string, uid: string, body: unknown): void => {
    if (down) throw new UnavailableError('database_unavailable', 'the control plane is down');
    calls.push({ operation, uid, body });
  };
  const cursor = (): string => String(version);
  const tell = (frame: FactsFrame): void => {
    for (const writer of streams.keys()) writer.send(frame);
  };
  const raise = (fact: AnyFact): void => {
    version += 1;
    facts.set(fact.uid, fact);
    tell({ type: 'fact', cursor: cursor(), fact });
  };
  const gone = (uid: string): void => {
    version += 1;
    facts.delete(uid);
    tell({ type: 'fact', cursor: cursor(), fact: { kind: 'gone', uid } });
  };

  const guard = { authenticate: async () => 'operator', authorize: async () => {} };
  mount(
    server,
    syncProjectRoute,
    async ({ params, body }) => {
      record('syncProject', body.uid, { ...body, ...params });
      const fact = sync(body);
      raise(fact);
      return answer(200, fact);
    },
    guard,
  );
  mountNdjson(
    server,
    factsRoute,
    async (_request, writer) => {
      if (down) throw new UnavailableError('database_unavailable', 'the control plane is down');
      // A cursor of this process is as good as a snapshot: everything is sent again.
      writer.send({ type: 'reset' });
      for (const fact of facts.values()) writer.send({ type: 'fact', cursor: cursor(), fact });
      writer.send({ type: 'snapshot-end', cursor: cursor() });
      const ended = Promise.withResolvers<void>();
      streams.set(writer, ended.resolve);
      writer.signal.addEventListener('abort', () => ended.resolve(), { once: true });
      const beat = setInterval(() => writer.send({ type: 'heartbeat', at: new Date().toISOString() }), HEARTBEAT_MS);
      await ended.promise;
      clearInterval(beat);
      streams.delete(writer);
    },
    guard,
  );
  mount(
    server,
    stopSessionRoute,
    async ({ params, body }) => {
      record('stopSession', params.uid, body);
      if (stopState === 'not_idle') throw new ConflictError('not_idle', 'the session works');
      const fact = facts.get(params.uid);
      if (fact?.kind === 'session') raise({ ...fact, fencedPodUid: body.podUid });
      return stopState === 'stopped' ? answer(200, { state: 'stopped' }) : answer(202, { state: 'draining' });
    },
    guard,
  );
  mount(
    server,
    closeSessionRoute,
    async ({ params, body }) => {
      record('closeSession', params.uid, body);
      gone(params.uid);
      return answer(204, null);
    },
    guard,
  );
  mount(
    server,
    podGoneRoute,
    async ({ params, body }) => {
      record('podGone', params.uid, body);
      const fact = facts.get(params.uid);
      if (fact?.kind === 'session' && fact.podUid === body.podUid) {
        raise({ ...fact, podUid: null, health: null, activity: null });
      }
      return answer(204, null);
    },
    guard,
  );
  mount(
    server,
    closeProjectRoute,
    async ({ params, body }) => {
      record('closeProject', params.uid, body);
      gone(params.uid);
      return answer(204, null);
    },
    guard,
  );
  mount(
    server,
    secretChangedRoute,
    async ({ params, body }) => {
      record('secretChanged', params.uid, body);
      return answer(202, {});
    },
    guard,
  );

  const listening = await listen(server, { host: '127.0.0.1', port: 0 });
  const breakStreams = (): void => {
    for (const end of streams.values()) end();
  };
  return {
    url: listening.url,
    calls,
    callsOf: (operation) => calls.filter((call) => call.operation === operation),
    raise,
    fact: (uid) => facts.get(uid),
    onSync: (make) => {
      sync = make;
    },
    onStop: (state) => {
      stopState = state;
    },
    goDown: () => {
      down = true;
      breakStreams();
    },
    comeBack: () => {
      down = false;
    },
    stop: async () => {
      breakStreams();
      await listening.stop(100);
    },
  };
};
