// Builds the servers of the control plane from handlers and one guard; it opens no port.
// Must not know what handlers do. Source: 20-control-plane §1.
import type { Clock } from '#base/clock.ts';
import { mount, mountNdjson, mountSse } from '#base/http/mount.ts';
import { createHttpServer, type HttpServer, type RequestRecord } from '#base/http/server.ts';
import { mountUpgrade } from '#base/http/upgrade.ts';
import type { Logger } from '#base/log.ts';
import type { Listener } from '#schema/define-route.ts';
import * as policyRoutes from '#schema/rest/agent-policies.ts';
import * as fileRoutes from '#schema/rest/files.ts';
import * as projectRoutes from '#schema/rest/projects.ts';
import * as promptRoutes from '#schema/rest/prompts.ts';
import * as recordRoutes from '#schema/rest/records.ts';
import * as requestRoutes from '#schema/rest/requests.ts';
import * as verbRoutes from '#schema/rest/session-verbs.ts';
import * as sessionRoutes from '#schema/rest/sessions.ts';
import * as terminalRoutes from '#schema/rest/terminals.ts';
import * as transcriptRoutes from '#schema/rest/transcript.ts';
import * as workspaceRoutes from '#schema/rest/workspace.ts';
import * as settingsRoutes from '#schema/rest/workspace-settings.ts';
import { claimRoute } from '#schema/wire/claim.ts';
import { healthReportRoute } from '#schema/wire/health.ts';
import * as syncRoutes from '#schema/wire/sync.ts';
import { appendEventsRoute, byeRoute, nextTurnRoute } from '#schema/wire/turns.ts';
import { webImagesRoute, webScrapeRoute, webSearchRoute } from '#schema/wire/web.ts';
import type { AgentPolicyHandlers } from './http/agent-policies.ts';
import { apiDocument } from './http/api-document.ts';
import { type GatewayHandlers, mountGateway } from './http/gateway.ts';
import type { Guard, Handler, NdjsonHandler, SseHandler } from './http/handler.ts';
import type { HumanRequestHandlers } from './http/human-requests.ts';
import type { ModelHandlers } from './http/models.ts';
import type { ProjectHandlers } from './http/projects.ts';
import type { PromptHandlers } from './http/prompts.ts';
import type { ProviderHandlers } from './http/providers.ts';
import type { RecordHandlers } from './http/records.ts';
import type { SessionVerbHandlers } from './http/session-verbs.ts';
import type { SessionHandlers } from './http/sessions.ts';
import type { SettingsHandlers } from './http/settings.ts';
import { mountApiDocument, mountSystem, type SystemPorts } from './http/system.ts';
import type { TranscriptHandlers } from './http/transcript.ts';
import type { WebHandlers } from './http/web.ts';
import type { WorkspaceHandlers } from './http/workspace.ts';

/** Handlers of the sandbox listener, by operationId; gateway and git are mounted by themselves. */
export type SandboxHandlers = WebHandlers &
  Readonly<{
    claim: Handler<typeof claimRoute>;
    reportHealth: Handler<typeof healthReportRoute>;
    takeNextTurn: Handler<typeof nextTurnRoute>;
    appendEvents: Handler<typeof appendEventsRoute>;
    bye: Handler<typeof byeRoute>;
  }>;

/** Handlers of the internal listener, by operationId. */
export type InternalHandlers = Readonly<{
  syncProject: Handler<typeof syncRoutes.syncProjectRoute>;
  streamFacts: NdjsonHandler<typeof syncRoutes.factsRoute>;
  stopSession: Handler<typeof syncRoutes.stopSessionRoute>;
  closeSession: Handler<typeof syncRoutes.closeSessionRoute>;
  podGone: Handler<typeof syncRoutes.podGoneRoute>;
  closeProject: Handler<typeof syncRoutes.closeProjectRoute>;
  secretChanged: Handler<typeof syncRoutes.secretChangedRoute>;
}>;

/** Handlers of the public listener, by operationId. */
export type PublicHandlers = ProjectHandlers &
  WorkspaceHandlers &
  SessionHandlers &
  PromptHandlers &
  HumanRequestHandlers &
  SessionVerbHandlers &
  TranscriptHandlers &
  ProviderHandlers &
  ModelHandlers &
  RecordHandlers &
  SettingsHandlers &
  AgentPolicyHandlers &
  Readonly<{
    streamEvents: SseHandler<typeof promptRoutes.streamEventsRoute>;
    getEvent: Handler<typeof promptRoutes.getEventRoute>;
  }>;

/** What every server is built from. */
export type ServerBasics = Readonly<{ log: Logger; clock: Clock; observe: (record: RequestRecord) => void }>;

/** What the servers are built from. `mountGit` serves the git proxy. */
export type ServerPorts = ServerBasics &
  Readonly<{
    version: string;
    guard: Guard;
    public: PublicHandlers;
    sandbox: SandboxHandlers;
    internal: InternalHandlers;
    gateway: GatewayHandlers;
    mountGit: (server: HttpServer, guard: Guard) => void;
  }>;

/** One server for each listener whose callers are known. */
export type ControlPlaneServers = Readonly<Record<'public' | 'sandbox' | 'internal', HttpServer>>;

const mountPublic = (server: HttpServer, handlers: PublicHandlers, guard: Guard): void => {
  mount(server, projectRoutes.listProjectsRoute, handlers.listProjects, guard);
  mount(server, projectRoutes.listAllProjectsRoute, handlers.listAllProjects, guard);
  mount(server, projectRoutes.getProjectRoute, handlers.getProject, guard);
  mount(server, projectRoutes.createProjectRoute, handlers.createProject, guard);
  mount(server, projectRoutes.patchProjectRoute, handlers.patchProject, guard);
  mount(server, projectRoutes.deleteProjectRoute, handlers.deleteProject, guard);
  mount(server, projectRoutes.getFeaturesRoute, handlers.getProjectFeatures, guard);
  mount(server, projectRoutes.patchFeaturesRoute, handlers.patchProjectFeatures, guard);
  mount(server, projectRoutes.getManifestRoute, handlers.getManifest, guard);
  mount(server, projectRoutes.getProjectHarnessRoute, handlers.getProjectHarness, guard);
  mount(server, projectRoutes.syncNowRoute, handlers.syncProjectNow, guard);
  mount(server, projectRoutes.validateManifestRoute, handlers.validateManifest, guard);
  mount(server, sessionRoutes.listSessionsRoute, handlers.listSessions, guard);
  mount(server, sessionRoutes.listAllSessionsRoute, handlers.listAllSessions, guard);
  mount(server, sessionRoutes.createSessionRoute, handlers.createSession, guard);
  mount(server, sessionRoutes.getSessionRoute, handlers.getSession, guard);
  mount(server, sessionRoutes.patchSessionRoute, handlers.patchSession, guard);
  mount(server, sessionRoutes.deleteSessionRoute, handlers.deleteSession, guard);
  mount(server, sessionRoutes.startSessionRoute, handlers.startSession, guard);
  mount(server, sessionRoutes.suspendSessionRoute, handlers.suspendSession, guard);
  mount(server, sessionRoutes.restartSessionRoute, handlers.restartSession, guard);
  mount(server, sessionRoutes.sessionHealthRoute, handlers.getSessionHealth, guard);
  mount(server, promptRoutes.createPromptRoute, handlers.createPrompt, guard);
  mount(server, promptRoutes.listPromptsRoute, handlers.listPrompts, guard);
  mount(server, promptRoutes.getPromptRoute, handlers.getPrompt, guard);
  mount(server, promptRoutes.deletePromptRoute, handlers.deletePrompt, guard);
  mount(server, promptRoutes.abortRoute, handlers.abortSessionTurn, guard);
  mount(server, verbRoutes.listCommandsRoute, handlers.listCommands, guard);
  mount(server, verbRoutes.runCommandRoute, handlers.runCommand, guard);
  mount(server, verbRoutes.runShellRoute, handlers.runShell, guard);
  mount(server, verbRoutes.summarizeSessionRoute, handlers.summarizeSession, guard);
  mount(server, verbRoutes.revertSessionRoute, handlers.revertSession, guard);
  mount(server, verbRoutes.unrevertSessionRoute, handlers.unrevertSession, guard);
  mount(server, verbRoutes.forkSessionRoute, handlers.forkSession, guard);
  mount(server, verbRoutes.listMcpServersRoute, handlers.listMcpServers, guard);
  mount(server, verbRoutes.attachSessionRoute, handlers.attachSession, guard);
  mount(server, verbRoutes.getRuntimeConfigRoute, handlers.getRuntimeConfig, guard);
  mount(server, verbRoutes.getSessionHarnessRoute, handlers.getSessionHarness, guard);
  mount(server, transcriptRoutes.listMessagesRoute, handlers.listMessages, guard);
  mount(server, transcriptRoutes.listChildrenRoute, handlers.listChildren, guard);
  mount(server, transcriptRoutes.getTodoRoute, handlers.getTodo, guard);
  mount(server, transcriptRoutes.searchSessionRoute, handlers.searchSession, guard);
  mount(server, transcriptRoutes.listRunsRoute, handlers.listRuns, guard);
  mount(server, transcriptRoutes.listRunEventsRoute, handlers.listRunEvents, guard);
  mount(server, requestRoutes.listRequestsRoute, handlers.listRequests, guard);
  mount(server, requestRoutes.getPermissionRoute, handlers.getPermission, guard);
  mount(server, requestRoutes.answerPermissionRoute, handlers.answerPermission, guard);
  mount(server, requestRoutes.getQuestionRoute, handlers.getQuestion, guard);
  mount(server, requestRoutes.answerQuestionRoute, handlers.answerQuestion, guard);
  mountSse(server, promptRoutes.streamEventsRoute, handlers.streamEvents, guard);
  mount(server, promptRoutes.getEventRoute, handlers.getEvent, guard);
  mount(server, recordRoutes.listAuditRoute, handlers.listAudit, guard);
  mount(server, recordRoutes.listUsageRoute, handlers.listUsage, guard);
  mount(server, recordRoutes.projectUsageRoute, handlers.getProjectUsage, guard);
  mount(server, fileRoutes.getFilesRoute, handlers.getSessionFiles, guard);
  mount(server, fileRoutes.putFilesRoute, handlers.putSessionFiles, guard);
  mount(server, fileRoutes.getDiffRoute, handlers.getSessionDiff, guard);
  mount(server, fileRoutes.getLogsRoute, handlers.getSessionLogs, guard);
  mount(server, terminalRoutes.getTerminalsRoute, handlers.getSessionTerminals, guard);
  mount(server, terminalRoutes.deleteTerminalRoute, handlers.deleteSessionTerminal, guard);
  mountUpgrade(server, terminalRoutes.openTerminalRoute, handlers.openSessionTerminal, guard);
  mount(server, workspaceRoutes.listProvidersRoute, handlers.listProviders, guard);
  mount(server, workspaceRoutes.createProviderRoute, handlers.createProvider, guard);
  mount(server, workspaceRoutes.getProviderRoute, handlers.getProvider, guard);
  mount(server, workspaceRoutes.putProviderRoute, handlers.putProvider, guard);
  mount(server, workspaceRoutes.deleteProviderRoute, handlers.deleteProvider, guard);
  mount(server, workspaceRoutes.checkProviderRoute, handlers.checkProvider, guard);
  mount(server, workspaceRoutes.discoverProviderRoute, handlers.discoverProvider, guard);
  mount(server, workspaceRoutes.listModelsRoute, handlers.listModels, guard);
  mount(server, workspaceRoutes.validateModelsRoute, handlers.validateModels, guard);
  mount(server, settingsRoutes.getSupervisorRoute, handlers.getSupervisor, guard);
  mount(server, settingsRoutes.putSupervisorRoute, handlers.putSupervisor, guard);
  mount(server, settingsRoutes.getEffectiveSettingsRoute, handlers.getEffectiveSettings, guard);
  mount(server, policyRoutes.getAgentPolicyRoute, handlers.getAgentPolicy, guard);
  mount(server, policyRoutes.putAgentPolicyRoute, handlers.putAgentPolicy, guard);
  mount(server, policyRoutes.getProjectEffectiveRoute, handlers.getProjectEffective, guard);
};

const mountSandbox = (server: HttpServer, handlers: SandboxHandlers, guard: Guard): void => {
  mount(server, claimRoute, handlers.claim, guard);
  mount(server, healthReportRoute, handlers.reportHealth, guard);
  mount(server, nextTurnRoute, handlers.takeNextTurn, guard);
  mount(server, appendEventsRoute, handlers.appendEvents, guard);
  mount(server, webSearchRoute, handlers.searchWeb, guard);
  mount(server, webImagesRoute, handlers.searchWebImages, guard);
  mount(server, webScrapeRoute, handlers.scrapeWebPage, guard);
  mount(server, byeRoute, handlers.bye, guard);
};

const mountInternal = (server: HttpServer, handlers: InternalHandlers, guard: Guard): void => {
  mount(server, syncRoutes.syncProjectRoute, handlers.syncProject, guard);
  mountNdjson(server, syncRoutes.factsRoute, handlers.streamFacts, guard);
  mount(server, syncRoutes.stopSessionRoute, handlers.stopSession, guard);
  mount(server, syncRoutes.closeSessionRoute, handlers.closeSession, guard);
  mount(server, syncRoutes.podGoneRoute, handlers.podGone, guard);
  mount(server, syncRoutes.closeProjectRoute, handlers.closeProject, guard);
  mount(server, syncRoutes.secretChangedRoute, handlers.secretChanged, guard);
};

/** The server for probes and metrics; it is there before anything else. */
export const buildMetricsServer = (basics: ServerBasics, system: SystemPorts): HttpServer => {
  const server = createHttpServer({ listener: 'metrics', ...basics });
  mountSystem(server, system);
  return server;
};

/** The servers with every route mounted; a new route of schema/ has to be added here, which a test checks. */
export const buildServers = (ports: ServerPorts): ControlPlaneServers => {
  const { log, clock, guard, observe } = ports;
  const make = (listener: Listener): HttpServer => createHttpServer({ listener, log, clock, observe });
  const servers = { public: make('public'), sandbox: make('sandbox'), internal: make('internal') };
  mountPublic(servers.public, ports.public, guard);
  mountApiDocument(servers.public, apiDocument(ports.version));
  mountSandbox(servers.sandbox, ports.sandbox, guard);
  mountGateway(servers.sandbox, ports.gateway, guard);
  ports.mountGit(servers.sandbox, guard);
  mountInternal(servers.internal, ports.internal, guard);
  return servers;
};
