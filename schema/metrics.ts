// Every metric of the product, in groups. Label values are closed sets: never an id, a user, a URL or a message, and the
// name of a project only where it is marked and the installation wants it.
// Source: 10-kubernetes §10.
import { counter, gauge, histogram } from './define-metric.ts';
import { turnOutcome } from './events/envelope.ts';
import { CONDITION_STATUSES, PROJECT_CONDITIONS } from './resources/conditions.ts';
import { PROJECT_PHASES } from './resources/project.ts';
import { FAILURE_CATEGORIES, SESSION_PHASES, SUSPENSION_REASONS } from './resources/session.ts';

/** Kinds that our processes list, watch or write. */
export const KUBE_KINDS = [
  'Project',
  'Session',
  'Pod',
  'PersistentVolumeClaim',
  'NetworkPolicy',
  'ServiceAccount',
  'Secret',
  'Namespace',
  'Lease',
  'Event',
  'TokenReview',
  'SubjectAccessReview',
  'CustomResourceDefinition',
] as const;

const KUBE_VERBS = ['get', 'list', 'watch', 'create', 'delete', 'apply', 'patch'] as const;
/** `0` stands for a request without an answer. */
const HTTP_CODE = /^(0|[1-5][0-9]{2})$/;
/** Why a watch or a list was started again. */
export const WATCH_END_REASONS = ['closed', 'silent', 'reset', 'expired', 'error', 'resync', 'stale', 'parse'] as const;
const FAST_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const VERSION = /^[0-9A-Za-z.+-]{1,64}$/;
const QUEUES = ['project', 'session'] as const;
const CONTROLLERS = ['project', 'session'] as const;

/** Of every process. */
export const PROCESS_METRICS = {
  buildInfo: gauge('build_info', 'Version and commit of the running process; always 1.', {
    version: VERSION,
    commit: VERSION,
  }),
  eventloopLagSeconds: gauge(
    'eventloop_lag_seconds',
    'Delay of the event loop, 99th percentile since the last scrape.',
  ),
} as const;

/** Of the Kubernetes client and its caches. */
export const KUBE_METRICS = {
  k8sRequestsTotal: counter('k8s_requests_total', 'Requests to the API server by outcome; code 0 means no answer.', {
    verb: KUBE_VERBS,
    kind: KUBE_KINDS,
    code: HTTP_CODE,
  }),
  k8sRequestDurationSeconds: histogram(
    'k8s_request_duration_seconds',
    'Time until the answer of the API server was read; for a watch until its headers came.',
    { verb: KUBE_VERBS, kind: KUBE_KINDS },
    FAST_SECONDS,
  ),
  k8sConflictsTotal: counter('k8s_conflicts_total', 'Answers 409 of the API server.', { kind: KUBE_KINDS }),
  k8sThrottledTotal: counter(
    'k8s_throttled_total',
    'Requests that waited or were given up because the API server fails.',
  ),
  k8sOpenConnections: gauge('k8s_open_connections', 'Open connections to the API server.'),
  watchConnected: gauge('watch_connected', '1 while a watch of the kind is open.', { kind: KUBE_KINDS }),
  watchLastEventAgeSeconds: gauge('watch_last_event_age_seconds', 'Time since the last event, bookmark or list.', {
    kind: KUBE_KINDS,
  }),
  watchReconnectsTotal: counter('watch_reconnects_total', 'Watches that ended and were started again.', {
    kind: KUBE_KINDS,
    reason: WATCH_END_REASONS,
  }),
  watchRelistsTotal: counter('watch_relists_total', 'Full lists after the first one.', {
    kind: KUBE_KINDS,
    reason: WATCH_END_REASONS,
  }),
  watchStallsTotal: counter('watch_stalls_total', 'Watches that were replaced because they were silent.', {
    kind: KUBE_KINDS,
  }),
  cacheObjects: gauge('cache_objects', 'Objects in the cache of a kind.', { kind: KUBE_KINDS }),
} as const;

/** Of a process that elects a leader. */
export const LEADER_METRICS = {
  leader: gauge('leader', '1 while this process holds the lease.'),
} as const;

/** Of the work queues. */
export const QUEUE_METRICS = {
  workqueueDepth: gauge('workqueue_depth', 'Keys that wait in the queue.', { queue: QUEUES }),
  workqueueOldestAgeSeconds: gauge('workqueue_oldest_age_seconds', 'Age of the key that waits longest.', {
    queue: QUEUES,
  }),
  workqueueAddsTotal: counter('workqueue_adds_total', 'Keys that were queued.', { queue: QUEUES }),
  workqueueRetriesTotal: counter('workqueue_retries_total', 'Keys that were queued again after a failure.', {
    queue: QUEUES,
  }),
  workqueueWaitDurationSeconds: histogram(
    'workqueue_wait_duration_seconds',
    'Time between queueing a key and its run.',
    { queue: QUEUES },
    [0.001, ...FAST_SECONDS, 120],
  ),
} as const;

/** Of the reconcilers. */
export const RECONCILE_METRICS = {
  reconcileTotal: counter('reconcile_total', 'Reconciles by result.', {
    controller: CONTROLLERS,
    result: ['done', 'retry', 'delayed', 'stalled'],
  }),
  reconcileErrorsTotal: counter('reconcile_errors_total', 'Reconciles that failed, by error code.', {
    controller: CONTROLLERS,
    reason: /^[a-z_]{1,40}$/,
  }),
  reconcileDurationSeconds: histogram(
    'reconcile_duration_seconds',
    'Duration of one reconcile.',
    { controller: CONTROLLERS },
    [0.001, ...FAST_SECONDS],
  ),
  planOpsTotal: counter('plan_ops_total', 'Actions that plans asked for.', {
    controller: CONTROLLERS,
    op: /^[A-Za-z]{1,40}$/,
  }),
  statusWritesTotal: counter('status_writes_total', 'Status writes by class.', {
    kind: ['Project', 'Session'],
    class: ['major', 'minor'],
  }),
} as const;

/** Id of a provider: administrators make few of them. */
const PROVIDER = /^[a-z0-9][a-z0-9-]{0,62}$/;
/** Operation of a route, or `other`. */
const OPERATION = /^[A-Za-z]{1,48}$/;
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'] as const;
const LISTENERS = ['public', 'sandbox', 'internal', 'metrics', 'daemon'] as const;

/** Of the HTTP listeners of the control plane. */
export const HTTP_METRICS = {
  httpRequestsTotal: counter(
    'http_requests_total',
    'Answered requests by listener, route, method and status; a route is its operationId.',
    {
      listener: LISTENERS,
      route: OPERATION,
      method: METHODS,
      code: HTTP_CODE,
    },
  ),
  httpRequestDurationSeconds: histogram(
    'http_request_duration_seconds',
    'Time until the answer was sent; of a stream, its whole life.',
    { listener: LISTENERS, route: OPERATION, method: METHODS },
    [0.001, ...FAST_SECONDS],
  ),
  authTotal: counter('auth_total', 'Callers that were looked up, by result: ok or the error code.', {
    result: /^[a-z_]{1,40}$/,
  }),
  authzDeniedTotal: counter('authz_denied_total', 'Calls that were not allowed, by error code.', {
    reason: /^[a-z_]{1,40}$/,
  }),
  claimsTotal: counter('claims_total', 'Claims of daemons, by result: claimed, wait or the error code.', {
    result: /^[a-z_]{1,40}$/,
  }),
  supersededCallsTotal: counter('superseded_calls_total', 'Calls of daemons that a newer claim has replaced.'),
  unauthenticatedConnections: gauge('unauthenticated_connections', 'Open connections without a recognised caller.', {
    listener: LISTENERS,
  }),
  streamsActive: gauge('streams_active', 'Open event streams.'),
  streamEventsTotal: counter('stream_events_total', 'Events that were written to readers of event streams.'),
  terminalsActive: gauge('terminals_active', 'Terminals that clients are joined to.'),
  streamResumesTotal: counter('stream_resumes_total', 'Event streams that began, by how.', {
    result: ['new', 'resumed', 'reset'],
  }),
  streamDroppedTotal: counter('stream_dropped_total', 'Event streams that ended, by reason.', {
    reason: ['reader-left', 'slow', 'stopped', 'finished', 'revoked'],
  }),
  webCallsTotal: counter('web_requests_total', 'Calls of web tools that reached a back end, by outcome.', {
    tool: ['web_search', 'image_search', 'scrape_webpage'],
    result: ['ok', 'failed'],
  }),
  httpInFlight: gauge('http_in_flight', 'Requests that are being answered; streams count while they are open.', {
    listener: LISTENERS,
  }),
  registryModels: gauge('registry_models', 'Models of a provider that may be used.', { provider: PROVIDER }),
  registrySyncTotal: counter('registry_sync_total', 'Lists of models that providers were asked for.', {
    provider: PROVIDER,
    result: ['ok', 'failed'],
  }),
  registryLastSuccessTimestampSeconds: gauge(
    'registry_last_success_timestamp_seconds',
    'When a provider last gave its list of models.',
    { provider: PROVIDER },
  ),
  modelValidationTotal: counter('model_validation_total', 'Model names that were judged for the REST API.', {
    result: ['valid', 'refused'],
    reason: ['none', 'unknown_model', 'model_disabled', 'provider_disabled'],
  }),
  sealedTextsUnopened: gauge('sealed_texts_unopened', 'Stored secrets that no key of the encryption key file opens.'),
  sealedTextsResealedTotal: counter(
    'sealed_texts_resealed_total',
    'Stored secrets that were sealed again with the active encryption key.',
  ),
  dbPoolConnections: gauge('db_pool_connections', 'Connections to Postgres, and callers that wait for one.', {
    state: ['active', 'idle', 'waiting'],
  }),
} as const;

/** Labels of series by project; empty where a series is none of one project, or the installation does not want them. */
const NAMESPACE = /^([a-z0-9][a-z0-9-]{0,62})?$/;
const PROJECT = /^([a-z0-9][a-z0-9-]{0,45})?$/;

/** Of the model gateway and of budgets. */
export const GATEWAY_METRICS = {
  llmRequestsTotal: counter('llm_requests_total', 'Model calls through the gateway by outcome.', {
    provider: PROVIDER,
    outcome: ['ok', 'refused', 'budget', 'provider_error', 'incomplete', 'client_left', 'revoked', 'timed_out'],
  }),
  llmRequestDurationSeconds: histogram(
    'llm_request_duration_seconds',
    'Time from a model call to the end of its answer.',
    { provider: PROVIDER },
    [...FAST_SECONDS, 60, 120, 300, 600],
  ),
  llmTimeToFirstTokenSeconds: histogram(
    'llm_time_to_first_token_seconds',
    'Time between a model call and the first byte of its answer.',
    { provider: PROVIDER },
    FAST_SECONDS,
  ),
  llmTokensTotal: counter('llm_tokens_total', 'Tokens of model calls, as reported or estimated.', {
    provider: PROVIDER,
    direction: ['input', 'output'],
  }),
  llmCostMicrousdTotal: counter('llm_cost_microusd_total', 'Cost of model calls in micro-USD.', { provider: PROVIDER }),
  llmFallbacksTotal: counter('llm_fallbacks_total', 'Calls that went to a model of the fallback list, by why.', {
    reason: ['rate_limited', 'provider_failed', 'provider_timed_out', 'provider_auth_failed'],
  }),
  llmRetriesTotal: counter('llm_retries_total', 'Calls that were made again with another key of the pool.'),
  llmCooldowns: gauge('llm_cooldowns', 'Keys of the pool of a provider that rest.', { provider: PROVIDER }),
  budgetRemainingRatio: gauge(
    'budget_remaining_ratio',
    'Smallest part that is left of any budget that calls asked for in the last 15 minutes; with metrics.projectLabels also of the budgets of each project.',
    { namespace: NAMESPACE, project: PROJECT },
  ),
  budgetRejectionsTotal: counter('budget_rejections_total', 'Model calls that were refused for a budget.', {
    scope: ['session', 'project_day', 'project_month', 'project_runs'],
  }),
} as const;

/** Of the stream of facts between operator and control plane. */
export const FACTS_METRICS = {
  factsConnected: gauge('facts_connected', '1 while the control plane can be asked.'),
  factsLastMessageAgeSeconds: gauge(
    'facts_last_message_age_seconds',
    'Time since the last frame of the stream of facts.',
  ),
  factsResetsTotal: counter('facts_resets_total', 'Snapshots that replaced all facts.'),
} as const;

const HARNESS = ['opencode', 'pi', 'beaver', 'other'] as const;
const START_KINDS = ['cold', 'resume'] as const;

/** Of turns and the event log, as the control plane stores them. */
export const SESSION_METRICS = {
  turnsTotal: counter('turns_total', 'Turns that ended, by harness and outcome.', {
    harness: HARNESS,
    outcome: turnOutcome.options,
  }),
  turnDurationSeconds: histogram(
    'turn_duration_seconds',
    'Time from the beginning of a turn to its end.',
    { harness: HARNESS },
    [1, 2, 5, 10, 30, 60, 120, 300, 600, 1_200, 3_600],
  ),
  toolCallsTotal: counter('tool_calls_total', 'Tool calls of agents that ended, by outcome.', {
    outcome: ['completed', 'error', 'aborted'],
  }),
  eventAppendsTotal: counter('event_appends_total', 'Appends of daemons to event logs, by what became of them.', {
    result: ['stored', 'refused', 'failed'],
  }),
  eventAppendDurationSeconds: histogram(
    'event_append_duration_seconds',
    'Duration of the transactions that store appends; one may hold many.',
    {},
    [0.001, ...FAST_SECONDS],
  ),
} as const;

/** Of Projects and Sessions, as the operator sees them. */
export const FLEET_METRICS = {
  projects: gauge('projects', 'Projects by phase.', { phase: PROJECT_PHASES }),
  sessions: gauge('sessions', 'Sessions by phase and harness.', { phase: SESSION_PHASES, harness: HARNESS }),
  sessionsQueued: gauge('sessions_queued', 'Sessions that wait for a place.'),
  sessionFailuresTotal: counter('session_failures_total', 'Failures of starts and sandboxes.', {
    category: FAILURE_CATEGORIES,
  }),
  sessionStartsTotal: counter(
    'session_starts_total',
    'Starts of sandboxes that became Ready or failed; cold is the first one of a Session, resume every later one.',
    { harness: HARNESS, kind: START_KINDS, result: ['ready', 'failed'] },
  ),
  sessionStartDurationSeconds: histogram(
    'session_start_duration_seconds',
    'Time from the making of a pod until its Session was Ready, in whole seconds.',
    { harness: HARNESS, kind: START_KINDS },
    [1, 2, 3, 5, 10, 15, 20, 30, 60, 120, 300, 600],
  ),
  sessionSuspendsTotal: counter('session_suspends_total', 'Sessions that were suspended, by reason.', {
    reason: SUSPENSION_REASONS,
  }),
  sessionWakesTotal: counter('session_wakes_total', 'Sessions that were to run again, by why they were suspended.', {
    reason: SUSPENSION_REASONS,
  }),
  sessionDisruptionsTotal: counter('session_disruptions_total', 'Sandboxes that were lost by no fault of their own.', {
    reason: FAILURE_CATEGORIES,
  }),
  turnsActive: gauge('turns_active', 'Sessions in which a turn runs or waits for a person.', { harness: HARNESS }),
  isolationNotEnforced: gauge(
    'isolation_not_enforced',
    'Sandboxes from which a connection succeeded that their network policy forbids.',
  ),
  projectCondition: gauge('project_condition', 'Projects by the status of each of their conditions.', {
    type: Object.keys(PROJECT_CONDITIONS),
    status: CONDITION_STATUSES,
  }),
  orphans: gauge('orphans', 'Children whose Session is not there.', {
    kind: ['Pod', 'NetworkPolicy', 'PersistentVolumeClaim'],
  }),
  finalizerTimeoutsTotal: counter('finalizer_timeouts_total', 'Sessions that were let go before their clean-up ended.'),
  projectSyncsTotal: counter('project_syncs_total', 'Syncs that were asked for.', {
    result: ['done', 'running', 'failed'],
  }),
} as const;

/** All metrics by the name that code uses. Another group is added here when a part needs it. */
export const METRICS = {
  ...PROCESS_METRICS,
  ...KUBE_METRICS,
  ...LEADER_METRICS,
  ...QUEUE_METRICS,
  ...RECONCILE_METRICS,
  ...HTTP_METRICS,
  ...GATEWAY_METRICS,
  ...FACTS_METRICS,
  ...SESSION_METRICS,
  ...FLEET_METRICS,
} as const;
