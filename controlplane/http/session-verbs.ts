// Handlers of the verbs of a session's harness: turns that are no prompt go to the inbox, everything else to the daemon.
// Must not know either. Source: 20-control-plane §3, A62 to A67.
import { InvalidError } from '#base/errors.ts';
import type { Project } from '#schema/resources/project.ts';
import type { Session } from '#schema/resources/session.ts';
import type * as routes from '#schema/rest/session-verbs.ts';
import type { ModelVerdict } from '#schema/rest/workspace.ts';
import { lostCapabilities } from '#schema/rules/harness-capabilities.ts';
import { nearestNames } from '#schema/rules/nearest-names.ts';
import type { HarnessChoice } from '#schema/rules/select-harness.ts';
import * as wire from '#schema/wire/runtime.ts';
import type { TurnPart } from '#schema/wire/turns.ts';
import { type Caller, callerName } from '../app/caller.ts';
import { checkAgentOf, checkModelOf } from '../app/check-session-spec.ts';
import type { HarnessFeatures } from '../app/harness-features.ts';
import type { Prompts } from '../app/prompts.ts';
import { type Fetch, requireSession } from './find-objects.ts';
import type { Handler } from './handler.ts';
import { checkTakesPrompts, checkThread } from './prompts.ts';

/** What the handlers need. */
export type SessionVerbPorts = Readonly<{
  fetchSession: Fetch<Session>;
  fetchProject: Fetch<Project>;
  judgeModel: (name: string) => Promise<ModelVerdict | undefined>;
  prompts: Pick<Prompts, 'send'>;
  features: HarnessFeatures;
  /** Ids that the newest harness of a session reported; undefined when none did. */
  capabilities: (sessionUid: string) => Promise<readonly string[] | undefined>;
  /** What a session of the project would run if it started now. */
  chooseHarness: (project: Project) => Promise<HarnessChoice>;
}>;

/** The handlers, one per route of schema/rest/session-verbs.ts. */
export type SessionVerbHandlers = Readonly<{
  listCommands: Handler<typeof routes.listCommandsRoute>;
  runCommand: Handler<typeof routes.runCommandRoute>;
  runShell: Handler<typeof routes.runShellRoute>;
  summarizeSession: Handler<typeof routes.summarizeSessionRoute>;
  revertSession: Handler<typeof routes.revertSessionRoute>;
  unrevertSession: Handler<typeof routes.unrevertSessionRoute>;
  forkSession: Handler<typeof routes.forkSessionRoute>;
  listMcpServers: Handler<typeof routes.listMcpServersRoute>;
  attachSession: Handler<typeof routes.attachSessionRoute>;
  getRuntimeConfig: Handler<typeof routes.getRuntimeConfigRoute>;
  getSessionHarness: Handler<typeof routes.getSessionHarnessRoute>;
}>;

type TurnFields = Readonly<{
  messageId?: string | undefined;
  threadId?: string | undefined;
  agent?: string | undefined;
  model?: string | undefined;
}>;

/** What J2 says of a session, in one sentence. */
const harnessMessage = (now: string | undefined, next: HarnessChoice): string => {
  const because = {
    'gateway-off': 'the model gateway is off for this project',
    'project-flag': 'the project flag pi_harness is on',
    'manifest-runtime': `the manifest says runtime: ${next.id}`,
    default: 'nothing says otherwise',
  }[next.reason];
  if (now === undefined) return `the next start runs ${next.id}, because ${because}`;
  return now === next.id
    ? `now ${now}, and so at the next start, because ${because}`
    : `now ${now}, next start ${next.id}, because ${because}`;
};

/** Makes the handlers. */
export const makeSessionVerbHandlers = (ports: SessionVerbPorts): SessionVerbHandlers => {
  const found = requireSession(ports.fetchSession);
  const { features, prompts } = ports;

  const checkChoice = async (session: Session, { agent, model }: TurnFields): Promise<void> => {
    if (agent === undefined && model === undefined) return;
    const project = await ports.fetchProject(session.metadata.namespace, session.spec.projectRef.name);
    if (project === undefined) return;
    if (agent !== undefined) checkAgentOf(project, agent);
    if (model !== undefined) await checkModelOf(project, model, ports.judgeModel);
  };

  const sendTurn = async (session: Session, part: TurnPart, fields: TurnFields, caller: Caller) => {
    const { messageId, agent, model } = fields;
    const sentBy = callerName(caller);
    const view = await prompts.send(session, { messageId, delivery: 'queue', parts: [part], agent, model, sentBy });
    return { status: view.deduplicated ? (200 as const) : (202 as const), body: view };
  };

  /** The session, once it is known to take a turn of a kind. */
  const forTurn = async (
    params: Readonly<{ namespace: string; name: string }>,
    capability: wire.Capability,
    fields: TurnFields,
  ): Promise<Session> => {
    const session = await found(params);
    checkThread(fields.threadId);
    checkTakesPrompts(session);
    await features.require(session, capability);
    await checkChoice(session, fields);
    return session;
  };

  return {
    listCommands: async ({ params, signal }) => {
      const session = await found(params);
      const { commands } = await features.ask(session, 'session.commands', wire.readCommandsRoute, {}, signal);
      return { status: 200, body: { items: commands } };
    },
    runCommand: async ({ params, body, caller, signal }) => {
      const session = await forTurn(params, 'session.commands', body);
      const { commands } = await features.ask(session, 'session.commands', wire.readCommandsRoute, {}, signal);
      const names = commands.map((command) => command.name);
      if (!names.includes(body.name)) {
        const near = nearestNames(body.name, names);
        const hint = near.length === 0 ? '' : `; did you mean ${near.map((name) => `/${name}`).join(', ')}?`;
        throw new InvalidError('unknown_command', `there is no command /${body.name}${hint}`);
      }
      return sendTurn(session, { type: 'command', name: body.name, arguments: body.arguments }, body, caller);
    },
    runShell: async ({ params, body, caller }) => {
      const session = await forTurn(params, 'session.shell', body);
      return sendTurn(session, { type: 'shell', command: body.command }, body, caller);
    },
    summarizeSession: async ({ params, body, caller }) =>
      sendTurn(await forTurn(params, 'session.compact', body), { type: 'compact' }, body, caller),
    revertSession: async ({ params, body, signal }) => {
      const session = await found(params);
      checkThread(body.threadId);
      const input = { body: { messageId: body.messageId } };
      await features.ask(session, 'session.rewind', wire.revertMessageRoute, input, signal);
      return { status: 200, body: {} };
    },
    unrevertSession: async ({ params, signal }) => {
      await features.ask(await found(params), 'session.rewind', wire.unrevertMessageRoute, { body: {} }, signal);
      return { status: 200, body: {} };
    },
    forkSession: async ({ params, body, signal }) => {
      const session = await found(params);
      checkThread(body.threadId);
      const input = { body: body.messageId === undefined ? {} : { messageId: body.messageId } };
      return {
        status: 200,
        body: await features.ask(session, 'session.fork', wire.forkConversationRoute, input, signal),
      };
    },
    listMcpServers: async ({ params, signal }) => {
      const { servers } = await features.ask(await found(params), 'session.mcp', wire.readMcpRoute, {}, signal);
      return { status: 200, body: { items: servers } };
    },
    attachSession: async ({ params, signal }) => ({
      status: 200,
      body: await features.ask(await found(params), 'session.attach', wire.readAttachRoute, {}, signal),
    }),
    getRuntimeConfig: async ({ params, signal }) => ({
      status: 200,
      body: await features.ask(await found(params), 'session.config', wire.readConfigRoute, {}, signal),
    }),
    getSessionHarness: async ({ params }) => {
      const session = await found(params);
      const project = await ports.fetchProject(params.namespace, session.spec.projectRef.name);
      const { harness } = session.status ?? {};
      const next: HarnessChoice =
        project === undefined ? { id: 'opencode', reason: 'default' } : await ports.chooseHarness(project);
      const capabilities = (await ports.capabilities(session.metadata.uid)) ?? null;
      const changes = harness !== undefined && harness.id !== next.id;
      return {
        status: 200,
        body: {
          now:
            harness === undefined ? null : { id: harness.id, reason: harness.reason, version: harness.version ?? null },
          next,
          changes,
          message: harnessMessage(harness?.id, next),
          capabilities: capabilities === null ? null : [...capabilities],
          lost: changes ? [...lostCapabilities(capabilities ?? [], next.id)] : [],
        },
      };
    },
  };
};
