#!/usr/bin/env node
// beeunid, the daemon of a sandbox: listens, claims its session, serves it, and ends with a cause that others can read.
// The only file of the daemon that makes a logger, a clock, a server or a client, and the only one that ends the process.
import { randomBytes } from 'node:crypto';
import { systemClock } from '#base/clock.ts';
import { errorChain, UnavailableError } from '#base/errors.ts';
import { listen } from '#base/http/listen.ts';
import { createLogger } from '#base/log.ts';
import type { ClaimAnswer } from '#schema/wire/claim.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { type DaemonConfig, readConfig } from './config.ts';
import { ADAPTER_IDS, findAdapter } from './harness/resolver.ts';
import { findMountProblems, mountProblemText } from './host/boot/data-mounts.ts';
import { beginProbe, PROBE_LIMIT_MS, type Probe, probeIsolation, tryTcp } from './host/boot/isolation-probe.ts';
import { waitForNetwork } from './host/boot/open-network.ts';
import { claimSession, endOfRefusedClaim } from './host/claim.ts';
import { makeClaim, makeSessionCalls } from './host/control-plane.ts';
import { createDaemonState } from './host/daemon-state.ts';
import { healthDocumentOf } from './host/health/health-document.ts';
import { createDaemonServer } from './host/http/daemon-server.ts';
import type { Workspace } from './host/http/workspace-routes.ts';
import { createLogRing } from './host/logs.ts';
import { collectWhenIdle } from './host/process/collect-when-idle.ts';
import { type EndCause, EXIT_CODE, TERMINATION_FILE, writeTermination } from './host/process/termination.ts';
import { startWatchdog } from './host/process/watchdog.ts';
import { createRedactor } from './host/redact.ts';
import { startRelay } from './host/relay/relay.ts';
import type { SessionHost } from './host/session-host.ts';

const readConfigOrEnd = (): DaemonConfig => {
  try {
    return readConfig();
  } catch (error) {
    const message = error instanceof Error ? error.message : 'the environment is wrong';
    process.stderr.write(`${message}\n`);
    writeTermination(TERMINATION_FILE, 'invalid_configuration', message);
    return process.exit(EXIT_CODE.invalid_configuration);
  }
};

// Output that nobody reads any more is dropped: to report it would be to write again, for ever.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
const config = readConfigOrEnd();
const clock = systemClock;
const redactor = createRedactor();
const ring = createLogRing(redactor.redact);
const log = createLogger({
  level: config.logLevel,
  base: { process: 'beeunid' },
  write: (line) => {
    process.stdout.write(line);
    ring.add('daemon', line.trimEnd());
  },
});
const randomName = (): string => randomBytes(8).toString('hex');
const state = createDaemonState({
  daemonVersion: packageJson.version,
  harnessId: config.harness ?? 'unknown',
  uptimeMs: () => performance.now(),
  nowMs: clock.nowMs,
});

const ended = Promise.withResolvers<Readonly<{ cause: EndCause; message: string }>>();
const end = (cause: EndCause, message: string): void => ended.resolve({ cause, message });
let claimed: ClaimAnswer | undefined;
let session: SessionHost | undefined;
let isStuck = false;
let workspace: Workspace | undefined;

// Listen before anything else: the startup probe asks at once.
const server = createDaemonServer({
  credential: () => claimed?.daemonCredential,
  health: (turn) => healthDocumentOf(state.facts(turn && (session?.standing(turn.messageId) ?? null))),
  nudge: () => session?.nudge(),
  abort: (turnId) => session?.abort(turnId),
  drain: (turn, deadlineMs) => session?.drain(turn === 'abort' ? 0 : deadlineMs, 'asked') ?? true,
  replaceEnvironment: (revision, environment) => session?.replaceEnvironment(revision, environment) ?? 0,
  logs: ring.tail,
  session: () => session,
  bootPhase: () => state.facts().timeline.at(-1)?.stage ?? 'starting',
  workspace: () => (state.read().checkout === null ? undefined : workspace),
  log,
});
const listening = await listen(server, { port: config.port });
state.reach('listening');
log.info('listening', { port: listening.port, version: packageJson.version });
// Without a line there the kubelet would put the log's tail into the pod's status. Source: D4.
writeTermination(TERMINATION_FILE, 'killed', 'a signal or the memory limit ended it; it left no other word');
const stopWatchdog = startWatchdog({ terminationFile: TERMINATION_FILE, log });

const asked = new AbortController();
const onSignal = (name: string): void => {
  log.info('signal received', { signal: name });
  asked.abort();
  end('drained', `ended by ${name}`);
};
process.on('SIGTERM', onSignal);
process.on('SIGINT', onSignal);
process.on('uncaughtException', (error) => {
  log.error('an error was not caught', { err: error });
  end('fault', error.message);
});
process.on('unhandledRejection', (reason) => {
  log.error('a rejection was not handled', { chain: errorChain(reason), err: reason });
  end('fault', errorChain(reason));
});

const isolationProbe = (): Probe | undefined => {
  const { probeTarget: target, isolationProbe: mode } = config;
  if (target === undefined || mode === 'off') return undefined;
  const ports = { tryConnect: tryTcp(target.host, target.port), clock };
  return beginProbe(() => probeIsolation(ports, PROBE_LIMIT_MS[mode], asked.signal));
};
const probe = isolationProbe();

/** What serves a session. A module is loaded once, however often it is asked for. */
const loadParts = (harness: string) =>
  Promise.all([import('./host/session-host.ts'), import('./host/workspace.ts'), findAdapter(harness)]);
/** Loading holds this process up, so the claim has this time to leave first; then both go on together. Units: milliseconds. */
const CLAIM_HEAD_START_MS = 20;

const relayToken = randomBytes(32).toString('base64url');
const relay = await startRelay({
  token: relayToken,
  currentTurnId: () => session?.currentTurnId() ?? null,
  commandEnvironment: () => session?.commandEnvironment() ?? {},
  log,
});

/** The session of this pod, or undefined when there will be none; then `end` was called. */
const findSession = async (): Promise<ClaimAnswer | undefined> => {
  if (config.harness !== undefined && !ADAPTER_IDS.includes(config.harness)) {
    end('harness_not_available', `this image has no adapter for the harness ${config.harness}`);
    return undefined;
  }
  const [problem] = findMountProblems([
    config.workspaceDir,
    config.dataDir,
    config.configDir,
    config.homeDir,
    config.temporaryDir,
  ]);
  if (problem !== undefined) {
    end('data_mount', mountProblemText(problem));
    return undefined;
  }
  await waitForNetwork(config.controlPlaneUrl, clock, asked.signal);
  const claim = makeClaim({ baseUrl: config.controlPlaneUrl, tokenFile: config.tokenFile });
  const request = { daemonVersion: packageJson.version, adapters: [...ADAPTER_IDS], harness: config.harness };
  try {
    const answer = await claimSession({ claim, clock, random: Math.random, log }, request, asked.signal);
    if (config.harness === undefined || answer.harness === config.harness) return answer;
    end('harness_mismatch', `the pod was made for ${config.harness}, the claim says ${answer.harness}`);
  } catch (error) {
    if (asked.signal.aborted) return undefined;
    end(endOfRefusedClaim(error), error instanceof Error ? error.message : 'the claim failed');
  }
  return undefined;
};

const boot = async (): Promise<void> => {
  // What is wrong with the parts is heard below, where they are needed.
  const early = (): void => void loadParts(config.harness ?? '').catch(() => {});
  const cancel = clock.startTimer(CLAIM_HEAD_START_MS, early);
  claimed = await findSession();
  cancel();
  if (claimed === undefined) return;
  const { session: owner, generation } = claimed;
  const sessionLog = log.child({ session: owner.name, namespace: owner.namespace, generation });
  sessionLog.info('claimed', { harness: claimed.harness, branch: claimed.branch });
  const [{ serveSession }, { makeWorkspace }, adapter] = await loadParts(claimed.harness);
  workspace = makeWorkspace({
    config,
    baseCommit: claimed.baseCommit,
    commandEnvironment: () => session?.commandEnvironment() ?? {},
    harnessClient: async (signal) => {
      if (session !== undefined) return session.verbs.client(signal);
      throw new UnavailableError('runtime_not_ready', 'the harness is still starting');
    },
    randomName,
    clock,
  });
  session = serveSession({
    config,
    claim: claimed,
    calls: makeSessionCalls({ baseUrl: config.controlPlaneUrl, tokenFile: config.tokenFile }, claimed.credential),
    adapter,
    probe,
    relay,
    relayToken,
    state,
    ring,
    redactor,
    marker: { name: 'BEEUNI_RUN', value: randomName() },
    randomName,
    onStuck: (reason) => {
      isStuck = true;
      end('fault', reason);
    },
    onRefused: (reason) =>
      reason === 'superseded'
        ? end('superseded', 'a newer daemon serves this session')
        : end('credential_refused', 'the control plane refused the credential of this session'),
    clock,
    random: Math.random,
    log: sessionLog,
  });
  const { gc } = globalThis;
  if (gc === undefined) return;
  collectWhenIdle({
    pause: () => {
      const { harness, turnId, sinceMs } = state.read();
      return harness === null || turnId !== null ? undefined : sinceMs;
    },
    collect: () => gc({ type: 'major', flavor: 'last-resort' }),
    clock,
  });
};
boot().catch((error: unknown) => {
  log.error('the boot broke', { err: error });
  end('fault', 'the boot broke');
});

const { cause, message } = await ended.promise;
log.info('the daemon ends', { cause, reason: message });
writeTermination(TERMINATION_FILE, cause, message);
try {
  // A thread in a system call keeps even the exit of its process waiting.
  if (isStuck) {
    await session?.lastWords();
    process.kill(process.pid, 'SIGKILL');
  }
  if (cause === 'drained') await session?.shutDown(config.drainMs, message);
  else await session?.abandon();
} catch (error) {
  log.error('the end was not clean', { err: error });
}
workspace?.terminals.endAll();
relay.stop();
await listening.stop(500);
stopWatchdog();
process.exit(EXIT_CODE[cause]);
