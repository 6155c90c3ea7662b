// OpenCode behind the one interface: a supervised server, one session in it, prompts as turns.
// Must not know the host beyond its ports. Source: harness-runtimes §2.

import { mkdirSync, realpathSync } from 'node:fs';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { UnavailableError } from '#base/errors.ts';
import { readText, send as sendPlainly } from '#base/http/send.ts';
import { onAbort } from '#base/on-abort.ts';
import type { Adapter, Harness, HarnessHealth, HarnessHost, HumanRequest, RulesFile } from '../contract/adapter.ts';
import type { VerbTurn } from '../contract/capabilities.ts';
import { createOpencodeClient, type OpencodeClient } from './client.ts';
import { modelsOf, opencodeConfig, PROVIDER_ID } from './config-files.ts';
import { startEventFeed } from './event-feed.ts';
import { createEventMapper, type Effect, type EventMapper } from './map-events.ts';
import { opencodeMembers } from './members.ts';
import { messageIds } from './message-id.ts';
import { startOpencode, writeConfig } from './process.ts';
import { readProjectDirectory } from './project-directory.ts';
import { RULES_COPY, readRules, rulesAbove, writeRules } from './rules-copy.ts';
import { type Server, supervise } from './supervisor.ts';
import { createTurnRunner, type OpencodeTimes } from './turn-runner.ts';
import { clearPipes, clearTraps } from './workspace-traps.ts';

const DEFAULT_TIMES: OpencodeTimes = { probeIntervalMs: 5_000, probeTimeoutMs: 10_000, abortLimitMs: 10_000 };
const REREAD_MESSAGES = 50;
/** A copy of a longer conversation is shown from here on. */
const MAX_FORKED_MESSAGES = 1_000;

const sessionFile = (host: HarnessHost): string => join(host.paths.data, 'session.json');

/** The id of this session's conversation from an earlier start, if it was this session's. */
const readSessionId = async (host: HarnessHost): Promise<string | undefined> => {
  try {
    const stored = JSON.parse(await readFile(sessionFile(host), 'utf8')) as { uid?: unknown; sessionId?: unknown };
    return stored.uid === host.session.uid && typeof stored.sessionId === 'string' ? stored.sessionId : undefined;
  } catch {
    return undefined;
  }
};

const writeSessionId = async (host: HarnessHost, sessionId: string): Promise<void> => {
  const file = sessionFile(host);
  await writeFile(`${file}.next`, JSON.stringify({ uid: host.session.uid, sessionId }), { mode: 0o600 });
  await rename(`${file}.next`, file);
};

/** Starts OpenCode for a host. */
export const startHarness = async (
  host: HarnessHost,
  settings: Readonly<{ program?: string | undefined; times?: OpencodeTimes | undefined }> = {},
): Promise<Harness> => {
  const { clock, log, session } = host;
  const times = settings.times ?? DEFAULT_TIMES;
  const knownModels = new Set(modelsOf(session).map(({ name }) => name));
  const project = readProjectDirectory(
    host.configDirectory,
    {
      agents: new Set(session.agents.map(({ name }) => name)),
      modelOf: (name) => (knownModels.has(name) ? `${PROVIDER_ID}/${name}` : undefined),
    },
    log,
  );
  const copies = [
    ...project.copied,
    ...host.skills.map(({ name, directory }) => ({ from: directory, to: `skills/${name}` })),
  ];
  const configDirectory = join(realpathSync(dirname(host.paths.config)), basename(host.paths.config));
  let rules = host.rules;
  let rulesText = await readRules(rules);
  const config = opencodeConfig({
    session,
    modelBaseUrl: host.relay.modelBaseUrl,
    environmentUrl: host.relay.environmentUrl,
    toolsUrl: host.relay.toolsUrl,
    judgeUrl: host.relay.judgeUrl,
    tools: host.tools,
    project,
    rulesPaths: [...rulesAbove(host.paths.workspace), join(configDirectory, RULES_COPY)],
    configDirectory,
  });
  const agentModels = new Map(session.agents.map((agent) => [agent.name, agent.model]));
  const program = settings.program ?? 'opencode';
  /** The session's conversation; a fork puts another one in its place. */
  let conversation: Readonly<{ id: string; map: EventMapper }> = { id: '', map: createEventMapper('') };

  const runner = createTurnRunner({
    times,
    reread: (server) => reread(server.client, server.lost),
    openCalls: () => conversation.map.openCalls(),
    findTrap: () => clearTraps(host.paths.workspace, log),
    clearPipes: (signal) => clearPipes(host.paths.workspace, signal, log),
    clock,
    log,
  });

  const answer = async (client: OpencodeClient, request: HumanRequest, lost: AbortSignal): Promise<void> => {
    const given = await host.ask(request, lost);
    if (lost.aborted) return;
    try {
      if (given.kind === 'permission') await client.answerPermission(request.id, given.reply, given.message);
      else await client.answerQuestion(request.id, given.answers);
    } catch (error) {
      log.warn('an answer did not reach the harness', { request: request.id, err: error });
    }
  };

  const apply = (client: OpencodeClient, effects: readonly Effect[], lost: AbortSignal): void => {
    for (const effect of effects) {
      if (effect.kind === 'emit') host.emit(effect.event);
      else if (effect.kind === 'ask') void answer(client, effect.request, lost);
      runner.apply(effect);
    }
  };

  /** What happened while nobody listened: messages of the running turn, requests, and whether it is over. */
  const reread = async (client: OpencodeClient, lost: AbortSignal): Promise<void> => {
    const { id: sessionId, map } = conversation;
    const messageId = runner.messageId();
    if (messageId === undefined) return;
    const stored = await client.messages(sessionId, REREAD_MESSAGES);
    // Ids sort by time; the message of a compaction has an id of OpenCode's own, above ours.
    const own = stored.findIndex(({ info }) => typeof info['id'] === 'string' && info['id'] >= messageId);
    for (const message of own === -1 ? [] : stored.slice(own)) apply(client, map.mapStored(message), lost);
    for (const kind of ['permission', 'question'] as const) {
      for (const properties of await client.openRequests(kind)) {
        apply(client, map.map({ type: `${kind}.asked`, properties }), lost);
      }
    }
    const busy = (await client.busySessions(times.probeTimeoutMs)).has(sessionId);
    if (own !== -1) apply(client, busy ? [{ kind: 'busy' }] : [{ kind: 'busy' }, { kind: 'idle' }], lost);
  };

  const openSession = async (client: OpencodeClient, lost: AbortSignal): Promise<() => string> => {
    const known = await readSessionId(host);
    const resumed = known !== undefined && (await client.hasSession(known));
    const sessionId = resumed ? known : await client.createSession(session.title);
    if (!resumed) await writeSessionId(host, sessionId);
    const map = createEventMapper(sessionId);
    for (const child of resumed ? await client.children(sessionId) : []) map.addChild(child.id);
    conversation = { id: sessionId, map };
    const gone = new Promise<never>((_resolve, reject) => {
      onAbort(lost, () => reject(new UnavailableError('harness_failed', 'opencode exited')));
    });
    gone.catch(() => {});
    const heard = startEventFeed({
      client,
      apply: (frame) => apply(client, conversation.map.map(frame), lost),
      reread: () => reread(client, lost),
      lost,
      clock,
      log,
    });
    await Promise.race([heard, gone]);
    return () => conversation.id;
  };

  /** The granted values that MCP servers of the project are given by `{env:NAME}`; nothing else reaches the server. */
  const grantedFor = async (signal: AbortSignal): Promise<Readonly<Record<string, string>>> => {
    const names = new Set(
      [...JSON.stringify(project.settings['mcp'] ?? {}).matchAll(/\{env:([A-Za-z_]\w*)\}/g)].map(
        ([, name]) => name ?? '',
      ),
    );
    if (names.size === 0) return {};
    try {
      const answer = await sendPlainly(host.relay.environmentUrl, {
        headers: { authorization: `Bearer ${host.relay.token}` },
        signal,
      });
      const all = Object.entries(JSON.parse(await readText(answer)) as Record<string, string>);
      return Object.fromEntries(all.filter(([name]) => names.has(name)));
    } catch (error) {
      log.warn('an MCP server of the project starts without what it refers to', { err: error });
      return {};
    }
  };

  mkdirSync(host.paths.data, { recursive: true });
  const supervisor = supervise({
    start: async (signal) => {
      const trap = clearTraps(host.paths.workspace, log);
      if (trap !== undefined) throw new UnavailableError('harness_failed', trap);
      writeConfig(host.paths.config, config.files, copies);
      writeRules(host.paths.config, rulesText);
      return startOpencode(
        {
          program,
          paths: host.paths,
          configContent: config.content,
          token: host.relay.token,
          granted: await grantedFor(signal),
          questions: !session.unattended,
          searchPath: host.searchPath,
          marker: host.marker,
          output: host.output,
          clock,
        },
        signal,
      );
    },
    connect: (process) => createOpencodeClient(process.origin, process.password),
    expectedAgents: config.agents,
    agent: config.agents.find((name) => name === session.agent),
    openSession,
    endLeftovers: host.endLeftovers,
    onChange: host.healthChanged,
    clock,
    random: Math.random,
    log,
  });

  const health = (): HarnessHealth => {
    const { state, error, restarts } = supervisor.state();
    const server = supervisor.server();
    const details = {
      pid: server?.process.pid ?? null,
      port: server?.process.port ?? null,
      restarts,
      agentsMd: rulesText === null ? null : rules,
    };
    return { version: server?.version ?? null, state, error, sessionId: server?.sessionId() ?? null, details };
  };

  /** The agent that a prompt runs on: a known primary one, else the session's. Source: A104. */
  const agentOf = (server: Server, wanted: string | null): string | undefined => {
    if (wanted !== null && server.primaryAgents.has(wanted)) return wanted;
    if (wanted !== null) log.warn('a prompt names an agent that cannot run it', { agent: wanted });
    const own = session.agent;
    return own !== null && server.primaryAgents.has(own) ? own : undefined;
  };

  const modelOf = (turn: VerbTurn, agent: string | undefined): string | undefined => {
    if (turn.model !== null) return knownModels.has(turn.model) ? turn.model : undefined;
    const own = turn.agent !== null && agent === turn.agent ? agentModels.get(agent) : undefined;
    return own !== undefined && knownModels.has(own) ? own : session.model?.name;
  };

  const switchTo = async (server: Server, sessionId: string): Promise<void> => {
    await writeSessionId(host, sessionId);
    const map = createEventMapper(sessionId);
    conversation = { id: sessionId, map };
    for (const message of await server.client.messages(sessionId, MAX_FORKED_MESSAGES)) {
      apply(server.client, map.mapStored(message), server.lost);
    }
    host.healthChanged();
  };

  const { submit, optional } = opencodeMembers({
    server: supervisor.server,
    runner,
    nextMessageId: messageIds(clock.nowMs, Math.random),
    choose: (server, turn) => {
      const agent = agentOf(server, turn.agent ?? session.agent);
      return { agent, model: modelOf(turn, agent) };
    },
    noModel: (turn) => {
      const name = turn.model ?? session.model?.name;
      const message =
        name === undefined ? 'no model is set for this session' : `the model ${name} is not available here`;
      return { kind: 'failed', code: 'unknown_model', message };
    },
    switchTo,
    emit: host.emit,
    program,
    workspace: host.paths.workspace,
  });

  const rulesChanged = async (next: RulesFile | null): Promise<void> => {
    rulesText = await readRules(next);
    rules = next;
    writeRules(host.paths.config, rulesText);
    host.healthChanged();
  };

  return { health, submit, rulesChanged, stop: (deadlineMs) => supervisor.stop(deadlineMs), optional };
};

/** The standard harness. */
export const opencodeAdapter: Adapter = { id: 'opencode', start: (host) => startHarness(host) };
