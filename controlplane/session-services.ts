// Everything about stored sessions, put together over one database: claims, prompts, turns, events, health, facts, ends.
// Called by main.ts and by tests; it opens no port and starts nothing before `start`. Must not know how callers are
// recognised or objects cached.
import type { Clock } from '#base/clock.ts';
import type { Logger } from '#base/log.ts';
import type { Session } from '#schema/resources/session.ts';
import { makeClaim } from './app/claims.ts';
import { FACTS_KEY, makeStreamFacts } from './app/facts.ts';
import { type Health, makeHealth } from './app/health.ts';
import type {
  ClaimConfig,
  FindProject,
  FindSessionByCredential,
  FindSessionByPodUid,
  FindSessionByUid,
  OnSessionChange,
  RandomBytes,
  Seal,
  Unseal,
} from './app/ports.ts';
import { makePrompts, type Prompts } from './app/prompts.ts';
import { makeSeenSessions } from './app/seen-sessions.ts';
import { makeLifecycle } from './app/session-lifecycle.ts';
import type { SessionKey } from './app/session-records.ts';
import { decideTurnEnd } from './app/turn-end.ts';
import { makeTakeNextTurn } from './app/turns.ts';
import { makeUpkeep } from './app/upkeep.ts';
import { makeWaker } from './app/waker.ts';
import {
  daemonCredentialContext,
  makeCredentials,
  newDaemonCredential,
  newSessionCredential,
} from './daemons/credentials.ts';
import { type Deliver, makeDeliver } from './daemons/deliver.ts';
import { makeAppendEvents } from './events/append.ts';
import { type FanOut, makeFanOut, parseGrown } from './events/fan-out.ts';
import { type InternalSessionHandlers, makeInternalSessionHandlers } from './http/internal-sessions.ts';
import { makeSandboxHandlers, type SandboxSessionHandlers } from './http/sandbox.ts';
import type { SessionEventsPorts } from './http/session-events.ts';
import { makeStoreBatch } from './store/append-batch.ts';
import { makeStoreClaim } from './store/claim-session.ts';
import { isDataError } from './store/errors.ts';
import { EVENTS_CHANNEL, readEvents, readLogRange } from './store/events.ts';
import { FACTS_CHANNEL, forgetGoneFacts, readFactStream, readFacts } from './store/facts.ts';
import { makeHealthStore } from './store/health-store.ts';
import { makeListener } from './store/listen.ts';
import { makePromptInbox } from './store/prompt-inbox.ts';
import { getPrompt, listPrompts } from './store/prompts.ts';
import { cutLongLogs } from './store/retention.ts';
import { makeSessionEnds } from './store/session-ends.ts';
import { findCredential, findDaemon, listRunningOfProject, listSessionUids } from './store/sessions.ts';
import { type Database, firstRow } from './store/statement.ts';

/** What the services need. */
export type SessionServicesPorts = Readonly<{
  database: Database;
  /** For the one LISTEN connection. */
  databaseUrl: string;
  findSessionByPodUid: FindSessionByPodUid;
  findSessionByUid: FindSessionByUid;
  findProject: FindProject;
  listSessions: () => readonly Session[];
  onSessionChange: OnSessionChange;
  /** Resolves true once the cache of Sessions is complete. */
  whenSynced: () => Promise<boolean>;
  claimConfig: ClaimConfig;
  seal: Seal;
  unseal: Unseal;
  randomBytes: RandomBytes;
  random: () => number;
  clock: Clock;
  log: Logger;
  gitPath: (session: Session) => string;
  gatewayPath: string;
  /** Port of daemons: 8000. */
  daemonPort: number;
  /** Events that a log keeps. */
  keepEvents: number;
  fetch?: typeof fetch | undefined;
}>;

/** The services. */
export type SessionServices = Readonly<{
  findSessionByCredential: FindSessionByCredential;
  prompts: Prompts;
  readHealth: Health['read'];
  sandbox: SandboxSessionHandlers;
  internal: InternalSessionHandlers;
  /** For the handler of the event stream. */
  events: Pick<SessionEventsPorts, 'admitSession' | 'stream'>;
  deliver: Deliver;
  /** Uids of the claimed sessions of a project. */
  runningSessionsOf: (projectUid: string) => Promise<readonly string[]>;
  /** Calls back with the uid of every object whose fact changed, on any replica. */
  onFactChange: (listener: (uid: string) => void) => () => void;
  /** Open tails and their readers. */
  streamUsage: FanOut['usage'];
  start: () => void;
  stop: () => Promise<void>;
}>;

/** Puts the services together. */
export const makeSessionServices = (ports: SessionServicesPorts): SessionServices => {
  const { database, clock, log, randomBytes } = ports;
  const query = database.query;
  const waker = makeWaker(clock);
  const warn = (message: string) => (error: unknown) => log.warn(message, { err: error });
  const keyOf = ({ metadata: { uid, namespace, name }, spec }: Session): SessionKey => ({
    uid,
    namespace,
    name,
    projectUid: ports.findProject(namespace, spec.projectRef.name)?.metadata.uid ?? '',
  });

  const credentials = makeCredentials({ findCredential: (prefix) => firstRow(query, findCredential(prefix)), clock });
  const deliver = makeDeliver({
    findSessionByUid: ports.findSessionByUid,
    findDaemon: (uid) => firstRow(query, findDaemon(uid)),
    unseal: ports.unseal,
    daemonPort: ports.daemonPort,
    fetch: ports.fetch,
    onUnreachable: (session, call, error) => log.debug('a daemon did not answer', { session, call, err: error }),
  });
  const inbox = makePromptInbox(database);
  const prompts = makePrompts({
    ...inbox,
    keyOf,
    findPrompt: (uid, id) => firstRow(query, getPrompt(uid, id)),
    listBelow: (uid, below, limit) => query(listPrompts(uid, below, limit)),
    nudge: (uid) => void deliver.nudge(uid, 'prompt'),
    abort: (uid, turnId) => void deliver.abort(uid, turnId),
    newId: () => randomBytes(10).toString('hex'),
  });
  const health = makeHealth({ ...makeHealthStore(database), clock, onError: warn('a round of health reports failed') });
  const fanOut = makeFanOut({
    readEvents: (uid, after, limit) => query(readEvents(uid, after, limit)),
    readRange: async (uid) => {
      const row = await firstRow(query, readLogRange(uid));
      return row && { firstSeq: row.first_seq, headSeq: row.head_seq };
    },
    clock,
    onError: warn('an event log could not be read'),
    onOpen: (how) => log.debug('an event stream began', { how }),
  });
  const ends = makeSessionEnds(database, decideTurnEnd);
  const lifecycle = makeLifecycle({
    ...ends,
    listStored: async (after, limit) => (await query(listSessionUids(after, limit))).map((row) => row.uid),
    exists: (uid) => ports.findSessionByUid(uid) !== undefined,
    drain: deliver.drain,
    onRevoked: credentials.forget,
    clock,
  });
  const seen = makeSeenSessions({
    findSessionByUid: ports.findSessionByUid,
    listSessions: ports.listSessions,
    admitSeen: prompts.admitSeen,
    objectGone: lifecycle.objectGone,
    sweep: lifecycle.sweep,
    clock,
    onError: warn('sessions of the cache could not be stored or removed'),
  });
  const upkeep = makeUpkeep({
    forgetGone: (seconds) => query(forgetGoneFacts(seconds)),
    cutLogs: (keep) => cutLongLogs(database, keep),
    keepEvents: ports.keepEvents,
    clock,
    onError: warn('a round of upkeep failed'),
  });

  const factListeners = new Set<(uid: string) => void>();
  const onFacts = (payload: string): void => {
    for (const uid of payload.split(' ')) {
      credentials.forget(uid);
      fanOut.changed(uid);
      waker.wake(uid);
      for (const listener of factListeners) listener(uid);
    }
    waker.wake(FACTS_KEY);
  };
  const listener = makeListener({
    databaseUrl: ports.databaseUrl,
    channels: [EVENTS_CHANNEL, FACTS_CHANNEL],
    onMessage: (channel, payload) => {
      if (channel === FACTS_CHANNEL) onFacts(payload);
      else for (const { sessionUid, headSeq } of parseGrown(payload)) fanOut.grew(sessionUid, headSeq);
    },
    onGap: () => {
      credentials.forgetAll();
      fanOut.gap();
      waker.wakeAll();
    },
    onError: warn('the connection for notifications broke'),
    clock,
    random: ports.random,
  });

  const onSession = (uid: string): void => {
    seen.changed(uid);
    const podUid = ports.findSessionByUid(uid)?.status?.pod?.uid;
    if (podUid !== undefined) waker.wake(podUid);
  };
  const admitSession = async (session: Session): Promise<void> => {
    const known = await firstRow(query, readLogRange(session.metadata.uid));
    if (known === undefined) await prompts.admitSeen([session]);
  };
  let unsubscribe = () => {};

  return {
    findSessionByCredential: credentials.find,
    prompts,
    readHealth: health.read,
    sandbox: makeSandboxHandlers({
      claim: makeClaim({
        findSessionByPodUid: ports.findSessionByPodUid,
        findProject: ports.findProject,
        claimConfig: ports.claimConfig,
        keyOf,
        storeClaim: makeStoreClaim(database, decideTurnEnd),
        newCredential: () => newSessionCredential(randomBytes),
        newDaemonCredential: () => newDaemonCredential(randomBytes),
        sealDaemonCredential: (text, uid) => ports.seal(text, daemonCredentialContext(uid)),
        waker,
        clock,
        gitPath: ports.gitPath,
        gatewayPath: ports.gatewayPath,
        onClaimed: credentials.forget,
      }),
      reportHealth: health.report,
      takeNextTurn: makeTakeNextTurn({ take: inbox.take, findSessionByUid: ports.findSessionByUid }),
      appendEvents: makeAppendEvents({ storeBatch: makeStoreBatch(database, decideTurnEnd), isDataError }),
      onBye: (session, reason) => log.info('a daemon said good-bye', { session, reason }),
    }),
    internal: makeInternalSessionHandlers({
      streamFacts: makeStreamFacts({
        readStream: async () => {
          const row = await firstRow(query, readFactStream());
          if (row === undefined) throw new Error('the table fact_stream is empty');
          return row;
        },
        readFacts: (after, limit) => query(readFacts(after, limit)),
        waker,
        clock,
      }),
      lifecycle,
    }),
    events: { admitSession, stream: fanOut.stream },
    deliver,
    runningSessionsOf: async (projectUid) => (await query(listRunningOfProject(projectUid))).map((row) => row.uid),
    onFactChange: (added) => {
      factListeners.add(added);
      return () => factListeners.delete(added);
    },
    streamUsage: fanOut.usage,
    start: () => {
      listener.start();
      health.start();
      upkeep.start();
      unsubscribe = ports.onSessionChange(onSession);
      void ports.whenSynced().then((isSynced) => isSynced && seen.start());
    },
    stop: async () => {
      unsubscribe();
      await seen.stop();
      upkeep.stop();
      health.stop();
      await listener.stop();
    },
  };
};
