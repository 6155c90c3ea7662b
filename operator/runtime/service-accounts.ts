// The one service account of the sandboxes of a namespace: made once, remembered, removed with the last Project.
// It is not watched: a pod that is refused makes us look again. Must not know who asks. Source: 10-kubernetes §5.
import { ConflictError } from '#base/errors.ts';
import { FIELD_MANAGERS } from '#kube/apply.ts';
import type { KubeClient } from '#kube/client.ts';
import { isAlreadyExists } from '#kube/errors.ts';
import { LABELS, MANAGED_BY, SANDBOX_SERVICE_ACCOUNT } from '#kube/names.ts';
import { SERVICE_ACCOUNTS } from '#kube/resource-types.ts';

/** Service accounts by namespace. */
export class ServiceAccounts {
  readonly #client: KubeClient;
  readonly #seen = new Set<string>();

  constructor(client: KubeClient) {
    this.#client = client;
  }

  /** True when the account of the namespace was read or made in this process. */
  isSeen(namespace: string): boolean {
    return this.#seen.has(namespace);
  }

  /** Looks for the account and makes it when there is none. */
  async ensure(namespace: string, signal: AbortSignal): Promise<void> {
    const ref = { namespace, name: SANDBOX_SERVICE_ACCOUNT };
    const found = await this.#client.get(SERVICE_ACCOUNTS, ref, { signal });
    if (found === undefined) await this.#create(namespace, signal);
    this.#seen.add(namespace);
  }

  /** Looks again before the next start in the namespace. */
  forget(namespace: string): void {
    this.#seen.delete(namespace);
  }

  /** Removes the account; one that is not ours stays. */
  async remove(namespace: string, signal: AbortSignal): Promise<void> {
    this.#seen.delete(namespace);
    const ref = { namespace, name: SANDBOX_SERVICE_ACCOUNT };
    const found = await this.#client.get(SERVICE_ACCOUNTS, ref, { signal });
    const { uid } = found?.metadata ?? {};
    if (uid === undefined || found?.metadata.labels?.[LABELS.managedBy] !== MANAGED_BY) return;
    await this.#client.delete(SERVICE_ACCOUNTS, ref, { uid, signal });
  }

  async #create(namespace: string, signal: AbortSignal): Promise<void> {
    const labels = { [LABELS.managedBy]: MANAGED_BY, [LABELS.partOf]: 'beeuni' };
    const object = {
      metadata: { namespace, name: SANDBOX_SERVICE_ACCOUNT, labels },
      automountServiceAccountToken: false,
    };
    try {
      await this.#client.create(SERVICE_ACCOUNTS, object, { manager: FIELD_MANAGERS.operator, signal });
    } catch (error) {
      if (!(error instanceof ConflictError) || !isAlreadyExists(error)) throw error;
    }
  }
}
