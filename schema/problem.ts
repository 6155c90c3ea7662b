// The closed list of error codes that leave any part of Beeuni. A code is never renamed or reused.
// Must not know how an error is raised or carried; base/errors.ts and base/http/error-response.ts do.

/** Who acts next on an error; each group maps to one class of base/errors.ts. Source: docs/decisions/0005. */
export type ProblemGroup =
  | 'invalid'
  | 'unauthenticated'
  | 'forbidden'
  | 'not-found'
  | 'conflict'
  | 'limit'
  | 'unsupported'
  | 'unavailable'
  | 'bug';

type Problem<G extends ProblemGroup = ProblemGroup> = Readonly<{ group: G; status: number; meaning: string }>;

const problem = <const G extends ProblemGroup>(group: G, status: number, meaning: string): Problem<G> => ({
  group,
  status,
  meaning,
});

/** Every error code with its group, HTTP status and meaning. Source: 20-control-plane §2, §12; A64, A142, A198. */
export const PROBLEMS = {
  invalid_request: problem('invalid', 400, 'the request does not have the shape that the route declares'),
  unknown_field: problem('invalid', 400, 'the body holds a field that the route does not know'),
  invalid_json: problem('invalid', 400, 'the body is not JSON, or is nested deeper than 64'),
  method_not_allowed: problem('invalid', 405, 'the route does not take this method'),
  head_too_large: problem('invalid', 431, 'the request line and headers are above the limit'),
  request_too_slow: problem('invalid', 408, 'the request took too long to arrive'),
  body_too_large: problem('invalid', 413, 'the body is above the limit of the route'),
  unsupported_media_type: problem('invalid', 415, 'the content type is not the one that the route takes'),
  invalid_cursor: problem('invalid', 400, 'the page cursor was not made by this list'),
  idempotency_key_reused: problem('invalid', 422, 'the idempotency key was used with another body'),
  unknown_model: problem('invalid', 400, 'no registered provider lists a model of this name'),
  model_disabled: problem('invalid', 400, 'the model is registered and disabled'),
  provider_disabled: problem('invalid', 400, 'the provider of the model is disabled'),
  model_not_allowed: problem('forbidden', 403, 'the project does not allow this model'),
  unknown_agent: problem('invalid', 400, 'the manifest declares no enabled agent of this name'),
  invalid_base_url: problem('invalid', 400, 'the base URL of a provider may not be used'),
  invalid_provider: problem('invalid', 400, 'the provider definition does not hold together'),
  invalid_setting: problem('invalid', 400, 'a setting has a value beyond its bounds, or one that another forbids'),
  unknown_setting: problem('invalid', 400, 'there is no setting of this name'),
  wire_not_supported: problem('invalid', 400, 'the provider of the model does not speak the API of this path'),
  prompt_too_large: problem('invalid', 413, 'the prompt is above its limit'),
  request_too_large: problem('invalid', 413, 'the model request is above the request ceiling'),
  invalid_configuration: problem('invalid', 400, 'a process was started with a wrong environment'),
  resource_rejected: problem('invalid', 422, 'the Kubernetes API server refused the object'),
  harness_not_available: problem('unsupported', 501, 'the sandbox image has no adapter for this harness'),
  web_not_configured: problem('unsupported', 501, 'the installation has no back end for this web tool'),
  feature_not_supported: problem('unsupported', 501, 'the running harness does not offer this feature'),
  feature_disabled: problem('forbidden', 403, 'a feature flag turns this off'),
  unauthenticated: problem('unauthenticated', 401, 'no valid credential was sent'),
  forbidden: problem('forbidden', 403, 'the caller may not do this'),
  address_not_allowed: problem('forbidden', 403, 'the address may not be connected to'),
  path_not_allowed: problem(
    'forbidden',
    403,
    'the path leads out of the workspace, over a link, or to what is not for people',
  ),
  file_too_large: problem('limit', 413, 'the file is above its limit'),
  storage_full: problem('limit', 507, 'the volume of the session is full'),
  too_many_terminals: problem('limit', 429, 'the limit of open terminals is reached'),
  not_found: problem('not-found', 404, 'there is no such object or route'),
  session_not_found: problem('not-found', 404, 'there is no such session'),
  project_not_found: problem('not-found', 404, 'there is no such project'),
  prompt_not_found: problem('not-found', 404, 'there is no such prompt'),
  request_not_found: problem('not-found', 404, 'the session has no such permission or question'),
  message_not_found: problem('not-found', 404, 'the conversation has no such message'),
  provider_not_found: problem('not-found', 404, 'there is no such provider'),
  repository_not_found: problem('not-found', 404, 'the remote knows no such repository'),
  branch_not_found: problem('not-found', 404, 'the remote has no such branch'),
  conflict: problem('conflict', 409, 'the object changed meanwhile'),
  already_exists: problem('conflict', 409, 'an object of this name exists'),
  superseded: problem('conflict', 409, 'a newer claim of this session exists'),
  session_failed: problem('conflict', 409, 'the session has failed or is finished'),
  session_suspended: problem('conflict', 409, 'the session is suspended on request'),
  harness_mismatch: problem('conflict', 409, 'the claim names another harness than the pod was made for'),
  request_ended: problem('conflict', 409, 'the permission or question has its answer, or its turn is over'),
  turn_running: problem('conflict', 409, 'a turn runs; wait for its end or abort it'),
  workspace_unreadable: problem('conflict', 409, 'git cannot read the repository in the workspace of the session'),
  not_rewound: problem('conflict', 409, 'no rewind can be taken back: none was made, or a prompt followed it'),
  unknown_command: problem('invalid', 400, 'the project has no such slash command'),
  no_active_turn: problem('conflict', 409, 'the session runs no turn'),
  not_idle: problem('conflict', 409, 'the session works, so it was not fenced'),
  provider_referenced: problem('conflict', 409, 'the provider is still referred to'),
  prompt_started: problem('conflict', 409, 'the prompt has started and can no longer be withdrawn'),
  precondition_failed: problem('conflict', 412, 'the stored state is not the one that the caller read'),
  budget_reached: problem('limit', 402, 'a budget is used up'),
  budget_held: problem('limit', 429, 'the rest of a budget is set aside for calls that are not over'),
  rate_limited: problem('limit', 429, 'too many requests'),
  too_many_streams: problem('limit', 429, 'the limit of open streams is reached'),
  upstream_busy: problem('limit', 429, 'all connections to the provider are in use'),
  runtime_not_ready: problem('unavailable', 503, 'the sandbox is still starting'),
  not_ready: problem('unavailable', 503, 'the process is still starting'),
  authorizer_unavailable: problem('unavailable', 503, 'the Kubernetes API server could not be asked'),
  database_unavailable: problem('unavailable', 503, 'the database could not be reached'),
  registry_unavailable: problem('unavailable', 503, 'the provider registry could not be read'),
  control_plane_unavailable: problem('unavailable', 503, 'the control plane could not be reached'),
  api_server_unavailable: problem('unavailable', 503, 'the Kubernetes API server could not be reached'),
  sandbox_unreachable: problem('unavailable', 503, 'the daemon of the sandbox does not answer'),
  repository_unreachable: problem('unavailable', 503, 'the git remote could not be reached'),
  repository_auth_failed: problem('forbidden', 403, 'the git remote refused the credentials'),
  repository_too_large: problem('limit', 413, 'the repository is above the size limit'),
  repository_timed_out: problem('unavailable', 504, 'the git remote did not answer in time'),
  host_not_allowed: problem('forbidden', 403, 'the host of the repository is not allowed'),
  host_key_unknown: problem('forbidden', 403, 'the host key of the git remote is not known'),
  certificate_unknown: problem('forbidden', 403, 'the certificate of the git remote is not trusted'),
  provider_auth_failed: problem('unavailable', 502, 'the provider refused its key'),
  provider_key_unavailable: problem('unavailable', 503, 'the key of the provider could not be read'),
  provider_failed: problem('unavailable', 502, 'the provider failed'),
  provider_timed_out: problem('unavailable', 504, 'the provider did not answer in time'),
  web_failed: problem('unavailable', 502, 'the search engine or the page did not answer as it should'),
  harness_failed: problem('unavailable', 502, 'the harness failed'),
  timed_out: problem('unavailable', 504, 'an operation took longer than its limit'),
  newer_database: problem('invalid', 409, 'the database was migrated by a newer, incompatible version'),
  internal: problem('bug', 500, 'something is wrong in Beeuni itself'),
} as const satisfies Record<string, Problem>;

/** One code of the closed list. */
export type ProblemCode = keyof typeof PROBLEMS;

/** Codes of one group. */
export type ProblemCodeOf<G extends ProblemGroup> = {
  [C in ProblemCode]: (typeof PROBLEMS)[C]['group'] extends G ? C : never;
}[ProblemCode];
