// Which state a change of the REST API is about: the spec of a custom resource, or a provider's definition.
// Prompts, events and files have no declared state. Must not know how either is stored. Source: 20-control-plane §2.
import type { ReadState } from './guard.ts';

/** What reading needs. Errors of both: UnavailableError. */
export type ReadStatePorts = Readonly<{
  readSpec: (kind: 'projects' | 'sessions', namespace: string, name: string) => Promise<unknown>;
  /** Everything of a provider that is no key; undefined when there is none. */
  findProvider: (id: string) => Promise<unknown>;
}>;

const PROVIDERS = '/v1/workspace/providers';

/** Makes the read. */
export const makeReadState =
  ({ readSpec, findProvider }: ReadStatePorts): ReadState =>
  async ({ auth, path }, { namespace, name, id }) => {
    if (auth.kind === 'resource' && auth.subresource === undefined) {
      return namespace === undefined || name === undefined ? undefined : readSpec(auth.resource, namespace, name);
    }
    return path.startsWith(PROVIDERS) && id !== undefined ? findProvider(id) : undefined;
  };
