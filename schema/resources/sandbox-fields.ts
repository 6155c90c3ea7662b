// The parts of a spec that mean the same in Project and Session: lifecycle, resources, workspace.
// It must not know which layer wins; absent means inherited and nothing here has a default.
import { z } from 'zod';
import { cel, celQuantity, celRules, durationSeconds, ObjectName, quantity } from '../primitives.ts';

/** When a session sleeps, is deleted, ends or gives up. Each absent field is inherited; 0 is off, but at once for the TTL. Source: K6. */
export const LifecycleSchema = z
  .object({
    idleSuspendAfterSeconds: durationSeconds(0, 604_800)
      .optional()
      .describe(
        'Suspend after so long without a turn, open request or queued prompt. 0 is off. Default 900, or 300 for Trigger and Child.',
      ),
    idleDeleteAfterSeconds: durationSeconds(0, 7_776_000)
      .optional()
      .describe('Delete the Session after so long without activity. 0, the default, is off. Do not use with GitOps.'),
    maxLifetimeSeconds: durationSeconds(0, 2_592_000)
      .optional()
      .describe('End the Session so long after its creation. 0, the default, is off.'),
    startDeadlineSeconds: durationSeconds(30, 3_600)
      .optional()
      .describe(
        'Longest time from the creation of the pod to Ready; stands still while the pod is gated. Default 300.',
      ),
    ttlSecondsAfterFinished: durationSeconds(0, 7_776_000)
      .optional()
      .describe('Delete a finished Session after so long; 0 is at once. Default: it is kept. Do not use with GitOps.'),
  })
  .meta(
    celRules(
      cel(
        '!has(self.idleDeleteAfterSeconds) || self.idleDeleteAfterSeconds == 0 || !has(self.idleSuspendAfterSeconds) || ' +
          'self.idleSuspendAfterSeconds < self.idleDeleteAfterSeconds',
        'idleSuspendAfterSeconds must be below idleDeleteAfterSeconds',
        '.idleSuspendAfterSeconds',
      ),
    ),
  );
export type Lifecycle = z.output<typeof LifecycleSchema>;

/** Amounts of cpu, memory and local storage of one sandbox. */
export const ResourceListSchema = z.object({
  cpu: quantity('32').optional().describe('CPU cores, for example 500m or 2. At most 32.'),
  memory: quantity('128Gi').optional().describe('Memory, for example 2Gi. At most 128Gi.'),
  'ephemeral-storage': quantity('500Gi')
    .optional()
    .describe('Local storage beside the workspace, for example 4Gi. At most 500Gi.'),
});
export type ResourceList = z.output<typeof ResourceListSchema>;

function requestBelowLimit(resource: string) {
  const field = resource.replaceAll('-', '__dash__');
  const request = `self.requests.${field}`;
  const limit = `self.limits.${field}`;
  return cel(
    `!has(self.requests) || !has(self.limits) || !has(${request}) || !has(${limit}) || ` +
      `${celQuantity(request)}.compareTo(${celQuantity(limit)}) <= 0`,
    `requests.${resource} must not exceed limits.${resource}`,
  );
}

/** Requests and limits of the sandbox container. */
export const ResourcesSchema = z
  .object({
    requests: ResourceListSchema.optional().describe('What the scheduler keeps free for the sandbox.'),
    limits: ResourceListSchema.optional().describe('What the sandbox cannot exceed.'),
  })
  .meta(celRules(...['cpu', 'memory', 'ephemeral-storage'].map(requestBelowLimit)));
export type Resources = z.output<typeof ResourcesSchema>;

export const WORKSPACE_TYPES = ['Persistent', 'Ephemeral'] as const;
export const RECLAIM_POLICIES = ['Delete', 'Retain'] as const;

/** Where the checkout lives. An absent field is inherited from the Project, then from the installation. */
export const WorkspaceSchema = z
  .object({
    type: z
      .enum(WORKSPACE_TYPES)
      .optional()
      .describe(
        'Persistent keeps the files on a volume while suspended; Ephemeral keeps only what was pushed. Default Persistent.',
      ),
    size: quantity('500Gi', '1Gi').optional().describe('Size of the workspace, 1Gi to 500Gi. Default 10Gi.'),
    storageClassName: ObjectName.optional().describe(
      'StorageClass of the volume; needs type Persistent. Default: that of the installation.',
    ),
    reclaimPolicy: z
      .enum(RECLAIM_POLICIES)
      .optional()
      .describe('Delete removes the volume with the Session; Retain keeps it. Needs type Persistent. Default Delete.'),
  })
  .meta(
    celRules(
      cel(
        `!(has(self.storageClassName) || has(self.reclaimPolicy)) || (has(self.type) && self.type == 'Persistent')`,
        'storageClassName and reclaimPolicy need type Persistent',
        '.type',
      ),
    ),
  );

/** What a Session or a whole Project is asked to be. */
export const OPERATING_MODES = ['Running', 'Suspended'] as const;

/** Why level 1 chose a harness. Source: 00-product §4. */
export const HARNESS_REASONS = ['gateway-off', 'project-flag', 'manifest-runtime', 'default'] as const;
export type HarnessReason = (typeof HARNESS_REASONS)[number];

/** What `runtime` of a manifest may say. Source: A13. */
export const MANIFEST_RUNTIMES = ['opencode', 'pi', 'beaver'] as const;
export type ManifestRuntime = (typeof MANIFEST_RUNTIMES)[number];

/** Those that this version runs; a session of another one fails at its start. */
export const SERVED_RUNTIMES: readonly ManifestRuntime[] = ['opencode', 'pi'];
