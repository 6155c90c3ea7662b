// The operator's process: reads its settings, wires the operator, and runs it until a signal or a lost lease.
// The only file here that makes a client, a clock, a logger or a listener. Source: 10-kubernetes §11.
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { systemClock } from '#base/clock.ts';
import { redactSettings } from '#base/env.ts';
import { errorChain } from '#base/errors.ts';
import { type Listening, listen } from '#base/http/listen.ts';
import { createHttpServer } from '#base/http/server.ts';
import { processSignals, runParts } from '#base/lifecycle.ts';
import { createLogger, type Logger } from '#base/log.ts';
import { createMetrics, type MetricsPage } from '#base/metrics.ts';
import { makeKubeClient } from '#kube/client.ts';
import { openConnection } from '#kube/connection.ts';
import { METRICS } from '#schema/metrics.ts';
import { readConfig } from './config.ts';
import { makeInternalApi } from './internal-api.ts';
import { makeOperator, type Operator } from './operator.ts';

const NANOSECONDS = 1_000_000_000;

const readVersion = (): string => {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  return version;
};

/** The probes and the metrics page. Liveness asks for nothing outside. Source: K34. */
const metricsServer = (log: Logger, page: MetricsPage, operator: () => Operator | undefined) => {
  const server = createHttpServer({ listener: 'metrics', log });
  server.app.get('/healthz', { config: { operation: 'getHealthz' } }, async () => ({ status: 'ok' }));
  server.app.get('/readyz', { config: { operation: 'getReadyz' } }, async (_request, reply) => {
    const waitingFor = operator()?.waitingFor() ?? ['start'];
    return reply.code(waitingFor.length === 0 ? 200 : 503).send({ ready: waitingFor.length === 0, waitingFor });
  });
  server.app.get('/metrics', { config: { operation: 'getMetrics' } }, async (_request, reply) =>
    reply.type(page.contentType).send(await page.render()),
  );
  return server;
};

const main = async (): Promise<number> => {
  const { settings, installation } = readConfig();
  const version = readVersion();
  const clock = systemClock;
  const identity = `${settings.BEEUNI_POD_NAME ?? hostname()}_${randomUUID().slice(0, 8)}`;
  const log = createLogger({ level: settings.BEEUNI_LOG_LEVEL, base: { program: 'operator' } });
  log.info('starting', { version, identity, settings: redactSettings(settings) });
  const metrics = createMetrics(METRICS);
  const delay = monitorEventLoopDelay();
  delay.enable();
  metrics.instruments.buildInfo.set({ version, commit: 'unknown' }, 1);
  metrics.page.onScrape(() => {
    metrics.instruments.eventloopLagSeconds.set({}, delay.percentile(99) / NANOSECONDS);
    delay.reset();
  });

  const connection = await openConnection();
  const client = makeKubeClient({
    connection,
    clock,
    random: Math.random,
    metrics: metrics.instruments,
    userAgent: `beeuni-operator/${version}`,
  });
  const tokenFile = settings.BEEUNI_CONTROL_PLANE_TOKEN_FILE;
  const api = makeInternalApi({
    baseUrl: settings.BEEUNI_CONTROL_PLANE_URL,
    token: async () => (await readFile(tokenFile, 'utf8')).trim(),
  });

  let operator: Operator | undefined;
  let listening: Listening | undefined;
  return runParts({ clock, log, onSignal: processSignals }, (fail) => {
    operator = makeOperator({
      client,
      api,
      clock,
      random: Math.random,
      log,
      metrics,
      installation,
      version,
      namespaces: settings.BEEUNI_WATCH_NAMESPACES,
      concurrency: settings.BEEUNI_CONCURRENCY,
      lease: { namespace: settings.BEEUNI_NAMESPACE, name: settings.BEEUNI_LEASE_NAME, identity },
      onLost: () => fail('the lease was lost'),
    });
    return [
      { name: 'connection', start: () => {}, stop: () => client.close() },
      {
        name: 'metrics',
        start: async () => {
          const server = metricsServer(log, metrics.page, () => operator);
          const address = { host: settings.BEEUNI_LISTEN_HOST, port: settings.BEEUNI_METRICS_PORT };
          listening = await listen(server, address);
          log.info('listening', { port: listening.port });
        },
        stop: async () => listening?.stop(1_000),
      },
      ...operator.parts,
    ];
  });
};

try {
  process.exit(await main());
} catch (error) {
  process.stderr.write(`${errorChain(error)}\n`);
  process.exit(2);
}
