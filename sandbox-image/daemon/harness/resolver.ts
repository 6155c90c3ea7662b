// Harness id to adapter: the only file that imports adapters, each when it is asked for. Must not know the host.
import type { Adapter } from './contract/adapter.ts';

const LOADERS: Readonly<Record<string, () => Promise<Adapter>>> = {
  opencode: async () => (await import('./opencode/adapter.ts')).opencodeAdapter,
  pi: async () => (await import('./pi/adapter.ts')).piAdapter,
};

/** Ids that this build has an adapter for, in a fixed order. */
export const ADAPTER_IDS: readonly string[] = Object.keys(LOADERS);

/** Ids that exist in the product, with or without an adapter here. Source: 00-product §4. */
export const KNOWN_HARNESS_IDS: readonly string[] = ['opencode', 'pi', 'beaver'];

/** The adapter of an id; undefined when this build has none. Never another harness in its place. Source: A12. */
export const findAdapter = async (id: string): Promise<Adapter | undefined> => {
  const load = Object.hasOwn(LOADERS, id) ? LOADERS[id] : undefined;
  return load === undefined ? undefined : load();
};
