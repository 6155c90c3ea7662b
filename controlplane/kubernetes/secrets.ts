// Reads single Secrets of projects, by name; nothing is listed, watched or kept. What the control plane may not read is
// an answer with the command that would grant it. Must not know what the values are for. Source: D9, D10, CredentialsReady.
import { ForbiddenError } from '#base/errors.ts';
import type { KubeClient } from '#kube/client.ts';
import { type KubeObject, SECRETS } from '#kube/resource-types.ts';

/** A Secret with its values decoded from base64. */
export type SecretData = Readonly<{ type: string; data: Readonly<Record<string, Buffer>>; resourceVersion: string }>;

/** What became of reading a Secret. Messages name it and never hold a value. */
export type SecretAnswer =
  | Readonly<{ kind: 'found'; secret: SecretData }>
  | Readonly<{ kind: 'not-found'; message: string }>
  | Readonly<{ kind: 'access-denied'; message: string }>;

/** What became of reading one key of a Secret. */
export type SecretValueAnswer =
  | Readonly<{ kind: 'found'; value: Buffer }>
  | Exclude<SecretAnswer, { kind: 'found' }>
  | Readonly<{ kind: 'key-missing'; message: string }>;

/** Reads. Errors of both: UnavailableError `api_server_unavailable`. */
export type Secrets = Readonly<{
  readSecret: (namespace: string, name: string) => Promise<SecretAnswer>;
  readSecretValue: (namespace: string, name: string, key: string) => Promise<SecretValueAnswer>;
}>;

/** What the reads need. `account` is our own service account as `namespace:name`, for the command that grants access. */
export type SecretsPorts = Readonly<{ client: KubeClient; account: string }>;

const decode = (object: KubeObject): SecretData => {
  const values = object['data'];
  const data: Record<string, Buffer> = {};
  for (const [key, value] of Object.entries(typeof values === 'object' && values !== null ? values : {})) {
    if (typeof value === 'string') data[key] = Buffer.from(value, 'base64');
  }
  return {
    type: typeof object['type'] === 'string' ? object['type'] : '',
    data,
    resourceVersion: object.metadata.resourceVersion ?? '',
  };
};

/** The command that lets us read Secrets of a namespace. */
export const grantCommand = (namespace: string, account: string): string =>
  `kubectl -n ${namespace} create role beeuni-secrets --verb=get --resource=secrets && ` +
  `kubectl -n ${namespace} create rolebinding beeuni-secrets --role=beeuni-secrets --serviceaccount=${account}`;

/** Reads of Secrets over one client. */
export const makeSecrets = (ports: SecretsPorts): Secrets => {
  const readSecret = async (namespace: string, name: string): Promise<SecretAnswer> => {
    try {
      const object = await ports.client.get(SECRETS, { namespace, name });
      return object === undefined
        ? { kind: 'not-found', message: `Secret ${name} does not exist` }
        : { kind: 'found', secret: decode(object) };
    } catch (error) {
      if (!(error instanceof ForbiddenError)) throw error;
      const command = grantCommand(namespace, ports.account);
      return { kind: 'access-denied', message: `Secret ${name} may not be read; grant it with: ${command}` };
    }
  };
  return {
    readSecret,
    readSecretValue: async (namespace, name, key) => {
      const answer = await readSecret(namespace, name);
      if (answer.kind !== 'found') return answer;
      const value = answer.secret.data[key];
      return value === undefined
        ? { kind: 'key-missing', message: `Secret ${name} has no key ${key}` }
        : { kind: 'found', value };
    },
  };
};
