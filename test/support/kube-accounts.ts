// Service accounts, tokens and permissions on a real API server. Must not know who uses them.
import type { KubeClient } from '#kube/client.ts';
import { PODS, pathOf, type ResourceType, SERVICE_ACCOUNTS } from '#kube/resource-types.ts';
import { applyYaml } from './kube.ts';

const RBAC = 'rbac.authorization.k8s.io';
const rbac = (plural: string, kind: string, namespaced: boolean): ResourceType => ({
  group: RBAC,
  version: 'v1',
  plural,
  kind,
  namespaced,
});
/** Kinds of permissions. */
export const ROLE_BINDINGS = rbac('rolebindings', 'RoleBinding', true);

/** What a token is for. `pod` binds it to a pod of the same namespace. */
export type TokenWish = Readonly<{
  namespace: string;
  account: string;
  audience?: string | undefined;
  pod?: Readonly<{ name: string; uid: string }> | undefined;
}>;

/** A token of a service account, valid for an hour; without an audience it is one for the API server. */
export const tokenOf = async (client: KubeClient, wish: TokenWish): Promise<string> => {
  const answer = (await client.request({
    verb: 'create',
    type: SERVICE_ACCOUNTS,
    path: pathOf(SERVICE_ACCOUNTS, { namespace: wish.namespace, name: wish.account, subresource: 'token' }),
    body: {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: {
        expirationSeconds: 3_600,
        ...(wish.audience === undefined ? {} : { audiences: [wish.audience] }),
        ...(wish.pod === undefined ? {} : { boundObjectRef: { apiVersion: 'v1', kind: 'Pod', ...wish.pod } }),
      },
    },
    idempotent: false,
    mutates: true,
  })) as { status: { token: string } };
  return answer.status.token;
};

/** Creates a service account. */
export const createAccount = async (client: KubeClient, namespace: string, name: string): Promise<void> => {
  await client.create(SERVICE_ACCOUNTS, { metadata: { namespace, name } }, { manager: 'beeuni-test' });
};

/** Creates a pod that no kubelet will run; gives back its uid. */
export const createIdlePod = async (
  client: KubeClient,
  namespace: string,
  name: string,
  account: string,
): Promise<string> => {
  const spec = { serviceAccountName: account, containers: [{ name: 'c', image: 'none.invalid/none' }] };
  const pod = await client.create(PODS, { metadata: { namespace, name }, spec }, { manager: 'beeuni-test' });
  return pod.metadata.uid ?? '';
};

/** Lets an account do things in its namespace; rules as YAML flow text. */
export const grant = async (
  client: KubeClient,
  namespace: string,
  account: string,
  name: string,
  rules: string,
): Promise<void> => {
  const subject = `{kind: ServiceAccount, name: ${account}, namespace: ${namespace}}`;
  await applyYaml(
    client,
    `
apiVersion: ${RBAC}/v1
kind: Role
metadata: {name: ${name}}
rules: ${rules}
---
apiVersion: ${RBAC}/v1
kind: RoleBinding
metadata: {name: ${name}}
roleRef: {apiGroup: ${RBAC}, kind: Role, name: ${name}}
subjects: [${subject}]
`,
    namespace,
  );
};

/** Lets an account do things in every namespace; rules as YAML flow text. */
export const grantEverywhere = async (
  client: KubeClient,
  namespace: string,
  account: string,
  name: string,
  rules: string,
): Promise<void> => {
  await applyYaml(
    client,
    `
apiVersion: ${RBAC}/v1
kind: ClusterRole
metadata: {name: ${name}}
rules: ${rules}
---
apiVersion: ${RBAC}/v1
kind: ClusterRoleBinding
metadata: {name: ${name}}
roleRef: {apiGroup: ${RBAC}, kind: ClusterRole, name: ${name}}
subjects: [{kind: ServiceAccount, name: ${account}, namespace: ${namespace}}]
`,
  );
};

/** Lets an account call paths, for example `/v1/workspace/*`. */
export const grantPaths = async (
  client: KubeClient,
  namespace: string,
  account: string,
  name: string,
  paths: readonly string[],
): Promise<void> => {
  await applyYaml(
    client,
    `
apiVersion: ${RBAC}/v1
kind: ClusterRole
metadata: {name: ${name}}
rules: [{nonResourceURLs: ${JSON.stringify(paths)}, verbs: ['*']}]
---
apiVersion: ${RBAC}/v1
kind: ClusterRoleBinding
metadata: {name: ${name}}
roleRef: {apiGroup: ${RBAC}, kind: ClusterRole, name: ${name}}
subjects: [{kind: ServiceAccount, name: ${account}, namespace: ${namespace}}]
`,
  );
};
