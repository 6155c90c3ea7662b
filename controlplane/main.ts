// The control plane's process: reads its settings, makes what every part needs, starts the parts in order and stops them
// in reverse. The only file that wires. Must not decide anything.
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { systemClock } from '#base/clock.ts';
import { redactSettings } from '#base/env.ts';
import { BeeuniError, errorChain } from '#base/errors.ts';
import { type Listening, listen } from '#base/http/listen.ts';
import type { HttpServer } from '#base/http/server.ts';
import { type Part, processSignals, runParts } from '#base/lifecycle.ts';
import { createLogger, type Logger } from '#base/log.ts';
import { createMetrics } from '#base/metrics.ts';
import { onAbort } from '#base/on-abort.ts';
import { type KubeClient, makeKubeClient } from '#kube/client.ts';
import { openConnection } from '#kube/connection.ts';
import { METRICS } from '#schema/metrics.ts';
import { type ControlPlaneConfig, readConfig } from './config.ts';
import type { Readiness } from './http/system.ts';
import { makeResources, type Resources } from './kubernetes/resources.ts';
import { buildMetricsServer, type ServerBasics } from './server.ts';
import { createEmbeddedPostgres, type EmbeddedPostgres } from './store/embedded.ts';
import { migrateWhenReachable } from './store/migrate-when-reachable.ts';
import { createPool, POOL_DEFAULTS, type Pool } from './store/pool.ts';
import { makeSeal } from './store/seal.ts';
import { wireControlPlane } from './wiring/control-plane.ts';

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string;
};
/** The environment is wrong (as sysexits.h has it), or the database belongs to a newer version. */
const EXIT_CONFIGURATION = 78;
const EXIT_NEWER_DATABASE = 79;
/** Waiting for a database or an API server that is not there yet is no failure: readiness says so. Units: milliseconds. */
const PATIENT_MS = 86_400_000;
const EMBEDDED_STOP_LIMIT_MS = 30_000;
const SETTINGS_PER_RECORD = 24;
const NANOSECONDS = 1_000_000_000;

/** What exists once a part has started. */
type Started = {
  servers: readonly HttpServer[];
  listening: Listening[];
  client?: KubeClient;
  resources?: Resources;
  embedded?: EmbeddedPostgres;
  databaseUrl?: string;
  database?: Pool;
  background: Part[];
  readiness: () => Readiness;
  report: () => void;
};

const need = <T>(value: T | undefined, what: string): T => {
  if (value === undefined) throw new Error(`${what} was used before it was started`);
  return value;
};

const partsOf = (config: ControlPlaneConfig, log: Logger): readonly Part[] => {
  const { settings } = config;
  const clock = systemClock;
  const random = Math.random;
  const { instruments, page } = createMetrics(METRICS);
  const started: Started = {
    servers: [],
    listening: [],
    background: [],
    readiness: () => ({ ready: false, waitingFor: ['start'] }),
    report: () => undefined,
  };
  const graceMs = settings.BEEUNI_SHUTDOWN_GRACE_SECONDS * 1_000;
  const basics: ServerBasics = {
    log,
    clock,
    observe: ({ listener, operation, method, status, durationMs }) => {
      instruments.httpRequestsTotal.inc({ listener, route: operation, method, code: String(status) });
      instruments.httpRequestDurationSeconds.observe({ listener, route: operation, method }, durationMs / 1_000);
    },
  };
  const open = async (server: HttpServer, port: number): Promise<Listening> => {
    const listening = await listen(server, { port, host: settings.BEEUNI_LISTEN_HOST });
    log.info('listening', { listener: server.listener, port: listening.port });
    return listening;
  };
  const stopping = new AbortController();
  const delay = monitorEventLoopDelay();
  delay.enable();
  page.onScrape(() => {
    instruments.eventloopLagSeconds.set({}, delay.percentile(99) / NANOSECONDS);
    delay.reset();
    for (const server of started.servers) {
      instruments.httpInFlight.set({ listener: server.listener }, server.inFlight());
      instruments.unauthenticatedConnections.set({ listener: server.listener }, server.budget.waiting());
    }
    started.resources?.report();
    started.report();
    const usage = started.database?.usage();
    if (usage === undefined) return;
    for (const state of ['active', 'idle', 'waiting'] as const)
      instruments.dbPoolConnections.set({ state }, usage[state]);
  });
  instruments.buildInfo.set({ version, commit: 'unknown' }, 1);

  let metricsPort: Listening | undefined;
  return [
    {
      name: 'probes and metrics',
      start: async () => {
        const server = buildMetricsServer(basics, {
          readiness: () => started.readiness(),
          metricsPage: page,
        });
        metricsPort = await open(server, settings.BEEUNI_METRICS_PORT);
      },
      stop: () => metricsPort?.stop(0),
    },
    {
      name: 'kubernetes client',
      start: async () => {
        const connection = await openConnection({ kubeconfigPath: settings.BEEUNI_KUBECONFIG });
        const userAgent = `beeuni-control-plane/${version}`;
        started.client = makeKubeClient({ connection, clock, random, metrics: instruments, userAgent });
        started.resources = makeResources({
          client: started.client,
          clock,
          random,
          log,
          metrics: instruments,
          namespaces: settings.BEEUNI_WATCH_NAMESPACES,
        });
        // The caches fill while the database starts.
        started.resources.start();
      },
      stop: async () => {
        await started.resources?.stop();
        await started.client?.close();
      },
    },
    {
      name: 'database',
      startLimitMs: PATIENT_MS,
      stopLimitMs: EMBEDDED_STOP_LIMIT_MS,
      start: async (signal) => {
        if (config.database.kind === 'embedded') {
          const { directory } = config.database;
          started.embedded = createEmbeddedPostgres({
            directory,
            log: (line) => log.debug('postgres', { line }),
            clock,
          });
          started.databaseUrl = await started.embedded.start();
        } else {
          started.databaseUrl = config.database.url;
        }
        const applied = await migrateWhenReachable(started.databaseUrl, { clock, random, log, signal });
        log.info('database ready', { migrations: applied });
        started.database = createPool({
          ...POOL_DEFAULTS,
          databaseUrl: started.databaseUrl,
          size: settings.BEEUNI_DATABASE_POOL_SIZE,
          applicationName: 'beeuni-control-plane',
          onIdleError: (error) => log.warn('an idle database connection broke', { chain: errorChain(error) }),
        });
      },
      stop: async () => {
        await started.database?.close();
        await started.embedded?.stop();
      },
    },
    {
      name: 'caches',
      startLimitMs: PATIENT_MS,
      start: async (signal) => {
        const aborted = new Promise<boolean>((resolve) => onAbort(signal, () => resolve(false)));
        await Promise.race([need(started.resources, 'the caches').whenSynced(), aborted]);
      },
    },
    {
      name: 'services',
      stopLimitMs: graceMs + 10_000,
      start: async () => {
        const { seal, unseal } = makeSeal(config.sealKeys, randomBytes);
        const wired = await wireControlPlane({
          config,
          version,
          clock,
          random,
          randomBytes,
          log,
          instruments,
          client: need(started.client, 'the client'),
          resources: need(started.resources, 'the caches'),
          databaseUrl: need(started.databaseUrl, 'the database'),
          database: need(started.database, 'the database'),
          seal,
          unseal,
          observe: basics.observe,
          stopping: stopping.signal,
        });
        started.servers = Object.values(wired.servers);
        for (const part of wired.background) {
          started.background.push(part);
          await part.start(AbortSignal.timeout(60_000));
        }
        const { servers } = wired;
        started.listening.push(await open(servers.public, settings.BEEUNI_PUBLIC_PORT));
        started.listening.push(await open(servers.sandbox, settings.BEEUNI_SANDBOX_PORT));
        started.listening.push(await open(servers.internal, settings.BEEUNI_INTERNAL_PORT));
        // A database or API server that goes away later impairs, and does not take the gateway from running sessions.
        started.readiness = () => ({ ready: true, waitingFor: wired.impaired() });
        started.report = wired.report;
      },
      stop: async () => {
        started.readiness = () => ({ ready: false, waitingFor: ['stop'] });
        stopping.abort();
        await Promise.all(started.listening.map((listening) => listening.stop(graceMs)));
        for (const part of started.background.reverse()) await part.stop?.();
      },
    },
  ];
};

const main = async (): Promise<number> => {
  let config: ControlPlaneConfig;
  try {
    config = readConfig();
  } catch (error) {
    if (!(error instanceof BeeuniError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return EXIT_CONFIGURATION;
  }
  const log = createLogger({ level: config.settings.BEEUNI_LOG_LEVEL, base: { process: 'control-plane', version } });
  // A record keeps a bounded number of fields, so the settings take several.
  const settings = Object.entries(redactSettings(config.settings));
  for (let at = 0; at < settings.length; at += SETTINGS_PER_RECORD) {
    log.info('settings', Object.fromEntries(settings.slice(at, at + SETTINGS_PER_RECORD)));
  }
  let isNewer = false;
  const code = await runParts({ clock: systemClock, log, onSignal: processSignals }, () =>
    partsOf(config, log).map((part) => ({
      ...part,
      start: async (signal) => {
        try {
          await part.start(signal);
        } catch (error) {
          isNewer ||= error instanceof BeeuniError && error.code === 'newer_database';
          throw error;
        }
      },
    })),
  );
  return isNewer ? EXIT_NEWER_DATABASE : code;
};

process.exitCode = await main();
