// Where sessions and other providers name a provider or its models: what deleting or disabling would break. Pure.
// Must not know where either is kept. Source: 20-control-plane §4.
import type { Session } from '#schema/resources/session.ts';
import type { RegisteredProvider } from './provider-ports.ts';

const isNamed = (name: string, providerId: string, models: ReadonlySet<string> | undefined): boolean =>
  name.startsWith(`${providerId}/`) && (models === undefined || models.has(name.slice(providerId.length + 1)));

const FINISHED: ReadonlySet<string> = new Set(['Succeeded', 'Failed', 'Expired']);

/** Sessions that are not finished and name the provider, or one of the given models of it. */
export const sessionReferences = (
  sessions: readonly Session[],
  providerId: string,
  models: ReadonlySet<string> | undefined,
): readonly string[] =>
  sessions
    .filter(
      ({ metadata, spec, status }) =>
        metadata.deletionTimestamp === undefined &&
        !FINISHED.has(status?.phase ?? '') &&
        spec.model !== undefined &&
        isNamed(spec.model, providerId, models),
    )
    .map(({ metadata, spec }) => `session ${metadata.namespace}/${metadata.name}: spec.model (${spec.model})`);

/** Other providers that fall back to the provider, or to one of the given models of it. */
export const fallbackReferences = (
  providers: readonly RegisteredProvider[],
  providerId: string,
  models: ReadonlySet<string> | undefined,
): readonly string[] =>
  providers
    .filter(({ id }) => id !== providerId)
    .flatMap(({ id, fallback }) =>
      (fallback ?? [])
        .filter((name) => isNamed(name, providerId, models))
        .map((name) => `provider ${id}: fallback (${name})`),
    );
