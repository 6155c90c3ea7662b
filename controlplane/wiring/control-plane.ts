// Joins the sides of sessions and projects to handlers, guard and servers. Must not know how either side works.
import type { RequestRecord } from '#base/http/server.ts';
import type { Part } from '#base/lifecycle.ts';
import type { KubeClient } from '#kube/client.ts';
import { SANDBOX_SERVICE_ACCOUNT } from '#kube/names.ts';
import { makeCheckSessionSpec } from '../app/check-session-spec.ts';
import { makeChooseHarness } from '../app/choose-harness.ts';
import { providerKeyContext } from '../app/provider-keys.ts';
import { makeRateLimit } from '../app/rate-limit.ts';
import { makeRecordsApp } from '../app/records.ts';
import { makeReseal } from '../app/reseal.ts';
import { makeRecordWrite } from '../app/writes.ts';
import { daemonCredentialContext } from '../daemons/credentials.ts';
import { makeAgentPolicyHandlers } from '../http/agent-policies.ts';
import { makeAuthenticate } from '../http/authenticate.ts';
import { makeAuthorize } from '../http/authorize.ts';
import { mountGit } from '../http/git.ts';
import { makeGuard } from '../http/guard.ts';
import { makeHumanRequestHandlers } from '../http/human-requests.ts';
import { makeProjectHandlers } from '../http/projects.ts';
import { makePromptHandlers } from '../http/prompts.ts';
import { makeReadState } from '../http/read-state.ts';
import { makeRecordHandlers } from '../http/records.ts';
import { makeGetEvent, makeStreamEvents } from '../http/session-events.ts';
import { makeSessionVerbHandlers } from '../http/session-verbs.ts';
import { makeSessionHandlers } from '../http/sessions.ts';
import { limitStreams } from '../http/stream-limit.ts';
import { makeTranscriptHandlers } from '../http/transcript.ts';
import { makeWorkspaceHandlers } from '../http/workspace.ts';
import { makeIdentities } from '../kubernetes/identity.ts';
import { buildServers, type ControlPlaneServers } from '../server.ts';
import { makeRecordReads } from '../store/records.ts';
import { makeSealedTexts } from '../store/sealed-texts.ts';
import { forgetOldWrites, makeWriteRecords } from '../store/write-records.ts';
import { type Basics, makeRounds } from './basics.ts';
import { wireProjects } from './projects.ts';
import { wireSessions } from './sessions.ts';
import { wireWeb } from './web.ts';

/** What joining needs besides. */
export type ControlPlaneWiring = Basics &
  Readonly<{ version: string; client: KubeClient; observe: (record: RequestRecord) => void }>;

/** The whole, ready to be started: `background` first, then ports for the servers. */
export type WiredControlPlane = Readonly<{
  servers: ControlPlaneServers;
  background: readonly Part[];
  /** What does not work at present; everything else is served. */
  impaired: () => readonly string[];
  /** Sets gauges that are sizes, before they are read. */
  report: () => void;
}>;

const FORGET_INTERVAL_MS = 3_600_000;
const AUDIT_DAYS = 90;
const RESEAL_INTERVAL_MS = 600_000;

/** Puts everything together; nothing runs yet. */
export const wireControlPlane = async (wiring: ControlPlaneWiring): Promise<WiredControlPlane> => {
  const { config, clock, log, database, resources, client, instruments, randomBytes } = wiring;
  const { settings } = config;
  const projects = await wireProjects({
    ...wiring,
    pushEnv: (uid, revision, env) => sessions.deliver.pushEnv(uid, revision, env),
  });
  const sessions = wireSessions({
    ...wiring,
    claimConfig: projects.claimConfig,
    preparePin: projects.preparePin,
    onSessionsChanged: projects.settings.titles.poke,
  });

  const web = wireWeb(wiring);
  const identities = makeIdentities({ client, clock, audience: settings.BEEUNI_AUDIENCE });
  const recordWrite = makeRecordWrite({
    records: makeWriteRecords(database),
    onLost: (error) => log.error('the end of a change could not be recorded', { err: error }),
  });
  const guard = makeGuard({
    authenticate: makeAuthenticate({
      identify: identities.identify,
      findSessionByCredential: sessions.credentials.find,
      operator: config.operator,
      sandboxServiceAccount: SANDBOX_SERVICE_ACCOUNT,
    }),
    authorize: makeAuthorize({ mayAccess: identities.mayAccess }),
    takeCall: makeRateLimit({
      clock,
      perSecond: settings.BEEUNI_RATE_LIMIT_PER_SECOND,
      burst: settings.BEEUNI_RATE_LIMIT_BURST,
    }),
    readState: makeReadState({ readSpec: resources.readSpec, findProvider: projects.findProvider }),
    recordWrite,
    observe: {
      authenticated: (result) => {
        instruments.authTotal.inc({ result });
        if (result === 'superseded') instruments.supersededCallsTotal.inc({});
      },
      denied: (reason) => instruments.authzDeniedTotal.inc({ reason }),
    },
  });

  const { fetch: fetchSession } = resources.sessions;
  const { fetch: fetchProject } = resources.projects;
  const { judgeModel } = projects;
  /** A value that no earlier one equals: the time, and chance for two calls in one millisecond. */
  const newToken = (): string => `${new Date(clock.nowMs()).toISOString()}-${randomBytes(4).toString('hex')}`;
  const streamEvents = limitStreams(
    makeStreamEvents({
      fetchSession,
      admitSession: (session) => sessions.prompts.admitSeen([session]),
      stream: sessions.fanOut.stream,
    }),
    {
      maxStreams: settings.BEEUNI_MAX_STREAMS,
      observe: {
        open: (count) => instruments.streamsActive.set({}, count),
        ended: (reason) => instruments.streamDroppedTotal.inc({ reason }),
      },
    },
  );

  const servers = buildServers({
    log,
    clock,
    version: wiring.version,
    observe: wiring.observe,
    guard,
    public: {
      ...makeProjectHandlers({
        fetchProject,
        listProjects: resources.projects.list,
        createProject: resources.createProject,
        patchProject: resources.patchProject,
        deleteProject: resources.deleteProject,
        judgeModel,
        findProjectFact: projects.sync.findFact,
        judgeManifest: (project, text) => projects.sync.judgeText(project.metadata.uid, text),
        platformFlags: config.flags,
        newToken,
      }),
      ...makeSessionHandlers({
        fetchSession,
        listSessions: resources.sessions.list,
        checkSessionSpec: makeCheckSessionSpec({ fetchProject, judgeModel }),
        createSession: resources.createSession,
        patchSession: resources.patchSession,
        deleteSession: resources.deleteSession,
        wakeSession: sessions.prompts.wake,
        readHealth: sessions.readHealth,
        readTitles: projects.settings.readTitles,
        newToken,
      }),
      ...makeWorkspaceHandlers({
        fetchSession,
        callDaemon: sessions.callDaemon,
        openTerminal: sessions.openTerminal,
        recordWrite,
        maxTerminals: settings.BEEUNI_MAX_STREAMS,
      }),
      ...makePromptHandlers({ fetchSession, fetchProject, judgeModel, prompts: sessions.prompts }),
      ...makeSessionVerbHandlers({
        fetchSession,
        fetchProject,
        judgeModel,
        prompts: sessions.prompts,
        features: sessions.features,
        capabilities: sessions.capabilities,
        chooseHarness: makeChooseHarness({
          findProjectFact: projects.sync.findFact,
          platformFlags: config.flags,
        }),
      }),
      ...makeTranscriptHandlers({ fetchSession, reading: sessions.reading, features: sessions.features }),
      ...makeHumanRequestHandlers({
        fetchSession,
        requests: sessions.humanRequests,
        mayAccess: identities.mayAccess,
      }),
      ...projects.handlers,
      ...makeRecordHandlers({ fetchProject, records: makeRecordsApp({ reads: makeRecordReads(database), clock }) }),
      ...projects.settings.handlers,
      ...makeAgentPolicyHandlers({ fetchProject, ...projects.policies }),
      streamEvents,
      getEvent: makeGetEvent({ fetchSession, readEvent: sessions.readEvent }),
    },
    sandbox: { ...sessions.sandbox, ...web.handlers },
    internal: { ...sessions.internal, ...projects.internal },
    gateway: projects.gateway,
    mountGit: (server, gitGuard) => mountGit(server, projects.gitProxy, gitGuard),
  });

  const forgetWrites = makeRounds(wiring, 'old writes', FORGET_INTERVAL_MS, async () => {
    for (const statement of forgetOldWrites(AUDIT_DAYS)) await database.query(statement);
  });
  const reseal = makeReseal({
    texts: makeSealedTexts(database, config.sealKeys[0].id, {
      provider_keys: providerKeyContext,
      providers: providerKeyContext,
      sessions: daemonCredentialContext,
    }),
    seal: wiring.seal,
    unseal: wiring.unseal,
    log,
  });
  // At once, and again for what a replica with an older key file wrote meanwhile.
  const resealRounds = makeRounds(
    wiring,
    'sealed texts',
    RESEAL_INTERVAL_MS,
    async () => {
      const { resealed, unopened } = await reseal();
      instruments.sealedTextsResealedTotal.inc({}, resealed);
      instruments.sealedTextsUnopened.set({}, unopened);
    },
    0,
  );
  return {
    servers,
    background: [...projects.background, ...sessions.background, web.background, forgetWrites, resealRounds],
    report: projects.refreshGateway,
    impaired: () => [
      ...resources.staleKinds().map((kind) => `cache of ${kind}`),
      ...(sessions.isListening() ? [] : ['database notifications']),
    ],
  };
};
