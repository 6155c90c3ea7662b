// The settings of the operator's process: every name, its bounds and its default, read once and passed down in parts.
// The only file here that reads the environment or the installation document. Source: 10-kubernetes §9, §11.
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { type Environment, readEnvironment } from '#base/env.ts';
import { errorChain, InvalidError } from '#base/errors.ts';
import { LOG_LEVELS } from '#base/log.ts';
import { type Installation, InstallationSchema } from '#schema/installation.ts';

const LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const path = (what: string) => z.string().startsWith('/', 'must be an absolute path').describe(what);

const namespaces = z
  .string()
  .default('')
  .transform((text, context) => {
    const entries = text
      .split(',')
      .map((entry) => entry.trim())
      .filter((entry) => entry !== '');
    if (!entries.every((entry) => LABEL.test(entry)))
      context.addIssue('must be names of namespaces, separated by commas');
    return [...new Set(entries)];
  })
  .describe('Namespaces to watch, separated by commas; none means all.');

/** Every name that the operator's process knows. */
export const OPERATOR_ENVIRONMENT = z.object({
  BEEUNI_NAMESPACE: z.string().regex(LABEL, 'must be a lower-case DNS label').describe('Namespace of the lease.'),
  BEEUNI_LEASE_NAME: z
    .string()
    .regex(LABEL, 'must be a lower-case DNS label')
    .default('beeuni-operator')
    .describe('Name of the lease.'),
  BEEUNI_POD_NAME: z.string().max(253).optional().describe('Name of this process in the lease and in events.'),
  BEEUNI_WATCH_NAMESPACES: namespaces,
  BEEUNI_CONTROL_PLANE_URL: z.url('must be a URL').describe('The internal API of the control plane.'),
  BEEUNI_CONTROL_PLANE_TOKEN_FILE: path(
    'File with the service-account token for the control plane; read again for each call.',
  ),
  BEEUNI_INSTALLATION_FILE: path('JSON document of what the installation decides about sandboxes and limits.'),
  BEEUNI_CONCURRENCY: z.coerce
    .number('must be a whole number')
    .int('must be a whole number')
    .min(1, 'must be at least 1')
    .max(256, 'must be at most 256')
    .default(32)
    .describe('Reconciles at the same time, for each controller.'),
  BEEUNI_LISTEN_HOST: z.string().default('0.0.0.0').describe('Address that the metrics listener binds.'),
  BEEUNI_METRICS_PORT: z.coerce
    .number('must be a port number')
    .int('must be a port number')
    .min(0, 'must be a port number, 0 for any free one')
    .max(65_535, 'must be at most 65535')
    .default(9_090)
    .describe('Port of /healthz, /readyz and /metrics.'),
  BEEUNI_LOG_LEVEL: z.enum(LOG_LEVELS).default('info').describe('Least level that is logged.'),
});

/** The configuration of this process. */
export type OperatorConfig = Readonly<{
  settings: Readonly<z.output<typeof OPERATOR_ENVIRONMENT>>;
  installation: Installation;
}>;

const readInstallation = (file: string): Installation => {
  let document: unknown;
  try {
    document = JSON.parse(readFileSync(file, 'utf8'));
  } catch (cause) {
    throw new InvalidError('invalid_configuration', `BEEUNI_INSTALLATION_FILE: ${errorChain(cause)}`, { cause });
  }
  const parsed = InstallationSchema.safeParse(document);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path: at, message }) => `${at.join('.') || 'document'}: ${message}`);
  throw new InvalidError(
    'invalid_configuration',
    `BEEUNI_INSTALLATION_FILE is wrong:\n  ${problems.sort().join('\n  ')}`,
  );
};

/** Reads everything. Throws InvalidError `invalid_configuration` that lists every problem. */
export const readConfig = (environment: Environment = process.env): OperatorConfig => {
  const settings = readEnvironment(OPERATOR_ENVIRONMENT, environment);
  return { settings, installation: readInstallation(settings.BEEUNI_INSTALLATION_FILE) };
};
