// The settings of the control plane's process: every name, its bounds and its default, read once and passed down in
// parts. The only file here that reads the environment or a secret's file.
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { type Environment, readEnvironment } from '#base/env.ts';
import { InvalidError } from '#base/errors.ts';
import { LOG_LEVELS } from '#base/log.ts';
import { FEATURE_FLAGS, type FeatureFlag } from '#schema/resources/project.ts';
import { DEFAULT_PLATFORM_FLAGS, type PlatformFlags } from '#schema/rules/effective-flags.ts';
import {
  BUDGET_KNOBS,
  ENVIRONMENT_PREFIXES,
  type Knob,
  type KnobVariable,
  PROCESS_LIMITS,
} from '#schema/settings/budgets.ts';
import { readSettingsEnvironment, type SettingsEnvironment } from './app/settings-environment.ts';
import { parseSealKeys, type SealKey } from './store/seal.ts';

const port = (fallback: number, what: string) =>
  z.coerce
    .number('must be a port number')
    .int('must be a port number')
    .min(0, 'must be a port number, 0 for any free one')
    .max(65_535, 'must be at most 65535')
    .default(fallback)
    .describe(what);

const whole = (fallback: number, least: number, most: number, what: string) =>
  z.coerce
    .number('must be a whole number')
    .int('must be a whole number')
    .min(least, `must be at least ${least}`)
    .max(most, `must be at most ${most}`)
    .default(fallback)
    .describe(what);

/** A list, separated by commas; blanks around entries do not count. */
const list = (what: string) =>
  z
    .string()
    .default('')
    .transform((text) =>
      text
        .split(',')
        .map((entry) => entry.trim())
        .filter((entry) => entry !== ''),
    )
    .describe(`${what} Separated by commas.`);

const flag = (fallback: boolean, what: string) =>
  z.stringbool('must be true or false').default(fallback).describe(what);
const path = (what: string) => z.string().startsWith('/', 'must be an absolute path').describe(what);
const LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const label = (what: string) => z.string().regex(LABEL, 'must be a lower-case DNS label').describe(what);

const features = z
  .string()
  .default('{}')
  .transform((text, context) => {
    const shape = z.partialRecord(
      z.enum(FEATURE_FLAGS),
      z.strictObject({ default: z.boolean().optional(), available: z.boolean().optional() }),
    );
    try {
      return shape.parse(JSON.parse(text));
    } catch {
      context.addIssue('must be JSON as {"llm_gateway":{"default":true,"available":true}}');
      return z.NEVER;
    }
  })
  .describe('Installation defaults of feature flags, as JSON: {"<flag>":{"default":true,"available":true}}.');

const inUnit = ({ unit, default: fallback }: Knob): string =>
  unit === 'milliseconds' ? `${fallback / 60_000}m` : `${fallback} ${unit}`;

/**
 * Budgets and limits, as text: a value that cannot be used counts as absent and is reported, never fatal.
 * Source: 40-settings B12, B43, B46.
 */
const knobVariables = Object.fromEntries(
  [...Object.values(BUDGET_KNOBS), ...Object.values(PROCESS_LIMITS)].flatMap((knob: Knob) =>
    ENVIRONMENT_PREFIXES.map((prefix, at) => [
      prefix + knob.variable,
      z
        .string()
        .optional()
        .describe(
          at === 0 ? `${knob.meaning}; ${inUnit(knob)} when absent.` : `Another name of BEEUNI_${knob.variable}.`,
        ),
    ]),
  ),
) as Record<KnobVariable, z.ZodOptional<z.ZodString>>;

/** Every name that the control plane's process knows. */
export const CONTROL_PLANE_ENVIRONMENT = z.object({
  BEEUNI_LISTEN_HOST: z.string().default('0.0.0.0').describe('Address that all listeners bind.'),
  BEEUNI_PUBLIC_PORT: port(8080, 'Port of the public API.'),
  BEEUNI_SANDBOX_PORT: port(8081, 'Port for sandboxes: claim, events, gateway, git.'),
  BEEUNI_INTERNAL_PORT: port(8082, 'Port for the operator.'),
  BEEUNI_METRICS_PORT: port(9090, 'Port of /healthz, /readyz and /metrics.'),
  DATABASE_URL: z
    .string()
    .regex(/^postgres(ql)?:\/\//, 'must begin with postgres://')
    .optional()
    .describe('Postgres to use, for development; prefer BEEUNI_DATABASE_URL_FILE.'),
  BEEUNI_DATABASE_URL_FILE: path('File that holds the URL of the Postgres to use.').optional(),
  BEEUNI_DATABASE_DIRECTORY: path('Folder of the embedded Postgres; used when no URL is given.').optional(),
  BEEUNI_DATABASE_POOL_SIZE: whole(16, 2, 500, 'Connections to Postgres at most.'),
  BEEUNI_ENCRYPTION_KEY_FILE: path(
    'File with the keys that seal what is stored: 32 random bytes in base64, one key a line, the newest first.',
  ),
  BEEUNI_KUBECONFIG: path('Kubeconfig file; without it the service account of the pod is used.').optional(),
  BEEUNI_WATCH_NAMESPACES: list('Namespaces to look at; empty means all.'),
  BEEUNI_AUDIENCE: z
    .string()
    .min(1)
    .max(253)
    .default('beeuni-control-plane')
    .describe('Audience of the tokens of sandboxes and of the operator.'),
  BEEUNI_NAMESPACE: label('Namespace that the control plane runs in.').default('beeuni'),
  BEEUNI_SERVICE_ACCOUNT: z
    .string()
    .max(253)
    .default('beeuni-control-plane')
    .describe('Service account of the control plane, for the command that grants it Secrets.'),
  BEEUNI_OPERATOR_NAMESPACE: label('Namespace of the operator; that of the control plane when absent.').optional(),
  BEEUNI_OPERATOR_SERVICE_ACCOUNT: z
    .string()
    .max(253)
    .default('beeuni-operator')
    .describe('Service account of the operator, the only caller of the internal API.'),
  BEEUNI_PROVIDER_ALLOWED_PRIVATE_HOSTS: list('Private hosts, addresses or ranges that providers may be at.'),
  BEEUNI_GIT_ALLOWED_HOSTS: list('Hosts that repositories may be on; empty means any.'),
  BEEUNI_GIT_INSECURE_HTTP_HOSTS: list('Hosts that may be reached by http without TLS.'),
  BEEUNI_GIT_MIRROR_DIRECTORY: path('Folder of the repository mirrors, a cache.').default('/var/lib/beeuni/mirrors'),
  GIT_SSL_CAINFO: path(
    'Bundle of certificate authorities that git trusts; those of the machine when absent.',
  ).optional(),
  PATH: z.string().default('/usr/local/bin:/usr/bin:/bin').describe('Where git is looked for.'),
  BEEUNI_GIT_POLL_INTERVAL_SECONDS: whole(60, 0, 86_400, 'How often a remote is looked at; 0 is off.'),
  BEEUNI_GIT_FETCH_TIMEOUT_SECONDS: whole(300, 5, 3_600, 'Longest fetch of a repository.'),
  BEEUNI_GIT_MAX_REPOSITORY_BYTES: whole(2_147_483_648, 1_048_576, 1_099_511_627_776, 'Largest mirror.'),
  BEEUNI_GIT_AUTHOR_NAME: z.string().min(1).max(128).default('Beeuni').describe('Author of commits in sandboxes.'),
  BEEUNI_GIT_AUTHOR_EMAIL: z.string().min(3).max(254).default('agent@beeuni.dev').describe('Address of that author.'),
  BEEUNI_ENV_MODEL_BASE_URL: z.string().max(1_024).optional().describe('Base URL of the model that needs no registry.'),
  BEEUNI_ENV_MODEL_ID: z.string().max(192).optional().describe('Id of that model; with it the base URL is needed.'),
  BEEUNI_ENV_MODEL_KEY_FILE: path('File with the key of that model.').optional(),
  BEEUNI_DEFAULT_MODEL: z
    .string()
    .regex(/^[a-z0-9][a-z0-9_-]*\/.+$/, 'must be provider/model')
    .max(256)
    .optional()
    .describe('Model of sessions for which no other layer names one, as provider/model.'),
  BEEUNI_EMBEDDING_MODEL: z
    .string()
    .regex(/^[a-z0-9][a-z0-9_-]*\/.+$/, 'must be provider/model')
    .max(256)
    .optional()
    .describe('Model that turns text into vectors, as provider/model.'),
  ...knobVariables,
  BEEUNI_FEATURES: features,
  BEEUNI_WEB_SEARCH_URL: z
    .url({ protocol: /^https?$/, error: 'must begin with http:// or https://' })
    .max(1_024)
    .optional()
    .describe('SearXNG instance of the tools web_search and image_search; absent: there is no search.'),
  BEEUNI_WEB_SCRAPE: flag(false, 'Whether the tool scrape_webpage may read pages of the public web.'),
  BEEUNI_WEB_ALLOWED_PRIVATE_HOSTS: list('Private hosts, addresses or ranges that scrape_webpage may read.'),
  BEEUNI_STATUS_SUMMARIES: flag(true, 'Whether the head of the last answer is shown in status.lastTurn.summary.'),
  BEEUNI_METRICS_PROJECT_LABELS: flag(false, 'Whether metrics of budgets have series for each project.'),
  BEEUNI_RATE_LIMIT_PER_SECOND: whole(50, 1, 100_000, 'Calls per second of one subject on the public API.'),
  BEEUNI_RATE_LIMIT_BURST: whole(200, 1, 1_000_000, 'Calls that one subject may make at once.'),
  BEEUNI_MODEL_CALLS_PER_SECOND: whole(20, 1, 1_000_000, 'Model calls per second of one session.'),
  BEEUNI_MODEL_CALLS_BURST: whole(100, 1, 1_000_000, 'Model calls that one session may make at once.'),
  BEEUNI_MAX_STREAMS: whole(2_000, 1, 100_000, 'Open event streams of one replica.'),
  BEEUNI_SHUTDOWN_GRACE_SECONDS: whole(20, 0, 600, 'How long calls in flight get when the process stops.'),
  BEEUNI_LOG_LEVEL: z
    .enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`)
    .default('info')
    .describe('Least level that is logged.'),
});

type Settings = z.output<typeof CONTROL_PLANE_ENVIRONMENT>;

/** Where the database is: a server of its own, or one that the process runs. */
export type DatabaseSetting =
  | Readonly<{ kind: 'url'; url: string }>
  | Readonly<{ kind: 'embedded'; directory: string }>;

/** Everything that main.ts passes down. Secrets are here and nowhere else; it is never logged. */
export type ControlPlaneConfig = Readonly<{
  settings: Settings;
  database: DatabaseSetting;
  /** The first one seals, all of them open. */
  sealKeys: readonly [SealKey, ...SealKey[]];
  flags: PlatformFlags;
  operator: Readonly<{ namespace: string; serviceAccount: string }>;
  envModel: Readonly<{ baseUrl: string; id: string; apiKey: string | undefined }> | undefined;
  /** Budgets and limits of the environment, and what of it could not be used. */
  settingsEnvironment: SettingsEnvironment;
}>;

const readSecretFile = (name: string, file: string, problems: string[]): string | undefined => {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    problems.push(`${name}: the file ${file} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'error'})`);
    return undefined;
  }
};

const databaseOf = (settings: Settings, problems: string[]): DatabaseSetting => {
  const { DATABASE_URL, BEEUNI_DATABASE_URL_FILE, BEEUNI_DATABASE_DIRECTORY } = settings;
  const given = [DATABASE_URL, BEEUNI_DATABASE_URL_FILE, BEEUNI_DATABASE_DIRECTORY].filter(
    (value) => value !== undefined,
  );
  if (given.length !== 1) {
    problems.push(
      'BEEUNI_DATABASE_URL_FILE: exactly one of BEEUNI_DATABASE_URL_FILE, BEEUNI_DATABASE_DIRECTORY and DATABASE_URL is needed',
    );
  }
  if (BEEUNI_DATABASE_URL_FILE !== undefined) {
    const url = readSecretFile('BEEUNI_DATABASE_URL_FILE', BEEUNI_DATABASE_URL_FILE, problems);
    if (url !== undefined && !/^postgres(ql)?:\/\//.test(url)) {
      problems.push('BEEUNI_DATABASE_URL_FILE: the file must hold a URL that begins with postgres://');
    }
    return { kind: 'url', url: url ?? '' };
  }
  if (DATABASE_URL !== undefined) return { kind: 'url', url: DATABASE_URL };
  return { kind: 'embedded', directory: BEEUNI_DATABASE_DIRECTORY ?? '' };
};

const sealKeysOf = (settings: Settings, problems: string[]): readonly SealKey[] => {
  const text = readSecretFile('BEEUNI_ENCRYPTION_KEY_FILE', settings.BEEUNI_ENCRYPTION_KEY_FILE, problems);
  if (text === undefined) return [];
  try {
    return parseSealKeys(text);
  } catch (error) {
    const what = error instanceof Error ? error.message : 'the key file cannot be used';
    problems.push(`BEEUNI_ENCRYPTION_KEY_FILE: ${what} (make one with: openssl rand -base64 32)`);
    return [];
  }
};

const envModelOf = (settings: Settings, problems: string[]): ControlPlaneConfig['envModel'] => {
  const { BEEUNI_ENV_MODEL_BASE_URL: baseUrl, BEEUNI_ENV_MODEL_ID: id, BEEUNI_ENV_MODEL_KEY_FILE: file } = settings;
  if ((baseUrl === undefined) !== (id === undefined)) {
    problems.push('BEEUNI_ENV_MODEL_ID: BEEUNI_ENV_MODEL_BASE_URL and BEEUNI_ENV_MODEL_ID are needed together');
  }
  if (file !== undefined && baseUrl === undefined) {
    problems.push('BEEUNI_ENV_MODEL_KEY_FILE: a key without BEEUNI_ENV_MODEL_BASE_URL has no use');
  }
  if (baseUrl === undefined || id === undefined) return undefined;
  const key = file === undefined ? undefined : readSecretFile('BEEUNI_ENV_MODEL_KEY_FILE', file, problems);
  return { baseUrl, id, apiKey: key === '' ? undefined : key };
};

const flagsOf = (settings: Settings): PlatformFlags => {
  const given = settings.BEEUNI_FEATURES;
  const one = (name: FeatureFlag) => ({
    default: given[name]?.default ?? DEFAULT_PLATFORM_FLAGS[name].default,
    available: given[name]?.available ?? DEFAULT_PLATFORM_FLAGS[name].available,
  });
  return {
    llm_gateway: one('llm_gateway'),
    pi_harness: one('pi_harness'),
    config_releases: one('config_releases'),
    warm_sessions: one('warm_sessions'),
  };
};

/**
 * The configuration of this process. Throws InvalidError `invalid_configuration` that lists every problem: values,
 * missing and unknown names, names that do not go together, files that cannot be read.
 */
export const readConfig = (environment: Environment = process.env): ControlPlaneConfig => {
  const settings = readEnvironment(CONTROL_PLANE_ENVIRONMENT, environment);
  const problems: string[] = [];
  const database = databaseOf(settings, problems);
  const [sealKey, ...olderKeys] = sealKeysOf(settings, problems);
  const envModel = envModelOf(settings, problems);
  const ports = [
    settings.BEEUNI_PUBLIC_PORT,
    settings.BEEUNI_SANDBOX_PORT,
    settings.BEEUNI_INTERNAL_PORT,
    settings.BEEUNI_METRICS_PORT,
  ].filter((value) => value !== 0);
  if (new Set(ports).size !== ports.length) problems.push('BEEUNI_PUBLIC_PORT: the four ports must differ');
  if (problems.length > 0 || sealKey === undefined) {
    throw new InvalidError('invalid_configuration', `the environment is wrong:\n  ${problems.sort().join('\n  ')}`);
  }
  return {
    settings,
    database,
    sealKeys: [sealKey, ...olderKeys],
    flags: flagsOf(settings),
    operator: {
      namespace: settings.BEEUNI_OPERATOR_NAMESPACE ?? settings.BEEUNI_NAMESPACE,
      serviceAccount: settings.BEEUNI_OPERATOR_SERVICE_ACCOUNT,
    },
    envModel,
    settingsEnvironment: readSettingsEnvironment(settings),
  };
};
