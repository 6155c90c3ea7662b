// The pool of keys of a provider: which keys a change leaves, what may be shown of them, and how they are read for a call.
// Must not know SQL, Kubernetes or who calls a provider. Source: 20-control-plane §4, A217.
import type { Clock } from '#base/clock.ts';
import { InvalidError, UnavailableError } from '#base/errors.ts';
import {
  MAX_PROVIDER_KEYS,
  PROVIDER_SECRET_TYPE,
  type ProviderInput,
  type ProviderView,
  providerKeyId,
} from '#schema/settings/providers.ts';
import type { Seal, Unseal } from './ports.ts';
import type { ReadSecret } from './project-ports.ts';
import type {
  ProviderDefinition,
  ProviderKey,
  ReadProviderKeys,
  RegisteredProvider,
  SealedKey,
  StoredProvider,
} from './provider-ports.ts';

/** The context that every key of a provider is sealed with. */
export const providerKeyContext = (id: string): string => `provider:${id}:api_key`;

/** Id of the key that `api_key` gives. */
export const DEFAULT_KEY_ID = 'default';
/** A key shorter than this shows nothing of itself. */
const SHOWN_FROM_CHARACTERS = 16;
/** Longest key that a Secret may hold. */
const MAX_KEY_CHARACTERS = 4_096;
/** How long the keys of a Secret count, and how long they go on while the API server is away. Units: milliseconds. */
const SECRET_FRESH_MS = 3_000;
const SECRET_GRACE_MS = 600_000;

/** Where the keys are after a change. Absent `keys` keep the stored ones. */
export type DecidedCredential = Readonly<{
  keys: readonly SealedKey[] | undefined;
  secret: ProviderDefinition['secret'];
  /** Whether any key goes on that the caller did not send with this change. */
  keepsKeys: boolean;
}>;

const refuse = (message: string, path: string): never => {
  throw new InvalidError('invalid_provider', message, { details: { path } });
};

/** Decides the pool. Errors: InvalidError `invalid_provider`, which names the field and never a value. */
export const decideCredential = (
  input: Pick<ProviderInput, 'api_key' | 'credential'>,
  before: StoredProvider | undefined,
  sealing: Readonly<{ seal: (value: string) => Buffer; at: string }>,
): DecidedCredential => {
  const { api_key: short, credential } = input;
  const made = (id: string, value: string): SealedKey => ({
    id,
    sealed: sealing.seal(value),
    lastFour: value.length < SHOWN_FROM_CHARACTERS ? null : value.slice(-4),
    addedAt: sealing.at,
  });
  if (short !== undefined) {
    if (credential !== undefined) refuse('give api_key or credential, not both', 'api_key');
    return { keys: [made(DEFAULT_KEY_ID, short)], secret: undefined, keepsKeys: false };
  }
  if (credential === undefined) {
    const secret = before?.definition.secret;
    return { keys: undefined, secret, keepsKeys: secret !== undefined || (before?.keys.length ?? 0) > 0 };
  }
  const { api_keys: wished, secret } = credential;
  if ((wished === undefined) === (secret === undefined)) {
    refuse('give exactly one of api_keys and secret', 'credential');
  }
  if (secret !== undefined) return { keys: [], secret, keepsKeys: false };
  const given = new Set((wished ?? []).flatMap(({ id }) => id ?? []));
  const freshId = (): string => {
    for (let n = 1; ; n += 1) {
      if (given.has(`key-${n}`)) continue;
      given.add(`key-${n}`);
      return `key-${n}`;
    }
  };
  const values = (wished ?? []).map(({ value }) => value);
  const twice = values.findIndex((value, at) => value !== undefined && values.indexOf(value) !== at);
  if (twice !== -1)
    refuse('this key is in the list already; a pool holds each key once', `credential.api_keys[${twice}]`);
  let keepsKeys = false;
  const keys = (wished ?? []).map(({ id, value }, at): SealedKey => {
    const path = `credential.api_keys[${at}]`;
    if (value !== undefined) return made(id ?? freshId(), value);
    const kept = before?.keys.find((key) => key.id === id);
    keepsKeys = true;
    return kept ?? refuse('a key without a value must name a stored one', path);
  });
  const duplicate = keys.findIndex((key, at) => keys.findIndex(({ id }) => id === key.id) !== at);
  if (duplicate !== -1) refuse('two keys have the same id', `credential.api_keys[${duplicate}].id`);
  return { keys, secret: undefined, keepsKeys };
};

/** What may be read of the keys. */
export const credentialViewOf = ({ keys, definition }: StoredProvider): ProviderView['credential'] => ({
  api_keys: keys.map(({ id, lastFour, addedAt }) => ({ id, last_four: lastFour, added_at: addedAt })),
  secret: definition.secret ?? null,
});

const unavailable = (message: string): UnavailableError =>
  new UnavailableError('provider_key_unavailable', message, { retryAfterMs: 5_000 });

/** The keys that the entries of a Secret give, in the order of their names. Errors: UnavailableError. */
const keysOfSecret = (name: string, data: Readonly<Record<string, Buffer>>): readonly ProviderKey[] => {
  const keys = Object.entries(data)
    .map(([id, value]): ProviderKey => ({ id, secret: value.toString('utf8').trim() }))
    .sort((a, b) => (a.id < b.id ? -1 : 1));
  if (keys.length === 0) throw unavailable(`Secret ${name} has no entry`);
  if (keys.length > MAX_PROVIDER_KEYS) throw unavailable(`Secret ${name} has more than ${MAX_PROVIDER_KEYS} entries`);
  const bad = keys.find(
    ({ id, secret }) =>
      !providerKeyId.safeParse(id).success || secret.length > MAX_KEY_CHARACTERS || !/^[\x21-\x7e]+$/.test(secret),
  );
  if (bad !== undefined) throw unavailable(`entry ${bad.id.slice(0, 63)} of Secret ${name} is no key`);
  return keys;
};

/** What reading needs. `namespace` is that of the installation: the only one whose Secrets a provider may name. */
export type ReadProviderKeysPorts = Readonly<{
  unseal: Unseal;
  readSecret: ReadSecret;
  namespace: string;
  clock: Pick<Clock, 'monotonicMs'>;
}>;

/** Makes the reader. Keys of the database are as fresh as the registry that is given; those of a Secret at most 3 s old. */
export const makeReadProviderKeys = (ports: ReadProviderKeysPorts): ReadProviderKeys => {
  const { clock, namespace } = ports;
  const opened = new WeakMap<RegisteredProvider, readonly ProviderKey[]>();
  const held = new Map<string, Readonly<{ keys: readonly ProviderKey[]; readAtMs: number }>>();
  const running = new Map<string, Promise<readonly ProviderKey[]>>();

  const open = (provider: RegisteredProvider): readonly ProviderKey[] => {
    const known = opened.get(provider);
    if (known !== undefined) return known;
    const keys = provider.keys.map(({ id, sealed }): ProviderKey => {
      try {
        return { id, secret: ports.unseal(sealed, providerKeyContext(provider.id)) };
      } catch (error) {
        throw new UnavailableError(
          'provider_key_unavailable',
          `key ${id} of provider ${provider.id} cannot be opened with the encryption keys of this installation`,
          { cause: error, retryAfterMs: 60_000 },
        );
      }
    });
    opened.set(provider, keys);
    return keys;
  };

  const readSecret = async (name: string): Promise<readonly ProviderKey[]> => {
    const readAtMs = clock.monotonicMs();
    const answer = await ports.readSecret(namespace, name);
    if (answer.kind !== 'found') {
      held.delete(name);
      throw unavailable(answer.message);
    }
    if (answer.secret.type !== PROVIDER_SECRET_TYPE) {
      held.delete(name);
      throw unavailable(`Secret ${name} is not of type ${PROVIDER_SECRET_TYPE}`);
    }
    const keys = keysOfSecret(name, answer.secret.data);
    held.set(name, { keys, readAtMs });
    return keys;
  };

  const fromSecret = async (name: string): Promise<readonly ProviderKey[]> => {
    const known = held.get(name);
    const ageMs = known === undefined ? Number.POSITIVE_INFINITY : clock.monotonicMs() - known.readAtMs;
    if (known !== undefined && ageMs < SECRET_FRESH_MS) return known.keys;
    const reading = running.get(name) ?? readSecret(name).finally(() => running.delete(name));
    running.set(name, reading);
    try {
      return await reading;
    } catch (error) {
      // The API server is away: what was read goes on for a while. A Secret that is gone or wrong ends at once.
      const isAway = error instanceof UnavailableError && error.code !== 'provider_key_unavailable';
      if (isAway && known !== undefined && ageMs < SECRET_GRACE_MS) return known.keys;
      throw error;
    }
  };

  return (provider) => (provider.secret === undefined ? open(provider) : fromSecret(provider.secret.name));
};

/** Seals one key of a provider. */
export const sealProviderKey =
  (seal: Seal, id: string) =>
  (value: string): Buffer =>
    seal(value, providerKeyContext(id));
