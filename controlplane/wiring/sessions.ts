// Puts together all that serves sessions: claims, prompts, turns, events, health, facts and their ends.
// Must not know HTTP servers or how the projects' side works.
import { errorChain } from '#base/errors.ts';
import type { StoredEvent } from '#schema/events/envelope.ts';
import type { Session } from '#schema/resources/session.ts';
import { foldTranscript } from '#schema/rules/fold-transcript.ts';
import { runtimeSupports } from '#schema/rules/runtime-supports.ts';
import { GATEWAY_PATH } from '#schema/wire/gateway.ts';
import { GIT_PATH } from '#schema/wire/git.ts';
import { makeClaim } from '../app/claims.ts';
import { counted } from '../app/counted.ts';
import { FACTS_KEY, makeStreamFacts } from '../app/facts.ts';
import { type HarnessFeatures, makeHarnessFeatures } from '../app/harness-features.ts';
import { makeHealth } from '../app/health.ts';
import { type HumanRequests, makeHumanRequests } from '../app/human-requests.ts';
import type { ClaimConfig } from '../app/ports.ts';
import { makePrompts, type Prompts } from '../app/prompts.ts';
import type { PreparePin } from '../app/run-settings.ts';
import { makeSeenSessions } from '../app/seen-sessions.ts';
import { countingAppends, countingTurnEnds, toolOutcomes } from '../app/session-counts.ts';
import { makeLifecycle } from '../app/session-lifecycle.ts';
import { makeSessionReading, type SessionReading } from '../app/session-reading.ts';
import type { SessionKey } from '../app/session-records.ts';
import { decideTurnEnd } from '../app/turn-end.ts';
import { makeTakeNextTurn } from '../app/turns.ts';
import { makeWaker } from '../app/waker.ts';
import {
  type Credentials,
  daemonCredentialContext,
  makeCredentials,
  newDaemonCredential,
  newSessionCredential,
} from '../daemons/credentials.ts';
import { type Deliver, makeDeliver } from '../daemons/deliver.ts';
import { joinSockets, openTerminal } from '../daemons/join-terminal.ts';
import { type CallDaemon, makeReach } from '../daemons/reach.ts';
import { makeAppendEvents } from '../events/append.ts';
import { type FanOut, makeFanOut, parseGrown } from '../events/fan-out.ts';
import { type InternalSessionHandlers, makeInternalSessionHandlers } from '../http/internal-sessions.ts';
import { makeSandboxHandlers, type SandboxSessionHandlers } from '../http/sandbox.ts';
import type { HealthReport } from '../http/sessions.ts';
import type { WorkspacePorts } from '../http/workspace.ts';
import { makeStoreBatch } from '../store/append-batch.ts';
import { makeStoreClaim } from '../store/claim-session.ts';
import { isDataError } from '../store/errors.ts';
import { EVENTS_CHANNEL, readEvents, readLogRange, readNewestPlan, readTurnEvents } from '../store/events.ts';
import { FACTS_CHANNEL, forgetGoneFacts, readFactStream, readFacts } from '../store/facts.ts';
import { makeHealthStore } from '../store/health-store.ts';
import { getRequest, listOpen, storeAnswer } from '../store/human-requests.ts';
import { makeListener } from '../store/listen.ts';
import { makePromptInbox } from '../store/prompt-inbox.ts';
import { getPrompt, listPrompts } from '../store/prompts.ts';
import { cutLongLogs } from '../store/retention.ts';
import { makeSessionEnds } from '../store/session-ends.ts';
import { findCredential, findDaemon, listSessionUids, readCapabilities } from '../store/sessions.ts';
import { firstRow } from '../store/statement.ts';
import { listMessages, listParts, listThreads, makeCatchUp, readReverted, searchParts } from '../store/transcript.ts';
import { getRun, listRuns } from '../store/turns.ts';
import { readWholeEvent, storedEventOf } from '../store/whole-event.ts';
import { type Background, type Basics, makeRounds } from './basics.ts';

/** Port of daemons. Source: D12. */
const DAEMON_PORT = 8000;
/** How long a harness may think about a question. Units: milliseconds. */
const ASK_TIMEOUT_MS = 35_000;
const FORGET_INTERVAL_MS = 3_600_000;
/** How long a "gone" is told to operators that were away. Units: seconds. */
const GONE_TTL_SECONDS = 86_400;
/** Events of a session that are kept at least. */
const KEPT_EVENTS = 200_000;

/** What the sessions' side needs from the projects' side. */
export type SessionsWiring = Basics &
  Readonly<{ claimConfig: ClaimConfig; preparePin: PreparePin; onSessionsChanged: () => void }>;

/** The sessions' side. `background` is in the order of starting; the caches are complete before. */
export type SessionsSide = Readonly<{
  sandbox: SandboxSessionHandlers;
  internal: InternalSessionHandlers;
  prompts: Prompts;
  humanRequests: HumanRequests;
  reading: SessionReading;
  features: HarnessFeatures;
  capabilities: (sessionUid: string) => Promise<readonly string[] | undefined>;
  fanOut: FanOut;
  readEvent: (sessionUid: string, seq: number) => Promise<StoredEvent | undefined>;
  credentials: Credentials;
  deliver: Deliver;
  callDaemon: CallDaemon;
  openTerminal: WorkspacePorts['openTerminal'];
  readHealth: (sessionUid: string) => Promise<HealthReport | undefined>;
  isListening: () => boolean;
  background: readonly Background[];
}>;

/** Puts it together; nothing runs before its background parts are started. */
export const wireSessions = (wiring: SessionsWiring): SessionsSide => {
  const { database, resources, clock, random, randomBytes, log, seal, unseal, config } = wiring;
  const { query } = database;
  const warn = (what: string) => (error: unknown) => log.warn(what, { chain: errorChain(error) });
  const keyOf = ({ metadata, spec }: Session): SessionKey => ({
    uid: metadata.uid,
    namespace: metadata.namespace,
    name: metadata.name,
    projectUid: resources.projects.find(metadata.namespace, spec.projectRef.name)?.metadata.uid ?? '',
  });

  const credentials = makeCredentials({ findCredential: (prefix) => firstRow(query, findCredential(prefix)), clock });
  const deliver = makeDeliver({
    findSessionByUid: resources.sessions.findByUid,
    findDaemon: (uid) => firstRow(query, findDaemon(uid)),
    unseal,
    daemonPort: DAEMON_PORT,
    onUnreachable: (sessionUid, call, error) =>
      log.info('a daemon did not answer', { sessionUid, call, chain: errorChain(error) }),
  });
  const daemons = makeReach({
    findSessionByUid: resources.sessions.findByUid,
    findDaemon: (uid) => firstRow(query, findDaemon(uid)),
    unseal,
    daemonPort: DAEMON_PORT,
  });

  const inbox = makePromptInbox(database);
  const { instruments } = wiring;
  const decide = countingTurnEnds(decideTurnEnd, ({ harness, outcome, seconds }) => {
    instruments.turnsTotal.inc({ harness, outcome });
    if (seconds !== undefined) instruments.turnDurationSeconds.observe({ harness }, seconds);
  });
  const storeBatch = makeStoreBatch(database, decide, (events) => {
    for (const outcome of toolOutcomes(events)) instruments.toolCallsTotal.inc({ outcome });
  });
  const ends = makeSessionEnds(database, decide);
  const capabilities = async (uid: string): Promise<readonly string[] | undefined> =>
    (await firstRow(query, readCapabilities(uid)))?.capabilities ?? undefined;
  const prompts = makePrompts({
    ...inbox,
    findProject: resources.projects.find,
    maySteer: async (uid) => runtimeSupports(await capabilities(uid), 'session.steer'),
    steer: deliver.steer,
    keyOf,
    findPrompt: (uid, id) => firstRow(query, getPrompt(uid, id)),
    listBelow: (uid, below, limit) => query(listPrompts(uid, below, limit)),
    nudge: (uid) => void deliver.nudge(uid, 'prompt'),
    abort: (uid, turnId) => void deliver.abort(uid, turnId),
    newId: () => randomBytes(10).toString('hex'),
  });
  const reading = makeSessionReading({
    catchUp: makeCatchUp(database, foldTranscript),
    messages: (uid, thread, below, hidden, limit) => query(listMessages(uid, thread, below, hidden, limit)),
    parts: (uid, ids, hidden) => query(listParts(uid, ids, hidden)),
    revertedFrom: async (uid) => (await firstRow(query, readReverted(uid)))?.ordinal ?? undefined,
    threads: async (uid, limit) => (await query(listThreads(uid, limit))).map((row) => row.thread_id),
    plan: async (uid, thread) => (await firstRow(query, readNewestPlan(uid, thread)))?.data,
    search: (uid, text, limit) => query(searchParts(uid, text, limit)),
    runs: (uid, before, limit) => query(listRuns(uid, before, limit)),
    run: (uid, id) => firstRow(query, getRun(uid, id)),
    runEvents: async (uid, id, range, hidden, limit) =>
      (await query(readTurnEvents(uid, id, range, hidden, limit))).map((row) => storedEventOf(row)),
  });
  const humanRequests = makeHumanRequests({
    find: (uid, kind, id) => firstRow(query, getRequest(uid, kind, id)),
    listOpen: (after, limit) => query(listOpen(after, limit)),
    storeAnswer: async (uid, kind, id, answer, by) => (await query(storeAnswer(uid, kind, id, answer, by))).length > 0,
    deliver: deliver.answer,
  });
  const features = makeHarnessFeatures({
    capabilities,
    ask: async (uid, route, input, signal) =>
      (await daemons.call(uid, route, input, { timeoutMs: ASK_TIMEOUT_MS, signal })).body,
    wake: prompts.wake,
  });
  const health = makeHealth({ ...makeHealthStore(database), clock, onError: warn('a health round failed') });
  const lifecycle = makeLifecycle({
    ...ends,
    listStored: async (after, limit) => (await query(listSessionUids(after, limit))).map(({ uid }) => uid),
    exists: (uid) => resources.sessions.findByUid(uid) !== undefined,
    drain: deliver.drain,
    onRevoked: credentials.forget,
    clock,
  });

  const claimWaker = makeWaker(clock);
  const claim = makeClaim({
    findSessionByPodUid: resources.sessions.findByPodUid,
    findProject: resources.projects.find,
    claimConfig: wiring.claimConfig,
    keyOf,
    storeClaim: makeStoreClaim(database, decide),
    newCredential: () => newSessionCredential(randomBytes),
    newDaemonCredential: () => newDaemonCredential(randomBytes),
    sealDaemonCredential: (text, sessionUid) => seal(text, daemonCredentialContext(sessionUid)),
    waker: claimWaker,
    clock,
    gitPath: () => GIT_PATH,
    gatewayPath: GATEWAY_PATH,
    onClaimed: credentials.forget,
  });

  const factsWaker = makeWaker(clock);
  const withSummaries = config.settings.BEEUNI_STATUS_SUMMARIES;
  const streamFacts = makeStreamFacts({
    readStream: async () => {
      const row = await firstRow(query, readFactStream());
      if (row === undefined) throw new Error('the table fact_stream is empty');
      return row;
    },
    readFacts: async (after, limit) => {
      const rows = await query(readFacts(after, limit));
      return withSummaries ? rows : rows.map((row) => ({ ...row, turn_summary: null }));
    },
    waker: factsWaker,
    clock,
  });

  const fanOut = makeFanOut({
    readEvents: (uid, after, limit) => query(readEvents(uid, after, limit)),
    readRange: async (uid) => {
      const row = await firstRow(query, readLogRange(uid));
      return row === undefined ? undefined : { firstSeq: row.first_seq, headSeq: row.head_seq };
    },
    clock,
    onError: warn('reading an event log failed'),
    onOpen: (how) => instruments.streamResumesTotal.inc({ result: how }),
    onSent: (events) => instruments.streamEventsTotal.inc({}, events),
  });

  const seen = makeSeenSessions({
    findSessionByUid: resources.sessions.findByUid,
    listSessions: resources.sessions.list,
    admitSeen: prompts.admitSeen,
    objectGone: lifecycle.objectGone,
    sweep: lifecycle.sweep,
    clock,
    onError: warn('sessions could not be stored yet'),
  });

  const listener = makeListener({
    databaseUrl: wiring.databaseUrl,
    channels: [FACTS_CHANNEL, EVENTS_CHANNEL],
    onMessage: (channel, payload) => {
      if (channel === EVENTS_CHANNEL) {
        for (const { sessionUid, headSeq } of parseGrown(payload)) fanOut.grew(sessionUid, headSeq);
        return;
      }
      for (const uid of payload.split(' ')) {
        credentials.forget(uid);
        claimWaker.wake(uid);
        fanOut.changed(uid);
      }
      factsWaker.wake(FACTS_KEY);
      wiring.onSessionsChanged();
    },
    onGap: () => {
      credentials.forgetAll();
      claimWaker.wakeAll();
      factsWaker.wakeAll();
      fanOut.gap();
    },
    onError: warn('the connection for notifications broke'),
    clock,
    random,
  });
  resources.sessions.onChange((uid) => {
    seen.changed(uid);
    const podUid = resources.sessions.findByUid(uid)?.status?.pod?.uid;
    if (podUid !== undefined) claimWaker.wake(podUid);
  });
  resources.projects.onChange((uid) => claimWaker.wake(uid));

  let openTerminals = 0;
  return {
    sandbox: makeSandboxHandlers({
      // A held claim must not hold up the end of the process; its pod asks again.
      claim: (caller, request, signal) =>
        counted(
          claim(caller, request, AbortSignal.any([signal, wiring.stopping])),
          (result) => instruments.claimsTotal.inc({ result }),
          ({ state }) => state,
        ),
      reportHealth: health.report,
      takeNextTurn: makeTakeNextTurn({
        take: inbox.take,
        preparePin: wiring.preparePin,
        limits: config.settingsEnvironment.limits,
        findSessionByUid: resources.sessions.findByUid,
      }),
      appendEvents: makeAppendEvents({
        storeBatch: countingAppends(storeBatch, clock, (counts, seconds) => {
          for (const { result, appends } of counts) instruments.eventAppendsTotal.inc({ result }, appends);
          instruments.eventAppendDurationSeconds.observe({}, seconds);
        }),
        isDataError,
      }),
      onBye: (sessionUid, reason) => log.info('a daemon says good-bye', { sessionUid, reason }),
    }),
    internal: makeInternalSessionHandlers({ streamFacts, lifecycle }),
    prompts,
    humanRequests,
    reading,
    features,
    capabilities,
    fanOut,
    readEvent: (uid, seq) => readWholeEvent(query, uid, seq),
    credentials,
    deliver,
    callDaemon: daemons.call,
    openTerminal: async (uid, terminal, handshake, signal) => {
      const opened = await openTerminal(await daemons.reach(uid), terminal, handshake, signal);
      return async (_request, socket, head) => {
        openTerminals += 1;
        instruments.terminalsActive.set({}, openTerminals);
        try {
          await joinSockets(socket, head, opened);
        } finally {
          openTerminals -= 1;
          instruments.terminalsActive.set({}, openTerminals);
        }
      };
    },
    readHealth: health.read,
    isListening: listener.isConnected,
    background: [
      { name: 'notifications', start: listener.start, stop: listener.stop },
      { name: 'health rounds', start: health.start, stop: health.stop },
      { name: 'seen sessions', start: seen.start, stop: seen.stop },
      makeRounds(wiring, 'gone facts', FORGET_INTERVAL_MS, () => query(forgetGoneFacts(GONE_TTL_SECONDS))),
      makeRounds(wiring, 'long logs', FORGET_INTERVAL_MS, () => cutLongLogs(database, KEPT_EVENTS)),
    ],
  };
};
