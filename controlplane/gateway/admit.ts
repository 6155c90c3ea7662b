// Whether a model call may be made, and what it becomes: the head and the body are read, the project and the registry are
// asked, aliases are resolved. Must not know keys, providers' answers or money. Source: 20-control-plane §5, FC8 to FC10.
import type { ExchangeRequest } from '#base/http/exchange.ts';
import { checkModelName, isModelAllowed } from '#schema/rules/check-model.ts';
import { TURN_HEADER } from '#schema/wire/gateway.ts';
import type { RegisteredProvider, Registry } from '../app/provider-ports.ts';
import { findModelSpan, type RequestSpan } from './model-span.ts';
import type { GatewayCall, GatewayPorts } from './ports.ts';
import type { Wire } from './wires.ts';
import { finalError, type GatewayError, retryableError } from './wording.ts';

/** A registered model that may be called. `sentName`: its name at the provider, as JSON. */
export type Target = Readonly<{
  name: string;
  sentName: Buffer;
  provider: RegisteredProvider;
  model: RegisteredProvider['models'][number];
}>;

/** A call that passed every check. `targets`: the model, then what may answer instead. */
export type Admitted = Readonly<{ bytes: Buffer; span: RequestSpan; target: Target; fallback: Target | undefined }>;

/** Largest body, whatever the ceiling says. Units: bytes. */
export const MAX_GATEWAY_BODY_BYTES = 268_435_456;

const JSON_TYPE = /^application\/json(?:; ?charset=utf-8)?$/i;
const ROLE = /^(?:role\/)?([a-z][a-z0-9_-]{0,31})$/;

/** Whether a value is an error of the gateway. */
export const isGatewayError = (value: object): value is GatewayError => 'type' in value && 'status' in value;

/** The turn that the relay names; null for none. */
const turnIdOf = ({ request }: GatewayCall): string | null => {
  const turnId = request.header(TURN_HEADER) ?? '';
  return turnId === '' ? null : turnId.slice(0, 64);
};

type Found = Target | Extract<ReturnType<typeof checkModelName>, { valid: false }>;

/** Makes the check. Errors: those of the registry and of roles. */
export const makeAdmit = (
  ports: Pick<
    GatewayPorts,
    'readRegistry' | 'findProjectPolicy' | 'resolveRole' | 'usage' | 'takeCall' | 'maxRequestBytes' | 'ceilingOfRun'
  >,
): ((call: GatewayCall, wire: Wire) => Promise<Admitted | GatewayError>) => {
  const ceiling = Math.min(
    ports.maxRequestBytes === 0 ? MAX_GATEWAY_BODY_BYTES : ports.maxRequestBytes,
    MAX_GATEWAY_BODY_BYTES,
  );
  /** Names that were looked up in a registry; a changed registry is another object. */
  let known: Readonly<{ registry: Registry; names: Map<string, Found> }> | undefined;
  const find = (name: string, registry: Registry): Found => {
    if (known?.registry !== registry) known = { registry, names: new Map() };
    const held = known.names.get(name);
    if (held !== undefined) return held;
    const verdict = checkModelName(name, registry.providers, 'served');
    if (!verdict.valid) return verdict;
    const provider = registry.providers.find(({ id }) => id === verdict.provider);
    const model = provider?.models.find(({ id }) => id === verdict.model);
    if (provider === undefined || model === undefined) throw new Error(`the registry lost ${name}`);
    const found = { name, sentName: Buffer.from(JSON.stringify(model.id)), provider, model };
    known.names.set(name, found);
    return found;
  };

  /** The first model of the provider's list that the project may use and that speaks the wire. */
  const fallbackOf = (
    { provider }: Target,
    wire: Wire,
    registry: Registry,
    allowed: readonly string[] | null,
  ): Target | undefined => {
    for (const name of provider.fallback ?? []) {
      const found = find(name, registry);
      if ('valid' in found || found.provider.kind !== wire.kind || found.provider.id === provider.id) continue;
      if (isModelAllowed(name, allowed)) return found;
    }
    return undefined;
  };

  const headProblem = (request: ExchangeRequest): GatewayError | undefined => {
    // A header that was sent more than once could be read in two ways. Source: FC10.
    if (request.countOf('content-type') !== 1 || !JSON_TYPE.test(request.header('content-type') ?? '')) {
      return finalError('unsupported_media_type');
    }
    if ((request.header('content-encoding') ?? 'identity') !== 'identity') return finalError('unsupported_media_type');
    if (request.countOf('authorization') > 1 || request.countOf('content-length') > 1) {
      return finalError('invalid_request');
    }
    return Number(request.header('content-length') ?? 0) > ceiling ? finalError('request_too_large') : undefined;
  };

  return async (call, wire) => {
    const problem = headProblem(call.request);
    if (problem !== undefined) return problem;
    if (ports.usage.isFull()) {
      return retryableError(503, 'database_unavailable', 'usage cannot be stored now; try again later', 10);
    }
    const waitMs = ports.takeCall(call.identity.sessionUid);
    if (waitMs !== undefined) {
      return retryableError(429, 'rate_limited', 'the session calls models too often; try again later', waitMs / 1_000);
    }
    const body = call.request.readBody(ceiling);
    const bytes = body instanceof Promise ? await body : body;
    if (bytes === undefined) return finalError('request_too_large');
    const ofRun = ports.ceilingOfRun?.(call.identity.sessionUid, turnIdOf(call));
    const runCeiling = typeof ofRun === 'object' ? await ofRun : ofRun;
    if (runCeiling !== undefined && bytes.length > runCeiling) return finalError('request_too_large');
    const span = findModelSpan(bytes);
    if (!span.ok) return finalError('invalid_json', span.message);
    const project = ports.findProjectPolicy(call.identity.projectUid);
    if (project === undefined) return finalError('project_not_found');
    if (!project.gateway) return finalError('feature_disabled');
    const role = ROLE.exec(span.model)?.[1];
    const name = role === undefined ? span.model : await ports.resolveRole(role, call.identity);
    if (name === undefined) {
      return finalError(
        'unknown_model',
        'the role of this request is unknown, or the workspace settings give it no model',
      );
    }
    if (ROLE.test(name)) return finalError('unknown_model');
    const read = ports.readRegistry();
    const registry = read instanceof Promise ? await read : read;
    const target = find(name, registry);
    if ('valid' in target) return finalError(target.code);
    if (!isModelAllowed(name, project.allowed)) return finalError('model_not_allowed');
    if (target.provider.kind !== wire.kind) return finalError('wire_not_supported');
    return { bytes, span, target, fallback: fallbackOf(target, wire, registry, project.allowed) };
  };
};
