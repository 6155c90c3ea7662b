// The values of the Helm chart: every key with its bounds and its default. `values.yaml` repeats the defaults for its comments,
// and a test compares the two. It must not know templates. Source: 10-kubernetes §9, K30.
import { z } from 'zod';

import { DNS_LABEL_PATTERN, QUANTITY_PATTERN } from './primitives.ts';
import { FEATURE_FLAGS, type FeatureFlag } from './resources/project.ts';
import { MANIFEST_RUNTIMES, WORKSPACE_TYPES } from './resources/sandbox-fields.ts';
import { DEFAULT_PLATFORM_FLAGS } from './rules/effective-flags.ts';

const name = z.string().max(253);
const label = z.string().max(63).regex(DNS_LABEL_PATTERN);
/** The name of an object that may be left out: empty is none. */
const optionalName = name.default('');
const quantity = (fallback: string) =>
  z.union([z.string().max(32).regex(QUANTITY_PATTERN), z.int().min(0)]).default(fallback);
const seconds = (fallback: number, minimum: number, maximum: number) =>
  z.int().min(minimum).max(maximum).default(fallback);
const cidrs = z.array(z.string().max(49)).default([]);
const names = z.array(name).default([]);
const strings = (maximum: number) => z.array(z.string().min(1).max(maximum)).default([]);
const logLevel = z.enum(['debug', 'info', 'warn', 'error']).default('info');

/** Free-form maps, as the Kubernetes API has them. */
const freeMap = z.record(z.string(), z.unknown()).default({});
const textMap = z.record(z.string(), z.string()).default({});
const freeList = z.array(z.record(z.string(), z.unknown())).default([]);

type ResourceDefaults = Readonly<Record<'requests' | 'limits', Readonly<Record<string, string>>>>;
const resources = (defaults: ResourceDefaults) => z.record(z.string(), z.unknown()).default(defaults);
/** Requests and limits; a map that is given is merged by Helm with the default one, so a single amount may be set. */
const profile = (defaults: ResourceDefaults) =>
  z
    .strictObject({
      requests: z.record(z.string(), quantity('0')).default(defaults.requests),
      limits: z.record(z.string(), quantity('0')).default(defaults.limits),
    })
    .prefault({});

/** What both workloads have. */
const workload = (defaults: ResourceDefaults) => ({
  resources: resources(defaults),
  podLabels: textMap,
  podAnnotations: textMap,
  nodeSelector: textMap,
  tolerations: freeList,
  affinity: freeMap,
});

const image = (repository: string) => ({
  repository: z.string().min(1).max(255).default(repository).describe('Repository of the image.'),
  tag: z.string().max(128).default('').describe('Tag; empty is that of the chart.'),
  digest: z
    .string()
    .regex(/^(sha256:[0-9a-f]{64})?$/)
    .default('')
    .describe('Digest; wins over the tag.'),
  pullPolicy: z.enum(['Always', 'IfNotPresent', 'Never']).default('IfNotPresent'),
});

const flag = (flagName: FeatureFlag) =>
  z
    .strictObject({
      default: z.boolean().default(DEFAULT_PLATFORM_FLAGS[flagName].default),
      available: z.boolean().default(DEFAULT_PLATFORM_FLAGS[flagName].available),
    })
    .prefault({});

const features = z
  .strictObject({
    llm_gateway: flag('llm_gateway'),
    pi_harness: flag('pi_harness'),
    config_releases: flag('config_releases'),
    warm_sessions: flag('warm_sessions'),
  } satisfies Record<(typeof FEATURE_FLAGS)[number], z.ZodType>)
  .prefault({});

const operator = z
  .strictObject({
    replicas: z.int().min(1).max(10).default(2),
    concurrency: z.int().min(1).max(256).default(32),
    maxConcurrentStarts: z.int().min(1).max(2_000).default(64),
    maxConcurrentStartsPerProject: z.int().min(1).max(2_000).default(8),
    ...workload({ requests: { cpu: '50m', memory: '128Mi' }, limits: { memory: '512Mi' } }),
  })
  .prefault({});

const controlPlane = z
  .strictObject({
    replicas: z.int().min(1).max(100).default(1),
    encryptionKey: z.strictObject({ existingSecret: optionalName }).prefault({}),
    envModel: z
      .strictObject({
        baseUrl: z.string().max(1024).default(''),
        id: z.string().max(192).default(''),
        existingSecret: optionalName,
      })
      .prefault({}),
    git: z
      .strictObject({
        allowedHosts: strings(253),
        insecureHosts: strings(253),
        pollIntervalSeconds: seconds(60, 0, 86_400),
        author: z
          .strictObject({
            name: z.string().min(1).max(128).default('Beeuni'),
            email: z.string().min(3).max(254).default('agent@beeuni.dev'),
          })
          .prefault({}),
      })
      .prefault({}),
    providers: z.strictObject({ allowedPrivateHosts: strings(253) }).prefault({}),
    web: z
      .strictObject({
        searchUrl: z.string().max(1024).default(''),
        scrape: z.boolean().default(false),
        allowedPrivateHosts: strings(253),
      })
      .prefault({}),
    statusSummaries: z.boolean().default(true),
    extraEnv: z
      .array(
        z.strictObject({
          name: z
            .string()
            .max(128)
            .regex(/^(BEEUNI|TEMPORALITY)_[A-Z][A-Z0-9_]*$/),
          value: z.string().max(4096),
        }),
      )
      .max(64)
      .default([]),
    mirrors: z.strictObject({ sizeLimit: quantity('4Gi') }).prefault({}),
    service: z
      .strictObject({
        type: z.enum(['ClusterIP', 'NodePort', 'LoadBalancer']).default('ClusterIP'),
        annotations: textMap,
      })
      .prefault({}),
    ...workload({ requests: { cpu: '100m', memory: '256Mi' }, limits: { memory: '1Gi' } }),
  })
  .prefault({});

const postgres = z
  .strictObject({
    mode: z.enum(['embedded', 'external']).default('embedded'),
    external: z.strictObject({ existingSecret: optionalName }).prefault({}),
    embedded: z
      .strictObject({ storage: z.strictObject({ size: quantity('8Gi'), className: optionalName }).prefault({}) })
      .prefault({}),
  })
  .prefault({});

const small = { requests: { cpu: '100m', memory: '256Mi', 'ephemeral-storage': '1Gi' }, limits: { memory: '512Mi' } };
const profiles = z
  .strictObject({
    opencode: profile({
      requests: { cpu: '500m', memory: '640Mi', 'ephemeral-storage': '1Gi' },
      limits: { memory: '1280Mi' },
    }),
    pi: profile(small),
    beaver: profile(small),
  } satisfies Record<(typeof MANIFEST_RUNTIMES)[number], z.ZodType>)
  .prefault({});

const sandboxNetwork = z
  .strictObject({
    dns: z
      .strictObject({
        namespace: label.default('kube-system'),
        podLabels: z.record(z.string(), z.string()).default({ 'k8s-app': 'kube-dns' }),
      })
      .prefault({}),
    enforcementProbe: z.enum(['report', 'require', 'off']).default('report'),
    allowedPrivateCidrs: cidrs,
    extraBlockedCidrs: cidrs,
  })
  .prefault({});

const sandbox = z
  .strictObject({
    image: z.strictObject(image('beeuni-sandbox')).prefault({}),
    profiles,
    workspace: z
      .strictObject({
        type: z.enum(WORKSPACE_TYPES).default('Persistent'),
        size: quantity('10Gi'),
        storageClassName: optionalName,
      })
      .prefault({}),
    scratchSize: quantity('4Gi'),
    lifecycle: z
      .strictObject({
        startDeadlineSeconds: seconds(300, 30, 3_600),
      })
      .prefault({}),
    drainSeconds: seconds(60, 0, 3_600),
    runAsUser: z.int().min(1).max(2_147_483_647).nullable().default(1000),
    nodeSelector: textMap,
    tolerations: freeList,
    priorityClassName: optionalName,
    imagePullSecrets: names,
    runtimeClass: z
      .strictObject({
        policy: z.enum(['none', 'required']).default('none'),
        name: optionalName,
        allowed: names,
      })
      .prefault({}),
    imagePolicy: z
      .strictObject({ allowedPrefixes: strings(512), requireDigest: z.boolean().default(false) })
      .prefault({}),
    network: sandboxNetwork,
    logLevel,
  })
  .prefault({});

/** Every value of the chart. Keys that it does not know are refused, free-form maps excepted. */
export const ValuesSchema = z.strictObject({
  image: z
    .strictObject({
      registry: z.string().max(255).default('').describe('Registry before every repository.'),
      ...image('beeuni'),
    })
    .prefault({}),
  imagePullSecrets: names,
  clusterDomain: z.string().min(1).max(253).default('cluster.local'),
  watchNamespaces: z.array(label).default([]),
  namespaces: z.strictObject({ create: z.array(label).default([]) }).prefault({}),
  secretAccess: z
    .strictObject({ cluster: z.boolean().default(false), namespaces: z.array(label).default([]) })
    .prefault({}),
  operator,
  controlPlane,
  postgres,
  features,
  limits: z.strictObject({ maxRunningSessions: z.int().min(0).max(100_000).default(2_000) }).prefault({}),
  sandbox,
  crds: z.strictObject({ install: z.boolean().default(true), keep: z.boolean().default(true) }).prefault({}),
  rbac: z
    .strictObject({
      create: z.boolean().default(true),
      aggregate: z.boolean().default(true),
      authDelegator: z.enum(['create', 'existing']).default('create'),
    })
    .prefault({}),
  policy: z.strictObject({ install: z.boolean().default(true) }).prefault({}),
  networkPolicy: z
    .strictObject({
      enabled: z.boolean().default(true),
      ingressFrom: freeList,
      egressPorts: z.array(z.int().min(1).max(65_535)).default([22, 80, 443, 5432, 6443]),
    })
    .prefault({}),
  logLevel,
  caBundle: z.strictObject({ configMap: optionalName }).prefault({}),
  metrics: z
    .strictObject({ podMonitor: z.boolean().default(false), projectLabels: z.boolean().default(false) })
    .prefault({}),
  extraObjects: freeList,
  global: z.record(z.string(), z.unknown()).optional().describe('Values that Helm shares between charts; not read.'),
});
