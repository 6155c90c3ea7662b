// OpenCode behind the one interface: a supervised server, one session in it, prompts as turns.
// Must not know the host beyond its ports. Source: harness-runtimes §2.

import { mkdirSync, realpathSync } from 'node:fs';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { sleep } from '#base/clock.ts';
import { UnavailableError } from '#base/errors.ts';
import type { Turn } from '#schema/wire/turns.ts';
import type { Adapter, Harness, HarnessHealth, HarnessHost, HumanRequest, TurnEnd } from '../contract/adapter.ts';
import { createOpencodeClient, type OpencodeClient } from './client.ts';
import { modelsOf, opencodeConfig } from './config-files.ts';
import { createEventMapper, type Effect, type EventMapper } from './map-events.ts';
import { messageIds } from './message-id.ts';
import { startOpencode, writeConfig } from './process.ts';
import { type Server, supervise } from './supervisor.ts';
import { type TurnWatch, turnEndOf, watchEffect, watchOn, watchTurn } from './turn-watch.ts';

/** Times that a test may shorten. Units: milliseconds. */
export type OpencodeTimes = Readonly<{
  /** How often a running turn is looked at, and how long the server may take to answer. */
  probeIntervalMs: number;
  probeTimeoutMs: number;
  /** How long an abort may take before the process is killed. */
  abortLimitMs: number;
}>;

const DEFAULT_TIMES: OpencodeTimes = { probeIntervalMs: 5_000, probeTimeoutMs: 10_000, abortLimitMs: 10_000 };
/** Missed probes in a row after which the server counts as hanging. Source: harness-runtimes §2.9. */
const MISSED_PROBES = 3;
/** After an abort the last parts come a moment after "idle". */
const SETTLE_LIMIT_MS = 1_000;
const RECONNECT_PAUSE_MS = 200;
const REREAD_MESSAGES = 50;

type Active = {
  watch: TurnWatch;
  /** Wakes whoever waits for the turn when something happened. */
  changed: () => void;
};

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
  const config = opencodeConfig({
    session,
    modelBaseUrl: host.relay.modelBaseUrl,
    environmentUrl: host.relay.environmentUrl,
    rulesPath: host.rules?.path ?? null,
    configDirectory: join(realpathSync(dirname(host.paths.config)), basename(host.paths.config)),
  });
  const models = new Set(modelsOf(session).map((model) => model.name));
  const agentModels = new Map(session.agents.map((agent) => [agent.name, agent.model]));
  const nextMessageId = messageIds(clock.nowMs, Math.random);
  let mapper: EventMapper | undefined;
  let active: Active | undefined;

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
      if (active !== undefined) active.watch = watchEffect(active.watch, effect);
    }
    active?.changed();
  };

  /** What happened while nobody listened: messages of the running turn, requests, and whether it is over. */
  const reread = async (
    client: OpencodeClient,
    sessionId: string,
    map: EventMapper,
    lost: AbortSignal,
  ): Promise<void> => {
    const turn = active;
    if (turn === undefined) return;
    const stored = await client.messages(sessionId, REREAD_MESSAGES);
    const own = stored.findIndex((message) => message.info['id'] === turn.watch.messageId);
    for (const message of own === -1 ? [] : stored.slice(own)) apply(client, map.mapStored(message), lost);
    for (const kind of ['permission', 'question'] as const) {
      for (const properties of await client.openRequests(kind)) {
        apply(client, map.map({ type: `${kind}.asked`, properties }), lost);
      }
    }
    const busy = (await client.busySessions(times.probeTimeoutMs)).has(sessionId);
    if (own !== -1) apply(client, busy ? [{ kind: 'busy' }] : [{ kind: 'busy' }, { kind: 'idle' }], lost);
  };

  /** Reads the event stream as long as the process lives; after a gap it reads again what it missed. */
  const listen = async (
    client: OpencodeClient,
    sessionId: string,
    map: EventMapper,
    lost: AbortSignal,
  ): Promise<void> => {
    for (let connection = 0; !lost.aborted; connection += 1) {
      try {
        const frames = await client.events(lost);
        if (connection === 0) opened.resolve();
        else await reread(client, sessionId, map, lost);
        for await (const frame of frames) apply(client, map.map(frame), lost);
      } catch (error) {
        if (lost.aborted) return;
        log.warn('the event stream of the harness broke', { err: error });
      }
      await sleep(clock, RECONNECT_PAUSE_MS, lost);
    }
  };
  let opened = Promise.withResolvers<void>();

  const openSession = async (client: OpencodeClient, lost: AbortSignal): Promise<string> => {
    const known = await readSessionId(host);
    const resumed = known !== undefined && (await client.hasSession(known));
    const sessionId = resumed ? known : await client.createSession(session.title);
    if (!resumed) await writeSessionId(host, sessionId);
    const map = createEventMapper(sessionId);
    for (const child of resumed ? await client.children(sessionId) : []) map.addChild(child.id);
    mapper = map;
    opened = Promise.withResolvers();
    const gone = new Promise<never>((_resolve, reject) => {
      lost.addEventListener('abort', () => reject(new UnavailableError('harness_failed', 'opencode exited')), {
        once: true,
      });
    });
    gone.catch(() => {});
    void listen(client, sessionId, map, lost);
    await Promise.race([opened.promise, gone]);
    return sessionId;
  };

  mkdirSync(host.paths.data, { recursive: true });
  const supervisor = supervise({
    start: (signal) => {
      writeConfig(host.paths.config, config.files);
      return startOpencode(
        {
          program: settings.program ?? 'opencode',
          paths: host.paths,
          configContent: config.content,
          token: host.relay.token,
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
      agentsMd: host.rules,
    };
    return { version: server?.version ?? null, state, error, sessionId: server?.sessionId ?? null, details };
  };

  /** The agent that a prompt runs on: a known primary one, else the session's. Source: A104. */
  const agentOf = (server: Server, wanted: string | null): string | undefined => {
    if (wanted !== null && server.primaryAgents.has(wanted)) return wanted;
    if (wanted !== null) log.warn('a prompt names an agent that cannot run it', { agent: wanted });
    const own = session.agent;
    return own !== null && server.primaryAgents.has(own) ? own : undefined;
  };

  const modelOf = (turn: Turn, agent: string | undefined): string | undefined => {
    if (turn.model !== null) return models.has(turn.model) ? turn.model : undefined;
    const own = turn.agent !== null && agent === turn.agent ? agentModels.get(agent) : undefined;
    return own !== undefined && models.has(own) ? own : session.model?.name;
  };

  /** Looks at a turn from time to time: a server that does not answer is ended, a missed end is found. */
  const guardTurn = async (server: Server, over: AbortSignal): Promise<void> => {
    let missed = 0;
    let idle = 0;
    while (await sleep(clock, times.probeIntervalMs, over)) {
      try {
        const busy = (await server.client.busySessions(times.probeTimeoutMs)).has(server.sessionId);
        missed = 0;
        idle = busy ? 0 : idle + 1;
        if (idle >= 2 && mapper !== undefined && !over.aborted) {
          await reread(server.client, server.sessionId, mapper, server.lost);
        }
      } catch (error) {
        if (over.aborted) return;
        missed += 1;
        log.warn('the harness did not answer a probe', { missed, err: error });
        if (missed >= MISSED_PROBES) {
          log.error('the harness hangs and is ended');
          await server.process.end(0);
          return;
        }
      }
    }
  };

  /** Resolves when the watch says "over" (true) or the process is gone (false). */
  const waitForEnd = (turn: Active, lost: AbortSignal): Promise<boolean> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (turn.watch.phase === 'over') finish(true);
      };
      const onLost = (): void => finish(false);
      const finish = (done: boolean): void => {
        lost.removeEventListener('abort', onLost);
        turn.changed = () => {};
        resolve(done);
      };
      turn.changed = look;
      if (lost.aborted) finish(false);
      else lost.addEventListener('abort', onLost, { once: true });
      look();
    });

  /** Lets the last parts of a turn arrive that was aborted or failed. */
  const settle = async (server: Server, turn: Active): Promise<void> => {
    const begin = clock.monotonicMs();
    const isOpen = (): boolean => !turn.watch.settled || (mapper?.openCalls() ?? 0) > 0;
    while (isOpen() && clock.monotonicMs() - begin < SETTLE_LIMIT_MS) await sleep(clock, 20, server.lost);
  };

  /** Whether the server itself says that the session rests; an "idle" may be the late one of an aborted run. */
  const isIdle = async (server: Server): Promise<boolean> => {
    try {
      return !(await server.client.busySessions(times.probeTimeoutMs)).has(server.sessionId);
    } catch (error) {
      log.warn('the harness did not say whether it works', { err: error });
      return true;
    }
  };

  const abort = async (server: Server, over: AbortSignal): Promise<void> => {
    try {
      await server.client.abort(server.sessionId);
    } catch (error) {
      log.warn('the harness did not take the abort', { err: error });
    }
    if (await sleep(clock, times.abortLimitMs, over)) {
      log.error('the harness does not end its turn and is ended');
      await server.process.end(0);
    }
  };

  const died: TurnEnd = { kind: 'failed', code: 'harness_died', message: 'the harness ended while the turn ran' };

  const follow = async (
    server: Server,
    turn: Active,
    send: () => Promise<void>,
    signal: AbortSignal,
  ): Promise<TurnEnd> => {
    const over = new AbortController();
    const onAbort = (): void => {
      void abort(server, over.signal);
    };
    try {
      const ending = waitForEnd(turn, server.lost);
      await send();
      if (signal.aborted) onAbort();
      else signal.addEventListener('abort', onAbort, { once: true });
      void guardTurn(server, over.signal);
      let isOver = await ending;
      while (isOver && !(await isIdle(server))) {
        turn.watch = watchOn(turn.watch);
        isOver = await waitForEnd(turn, server.lost);
      }
      if (!isOver) return signal.aborted ? { kind: 'aborted' } : died;
      await settle(server, turn);
      return turnEndOf(turn.watch);
    } finally {
      over.abort();
      signal.removeEventListener('abort', onAbort);
    }
  };

  const submit = async (turn: Turn, signal: AbortSignal): Promise<TurnEnd> => {
    const server = supervisor.server();
    if (server === undefined) return { ...died, message: 'the harness is not running' };
    if (signal.aborted) return { kind: 'aborted' };
    const agent = agentOf(server, turn.agent ?? session.agent);
    const model = modelOf(turn, agent);
    if (model === undefined) {
      const name = turn.model ?? session.model?.name;
      const message =
        name === undefined ? 'no model is set for this session' : `the model ${name} is not available here`;
      return { kind: 'failed', code: 'unknown_model', message };
    }
    const messageId = nextMessageId();
    const own: Active = { watch: watchTurn(messageId), changed: () => {} };
    active = own;
    try {
      const texts = turn.parts.flatMap((part) => (part.type === 'text' ? [part.text] : []));
      return await follow(
        server,
        own,
        () => server.client.prompt(server.sessionId, { messageId, agent, model, texts }),
        signal,
      );
    } catch (error) {
      if (server.lost.aborted) return died;
      log.error('the harness did not take the prompt', { turnId: turn.turnId, err: error });
      await server.process.end(0);
      return { ...died, message: 'the harness did not take the prompt and was restarted' };
    } finally {
      active = undefined;
    }
  };

  const ready = (): Server => {
    const server = supervisor.server();
    if (server === undefined) throw new UnavailableError('runtime_not_ready', 'the harness is not ready');
    return server;
  };

  return {
    health,
    submit,
    stop: (deadlineMs) => supervisor.stop(deadlineMs),
    optional: {
      children: async () => {
        const { client, sessionId } = ready();
        return (await client.children(sessionId)).map((child) => ({ threadId: child.id, title: child.title }));
      },
      todo: async () => {
        const { client, sessionId } = ready();
        return client.todo(sessionId);
      },
      compact: async (signal) => {
        const { client, sessionId } = ready();
        const model = session.model?.name;
        if (model === undefined) throw new UnavailableError('harness_failed', 'no model is set for this session');
        await client.compact(sessionId, model, signal);
      },
    },
  };
};

/** The standard harness. */
export const opencodeAdapter: Adapter = { id: 'opencode', start: (host) => startHarness(host) };
