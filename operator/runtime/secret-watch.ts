// The metadata of Secrets, per namespace, only where a Project refers to one. Values are never asked for.
// Where we may not list Secrets nothing is known, and nothing else suffers. Must not know Projects beyond their keys.
// Source: 10-kubernetes §5, §6; D10.
import { Informer, type InformerPorts } from '#kube/informer.ts';
import { SECRETS } from '#kube/resource-types.ts';

type Secret = Readonly<{ version: string }>;

/** Watches by namespace; a watch is opened at the first wish and stays. */
export class SecretWatch {
  readonly #ports: InformerPorts;
  readonly #onChange: (namespace: string, name: string) => void;
  readonly #informers = new Map<string, Informer<Secret>>();

  /** `onChange` is called with the name of a Secret that came, went or changed; with '' once a namespace is read. */
  constructor(ports: InformerPorts, onChange: (namespace: string, name: string) => void) {
    this.#ports = ports;
    this.#onChange = onChange;
  }

  /**
   * Version of each Secret as the watch shows it, empty for one that is not there; undefined while the namespace is not
   * read. Opens the watch of the namespace when names are given.
   */
  versions(namespace: string, names: readonly string[]): ReadonlyMap<string, string> | undefined {
    if (names.length === 0) return undefined;
    const informer = this.#informers.get(namespace) ?? this.#open(namespace);
    if (!informer.hasSynced()) return undefined;
    return new Map(names.map((name) => [name, informer.cache.get(`${namespace}/${name}`)?.version ?? '']));
  }

  /** Ends all watches. */
  async stop(): Promise<void> {
    await Promise.all([...this.#informers.values()].map((informer) => informer.stop()));
  }

  #open(namespace: string): Informer<Secret> {
    const informer = new Informer<Secret>(
      {
        type: SECRETS,
        selection: { namespace, metadataOnly: true },
        project: ({ metadata }) => ({ version: metadata.resourceVersion ?? '' }),
      },
      this.#ports,
    );
    this.#informers.set(namespace, informer);
    informer.subscribe((key) => this.#onChange(namespace, key.slice(namespace.length + 1)));
    informer.start();
    void informer.whenSynced().then((synced) => {
      if (synced) this.#onChange(namespace, '');
    });
    return informer;
  }
}
