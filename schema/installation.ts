// What an installation decides about sandboxes and limits: the part of the chart values that the operator reads, as one
// JSON document. It must not know who mounts or reads it. Strict: an unknown key is an error. Source: 10-kubernetes §2, §3, §7, §9.
import { z } from 'zod';
import { DnsLabel63, ImageRef, ObjectName } from './primitives.ts';
import type { FeatureFlag } from './resources/project.ts';
import { LifecycleSchema, ResourceListSchema, ResourcesSchema, WorkspaceSchema } from './resources/sandbox-fields.ts';
import { DEFAULT_PLATFORM_FLAGS } from './rules/effective-flags.ts';

const flag = (name: FeatureFlag) => {
  const platform = DEFAULT_PLATFORM_FLAGS[name];
  return z
    .strictObject({
      default: z.boolean().default(platform.default),
      available: z.boolean().default(platform.available),
    })
    .prefault({});
};

const cidr = z.string().min(1).max(49);
const labels = z.record(z.string().max(317), z.string().max(63));

const toleration = z.strictObject({
  key: z.string().max(317).optional(),
  operator: z.enum(['Exists', 'Equal']).optional(),
  value: z.string().max(63).optional(),
  effect: z.enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute']).optional(),
  tolerationSeconds: z.int().min(0).optional(),
});

/** Requests and limits of a harness when nobody says more. Source: 10-kubernetes §7, profiles. */
const PROFILES = {
  opencode: {
    requests: { cpu: '500m', memory: '640Mi', 'ephemeral-storage': '1Gi' },
    limits: { memory: '1280Mi' },
  },
  pi: { requests: { cpu: '100m', memory: '256Mi', 'ephemeral-storage': '1Gi' }, limits: { memory: '512Mi' } },
  beaver: { requests: { cpu: '100m', memory: '256Mi', 'ephemeral-storage': '1Gi' }, limits: { memory: '512Mi' } },
};

const network = z.strictObject({
  dns: z
    .strictObject({
      namespace: DnsLabel63.default('kube-system'),
      podLabels: labels.default({ 'k8s-app': 'kube-dns' }),
      port: z.int().min(1).max(65_535).default(53),
    })
    .prefault({}),
  enforcementProbe: z.enum(['report', 'require', 'off']).default('report'),
  allowedPrivateCidrs: z.array(cidr).max(64).default([]),
  extraBlockedCidrs: z.array(cidr).max(64).default([]),
});

const sandbox = z.strictObject({
  image: ImageRef,
  imagePullPolicy: z.enum(['Always', 'IfNotPresent', 'Never']).optional(),
  imagePullSecrets: z.array(ObjectName).max(4).default([]),
  /** By harness id. */
  profiles: z.record(z.string().max(64), ResourcesSchema).default(PROFILES),
  workspace: WorkspaceSchema.default({ type: 'Persistent', size: '10Gi' }),
  scratchSize: z.string().max(32).default('4Gi'),
  lifecycle: LifecycleSchema.prefault({}),
  /** Longest time that a running turn gets before a planned stop. */
  drainSeconds: z.int().min(0).max(3_600).default(60),
  /** null leaves the ids to platforms that assign them. */
  runAsUser: z.int().min(1).nullable().default(1_000),
  nodeSelector: labels.default({}),
  tolerations: z.array(toleration).max(8).default([]),
  priorityClassName: ObjectName.optional(),
  /** `none` leaves the field out; `required` names a class and fails closed. */
  runtimeClass: z
    .strictObject({
      policy: z.enum(['none', 'required']).default('none'),
      name: DnsLabel63.optional(),
      allowed: z.array(DnsLabel63).max(16).default([]),
    })
    .prefault({}),
  imagePolicy: z
    .strictObject({
      allowedPrefixes: z.array(z.string().min(1).max(512)).max(16).default([]),
      requireDigest: z.boolean().default(false),
    })
    .prefault({}),
  maxResources: ResourceListSchema.prefault({}),
  network: network.prefault({}),
  logLevel: z.enum(['debug', 'info', 'warn', 'error']).default('info'),
});

/** The document of an installation; only the image and the control plane's address have no default. */
export const InstallationSchema = z.strictObject({
  features: z
    .strictObject({
      llm_gateway: flag('llm_gateway'),
      pi_harness: flag('pi_harness'),
      config_releases: flag('config_releases'),
      warm_sessions: flag('warm_sessions'),
    })
    .prefault({}),
  limits: z
    .strictObject({
      /** Sandboxes at once in the installation. */
      maxRunningSessions: z.int().min(0).max(1_000_000).default(2_000),
      /** Sandboxes that start at once. */
      maxConcurrentStarts: z.int().min(1).max(10_000).default(64),
      maxConcurrentStartsPerProject: z.int().min(1).max(10_000).default(8),
    })
    .prefault({}),
  sandbox,
  /** Where sandboxes find the control plane, and which pods of which namespace it is. */
  controlPlane: z.strictObject({
    sandboxUrl: z.url().max(1_024),
    sandboxPort: z.int().min(1).max(65_535).default(8_081),
    namespace: DnsLabel63,
    podLabels: labels,
  }),
  /** ConfigMap with `ca.crt` in every namespace of sandboxes. */
  caBundle: z.strictObject({ configMap: ObjectName }).optional(),
});

/** What an installation decided, with defaults filled. */
export type Installation = z.output<typeof InstallationSchema>;
/** The document as the chart writes it. */
export type InstallationInput = z.input<typeof InstallationSchema>;
