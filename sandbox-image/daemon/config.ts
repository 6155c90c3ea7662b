// The daemon's environment: the only place that reads it. It holds no secret, only where the token file is.
// Must not know what the values are used for. Source: 10-kubernetes §7.
import { z } from 'zod';
import { type Environment, readEnvironment } from '#base/env.ts';
import { LOG_LEVELS } from '#base/log.ts';

const absolutePath = z.string().regex(/^\//, 'must be an absolute path');

/** The names that the daemon reads. Every other `BEEUNI_` name is an error. */
export const daemonEnvironment = z.object({
  BEEUNI_CONTROL_PLANE_URL: z.url({ protocol: /^https?$/ }).describe('sandbox listener of the control plane'),
  BEEUNI_TOKEN_FILE: absolutePath
    .default('/var/run/secrets/beeuni.dev/token/token')
    .describe('file of the pod-bound token; read anew for each claim'),
  BEEUNI_PORT: z.coerce.number().int().min(0).max(65_535).default(8000).describe('port of the daemon'),
  BEEUNI_HARNESS: z.string().max(64).optional().describe('harness chosen by the operator; absent in a warm pod'),
  BEEUNI_NAMESPACE: z.string().max(63).optional().describe('namespace of the pod'),
  BEEUNI_POD_NAME: z.string().max(253).optional().describe('name of the pod'),
  BEEUNI_POD_UID: z.string().max(64).optional().describe('uid of the pod'),
  BEEUNI_NODE_NAME: z.string().max(253).optional().describe('node of the pod'),
  BEEUNI_MEMORY_LIMIT_BYTES: z.coerce.number().int().min(0).optional().describe('memory limit of the container'),
  BEEUNI_WORKSPACE_DIR: absolutePath.default('/workspace').describe('the checkout and nothing else'),
  BEEUNI_DATA_DIR: absolutePath.default('/var/lib/beeunid').describe('harness data and event spool, kept over suspend'),
  BEEUNI_CONFIG_DIR: absolutePath
    .default('/opt/beeuni/config')
    .describe('harness configuration, written at each start'),
  BEEUNI_DRAIN_SECONDS: z.coerce.number().int().min(0).max(3_600).default(60).describe('time of a turn after SIGTERM'),
  BEEUNI_ISOLATION_PROBE: z
    .enum(['report', 'require', 'off'])
    .default('report')
    .describe('what an open network means: a report, or no harness'),
  BEEUNI_LOG_LEVEL: z.enum(LOG_LEVELS).default('info').describe('smallest level that is logged'),
  HOME: absolutePath.default('/home/beeuni').describe('home of harness and tools'),
  TMPDIR: absolutePath.default('/tmp').describe('temporary files'),
  PATH: z.string().default('/usr/local/bin:/usr/bin:/bin').describe('search path of harness and tools'),
  KUBERNETES_SERVICE_HOST: z.string().optional().describe('what the isolation probe tries to reach'),
  KUBERNETES_SERVICE_PORT: z.coerce.number().int().min(1).max(65_535).default(443).describe('its port'),
});

/** What the daemon was started with. */
export type DaemonConfig = Readonly<{
  controlPlaneUrl: string;
  tokenFile: string;
  port: number;
  /** The harness that the operator chose; undefined in a warm pod. */
  harness: string | undefined;
  pod: Readonly<{
    namespace: string | undefined;
    name: string | undefined;
    uid: string | undefined;
    node: string | undefined;
  }>;
  workspaceDir: string;
  dataDir: string;
  configDir: string;
  homeDir: string;
  temporaryDir: string;
  searchPath: string;
  drainMs: number;
  isolationProbe: 'report' | 'require' | 'off';
  /** The API server, which must not be reachable; undefined outside of a cluster. */
  probeTarget: Readonly<{ host: string; port: number }> | undefined;
  logLevel: (typeof LOG_LEVELS)[number];
}>;

/** The parsed environment. Throws InvalidError `invalid_configuration` that lists every problem. */
export const parseConfig = (environment: Environment): DaemonConfig => {
  const env = readEnvironment(daemonEnvironment, environment);
  const host = env.KUBERNETES_SERVICE_HOST;
  return {
    controlPlaneUrl: env.BEEUNI_CONTROL_PLANE_URL.replace(/\/+$/, ''),
    tokenFile: env.BEEUNI_TOKEN_FILE,
    port: env.BEEUNI_PORT,
    harness: env.BEEUNI_HARNESS,
    pod: {
      namespace: env.BEEUNI_NAMESPACE,
      name: env.BEEUNI_POD_NAME,
      uid: env.BEEUNI_POD_UID,
      node: env.BEEUNI_NODE_NAME,
    },
    workspaceDir: env.BEEUNI_WORKSPACE_DIR,
    dataDir: env.BEEUNI_DATA_DIR,
    configDir: env.BEEUNI_CONFIG_DIR,
    homeDir: env.HOME,
    temporaryDir: env.TMPDIR,
    searchPath: env.PATH,
    drainMs: env.BEEUNI_DRAIN_SECONDS * 1_000,
    isolationProbe: env.BEEUNI_ISOLATION_PROBE,
    probeTarget: host === undefined ? undefined : { host, port: env.KUBERNETES_SERVICE_PORT },
    logLevel: env.BEEUNI_LOG_LEVEL,
  };
};

/** The process's own environment, parsed. */
export const readConfig = (): DaemonConfig => parseConfig(process.env);
