// The health document of the daemon (A19 to A28) and its report to the control plane.
// Keys of the document are in snake case where the product's contract says so.
import { z } from 'zod';
import { defineRoute } from '../define-route.ts';
import { deliveredAnswer } from './requests.ts';

/** State of the harness as the daemon sees it. */
export const harnessState = z.enum(['starting', 'ok', 'down', 'error']);

/** Rules file that the harness was given. Source: A26. */
export const agentsMd = z.object({
  source: z.enum(['release', 'workspace']),
  path: z.string().max(1024),
  bytes: z.int().min(0),
  sha: z.string().length(12),
});

/**
 * How a turn stands, given only when it is asked for: whether it runs (null: this daemon does not know), the outcome with
 * which it ended here, and the message of a prompt that this daemon took and whose end is not stored yet. Source: A24.
 */
export const turnBlock = z.object({
  in_flight: z.boolean().nullable(),
  end: z.string().max(64).nullable(),
  orphaned_prompt: z.string().max(128).nullable(),
});

/** Closed block about the harness. Source: A23. */
export const harnessBlock = z.object({
  id: z.string().max(64),
  version: z.string().max(64).nullable(),
  state: harnessState,
  ready: z.boolean(),
  error: z.string().max(1024).nullable(),
  session: z.object({ id: z.string().max(128).nullable(), required: z.boolean() }),
  turn: turnBlock.nullable(),
  details: z.record(z.string(), z.unknown()),
});

/** Where configuration comes from. Source: A27, A172. */
export const configBlock = z.object({
  release_id: z.string().max(64).nullable(),
  desired_release_id: z.string().max(64).nullable(),
  source: z.enum(['release', 'image-default', 'workspace']),
  mode: z.string().max(32),
  proven: z.boolean(),
  fallback_reason: z.string().max(512).nullable(),
  failed_release_id: z.string().max(64).nullable(),
});

/** What the agent is doing. Source: 10-kubernetes §3, status.activity. */
export const activityBlock = z.object({
  state: z.enum(['Idle', 'Working', 'WaitingForInput']),
  since: z.iso.datetime(),
  turnId: z.string().max(64).nullable(),
});

/** One part of what a sandbox runs: its version or hash, and whether that is what was asked for. */
export const truthPart = z.object({ value: z.string().max(128).nullable(), state: z.enum(['converged', 'unknown']) });

/** What the box itself runs. Source: A20. */
export const runtimeTruth = z.object({
  release: truthPart,
  catalog: truthPart,
  daemon: truthPart,
  cli: truthPart,
  managed_skills: truthPart,
});

/** What was asked for and what runs. Source: A20. */
export const runtimeReport = z.object({
  state: z.enum(['starting', 'converged']),
  running: z
    .object({
      harness: z.string().max(64),
      version: z.string().max(64).nullable(),
      release_id: z.string().max(64).nullable(),
      agent_config_etag: z.string().max(64).nullable(),
    })
    .nullable(),
});

/** Where the project came from at boot. Source: A20. */
export const configProvider = z.object({
  provider: z.enum(['git', 'object-store']),
  expected_sha: z.string().max(64),
  actual_sha: z.string().max(64).nullable(),
  fallback_reason: z.string().max(512).nullable(),
});

/** `GET /beeuni/health`: always 200 while the daemon lives. Source: A19 to A28. */
export const healthDocument = z.object({
  daemon: z.literal('ok'),
  daemon_version: z.string().max(64),
  capabilities: z.array(z.string().max(64)).max(64),
  status: z.enum(['ok', 'starting', 'down', 'error']),
  runtimeReady: z.boolean(),
  boot_error: z.string().max(1024).nullable(),
  boot_error_category: z.enum(['CloneFailed', 'HarnessBoot', 'ConfigProof', 'DaemonExit']).nullable(),
  workload: z.enum(['session', 'monitor']),
  uptime_s: z.number().min(0),
  static_web_port: z.int().nullable(),
  repo_required: z.boolean(),
  repo_ready: z.boolean(),
  repo: z.string().max(1024).nullable(),
  branch: z.string().max(200).nullable(),
  commit_sha: z.string().max(64).nullable(),
  compiled_boot_mode: z.enum(['claim']).nullable().default(null).describe('where the compiled agents came from'),
  compiled_checkout: z.string().max(64).nullable().default(null).describe('commit that they were compiled from'),
  agent_config_etag: z.string().max(64).nullable().default(null).describe('hash of the compiled agents and tools'),
  runtime: runtimeReport.default({ state: 'starting', running: null }),
  runtime_truth: runtimeTruth.nullable().default(null),
  config_provider: configProvider.nullable().default(null),
  push_error: z.string().max(1024).nullable().default(null).describe('why the newest push of the branch failed'),
  harness: harnessBlock,
  config: configBlock,
  activity: activityBlock,
  turn_in_flight: z.boolean().nullable().default(null).describe('the three fields of harness.turn, flat'),
  turn_end: z.string().max(64).nullable().default(null),
  turn_orphaned_prompt: z.string().max(128).nullable().default(null),
  boot_timeline: z.array(z.object({ stage: z.string().max(64), atMs: z.int().min(0) })).max(64),
  isolation: z.enum(['enforced', 'not-enforced', 'not-probed']),
  auth: z.enum(['configured', 'unconfigured']),
});

/** `GET /beeuni/health` on port 8000. `turn=1` adds how a turn stands: of a message if one is named, else the last one. */
export const healthRoute = defineRoute({
  operationId: 'getHealth',
  listener: 'daemon',
  method: 'GET',
  path: '/beeuni/health',
  summary: 'The state of daemon, repository, configuration and harness',
  auth: { kind: 'anyone' },
  query: z.object({
    turn: z.string().optional().catch(undefined),
    turn_session_id: z.string().optional().catch(undefined),
    turn_message_id: z.string().optional().catch(undefined),
  }),
  responses: { 200: healthDocument },
});

/**
 * `POST /sandbox/v1/health`: the daemon's report, at every change and at least every 10 s. The answer says whether
 * prompts wait and which answers of people were not taken yet, so that a lost call costs at most one report interval.
 * Source: K14.
 */
export const healthReportRoute = defineRoute({
  operationId: 'reportHealth',
  listener: 'sandbox',
  method: 'POST',
  path: '/sandbox/v1/health',
  summary: 'Report the health document',
  auth: { kind: 'sandbox' },
  body: healthDocument,
  responses: {
    200: z.object({
      promptsWaiting: z.boolean(),
      abortTurnId: z.string().nullable(),
      answers: z.array(deliveredAnswer).max(64).default([]),
    }),
  },
});

/** Interval of health reports, and how long a daemon may be silent. Source: K14. Units: milliseconds. */
export const HEALTH_REPORT_INTERVAL_MS = 10_000;
/** See HEALTH_REPORT_INTERVAL_MS. Units: milliseconds. */
export const HEALTH_SILENT_AFTER_MS = 30_000;

/** See healthDocument. */
export type HealthDocument = z.output<typeof healthDocument>;
/** See turnBlock. */
export type TurnBlock = z.output<typeof turnBlock>;
/** See runtimeTruth. */
export type RuntimeTruth = z.output<typeof runtimeTruth>;
/** See harnessBlock. */
export type HarnessBlock = z.output<typeof harnessBlock>;
