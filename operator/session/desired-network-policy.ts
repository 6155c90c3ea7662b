// The network policy of a sandbox: default deny, the control plane, DNS, and what the Project's egress allows. Pure.
// Every field is spelled out as the API server stores it, so that the hash of what is stored tells an edit by hand.
// Must not know pods. Source: 10-kubernetes §7, K21.
import { ANNOTATIONS, childLabels, childName, LABELS } from '#kube/names.ts';
import { controllerReference } from '#kube/owner.ts';
import { type KubeObject, SESSIONS } from '#kube/resource-types.ts';
import type { Installation } from '#schema/installation.ts';
import type { Project } from '#schema/resources/project.ts';
import type { Session } from '#schema/resources/session.ts';
import { shortHash } from '../runtime/canonical.ts';
import { reachOf } from '../runtime/cidr.ts';
import { DAEMON_PORT } from './desired-pod.ts';

/** What a policy is made from. */
export type NetworkPolicyInputs = Readonly<{
  session: Session;
  egress: Project['spec']['egress'];
  installation: Installation;
  version: string;
}>;

type Port = Readonly<{ port: number; protocol: 'TCP' | 'UDP' }>;
type Rule = Readonly<{ ports: readonly Port[]; to: readonly unknown[] }>;

const NAMESPACE_NAME = 'kubernetes.io/metadata.name';
const WEB: readonly Port[] = [80, 443].map((port) => ({ port, protocol: 'TCP' }));

const podsOf = (namespace: string, podLabels: Readonly<Record<string, string>>) => ({
  namespaceSelector: { matchLabels: { [NAMESPACE_NAME]: namespace } },
  podSelector: { matchLabels: { ...podLabels } },
});

const toNetwork = (cidr: string, ports: readonly Port[], installation: Installation): Rule[] => {
  const reach = reachOf(cidr, installation.sandbox.network);
  if (!reach.allowed) return [];
  const ipBlock = reach.except.length === 0 ? { cidr } : { cidr, except: [...reach.except] };
  return [{ ports, to: [{ ipBlock }] }];
};

const egressRules = ({ egress, installation }: NetworkPolicyInputs): Rule[] => {
  const { dns } = installation.sandbox.network;
  const { controlPlane } = installation;
  const always: Rule[] = [
    {
      ports: (['UDP', 'TCP'] as const).map((protocol) => ({ port: dns.port, protocol })),
      to: [podsOf(dns.namespace, dns.podLabels)],
    },
    {
      ports: [{ port: controlPlane.sandboxPort, protocol: 'TCP' }],
      to: [podsOf(controlPlane.namespace, controlPlane.podLabels)],
    },
  ];
  if (egress.mode === 'Restricted') return always;
  const listed = (egress.allow ?? []).flatMap(({ cidr, ports }) =>
    toNetwork(
      cidr,
      ports.map(({ port, protocol }) => ({ port, protocol })),
      installation,
    ),
  );
  const web = egress.mode === 'Public' ? ['0.0.0.0/0', '::/0'].flatMap((all) => toNetwork(all, WEB, installation)) : [];
  return [...always, ...web, ...listed];
};

/** `spec` of the policy. */
export const desiredNetworkPolicySpec = (inputs: NetworkPolicyInputs) => {
  const { session, installation } = inputs;
  const { controlPlane } = installation;
  return {
    podSelector: { matchLabels: { [LABELS.sessionUid]: session.metadata.uid } },
    policyTypes: ['Ingress', 'Egress'],
    ingress: [
      {
        from: [podsOf(controlPlane.namespace, controlPlane.podLabels)],
        ports: [{ port: DAEMON_PORT, protocol: 'TCP' }],
      },
    ],
    egress: egressRules(inputs),
  };
};

/** Hash of the policy that is wanted now, equal to that of the same policy as the server stores it. */
export const networkPolicyHash = (inputs: NetworkPolicyInputs): string => shortHash(desiredNetworkPolicySpec(inputs));

/** The policy of a Session. */
export const desiredNetworkPolicy = (inputs: NetworkPolicyInputs): KubeObject => {
  const { session, version } = inputs;
  const { name, namespace, uid } = session.metadata;
  const spec = desiredNetworkPolicySpec(inputs);
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: {
      name: childName(name, uid),
      namespace,
      labels: childLabels({
        project: session.spec.projectRef.name,
        session: name,
        sessionUid: uid,
        source: session.spec.source.kind,
        version,
      }),
      annotations: { [ANNOTATIONS.specHash]: shortHash(spec) },
      ownerReferences: [controllerReference(SESSIONS, session.metadata)],
    },
    spec,
  };
};
