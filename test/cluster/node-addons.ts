// Objects that every node cluster gets at its start: the default StorageClass and CoreDNS. Pure.
import { provisionerName } from './node-config.ts';
import type { NodeLayout } from './node-layout.ts';

const corefile = `.:53 {
  errors
  health
  ready
  kubernetes cluster.local in-addr.arpa ip6.arpa {
    pods verified
    fallthrough in-addr.arpa ip6.arpa
    ttl 5
  }
  cache 5
}
`;

/** An object, and the path that it is posted to. */
export interface AddonObject {
  readonly path: string;
  readonly object: unknown;
}

/** What to create, in this order. CoreDNS has no upstream: names outside the cluster answer SERVFAIL at once. */
export function addonObjects(layout: NodeLayout): AddonObject[] {
  const name = 'coredns';
  const namespace = 'kube-system';
  const labels = { 'k8s-app': 'kube-dns' };
  const rbac = 'rbac.authorization.k8s.io';
  const role = `system:${name}`;
  const read = ['list', 'watch'];
  const container = {
    name,
    image: layout.kubeImage,
    imagePullPolicy: 'Never',
    args: ['coredns', '-conf', '/etc/coredns/Corefile'],
    ports: [
      { containerPort: 53, name: 'dns', protocol: 'UDP' },
      { containerPort: 53, name: 'dns-tcp', protocol: 'TCP' },
    ],
    readinessProbe: { httpGet: { path: '/ready', port: 8181 }, periodSeconds: 1 },
    livenessProbe: { httpGet: { path: '/health', port: 8080 }, initialDelaySeconds: 5 },
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'], add: ['NET_BIND_SERVICE'] },
    },
    volumeMounts: [{ name: 'config', mountPath: '/etc/coredns', readOnly: true }],
  };
  const inNamespace = `namespaces/${namespace}`;
  return [
    {
      path: '/apis/storage.k8s.io/v1/storageclasses',
      object: {
        apiVersion: 'storage.k8s.io/v1',
        kind: 'StorageClass',
        metadata: { name: 'standard', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
        provisioner: provisionerName,
        reclaimPolicy: 'Delete',
        volumeBindingMode: 'WaitForFirstConsumer',
      },
    },
    {
      path: `/api/v1/${inNamespace}/serviceaccounts`,
      object: { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } },
    },
    {
      path: `/apis/${rbac}/v1/clusterroles`,
      object: {
        apiVersion: `${rbac}/v1`,
        kind: 'ClusterRole',
        metadata: { name: role },
        rules: [
          { apiGroups: [''], resources: ['endpoints', 'services', 'pods', 'namespaces'], verbs: read },
          { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: read },
        ],
      },
    },
    {
      path: `/apis/${rbac}/v1/clusterrolebindings`,
      object: {
        apiVersion: `${rbac}/v1`,
        kind: 'ClusterRoleBinding',
        metadata: { name: role },
        roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: role },
        subjects: [{ kind: 'ServiceAccount', name, namespace }],
      },
    },
    {
      path: `/api/v1/${inNamespace}/configmaps`,
      object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace }, data: { Corefile: corefile } },
    },
    {
      path: `/apis/apps/v1/${inNamespace}/deployments`,
      object: {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name, namespace, labels },
        spec: {
          replicas: 1,
          selector: { matchLabels: labels },
          template: {
            metadata: { labels },
            spec: {
              serviceAccountName: name,
              dnsPolicy: 'Default',
              terminationGracePeriodSeconds: 1,
              priorityClassName: 'system-cluster-critical',
              containers: [container],
              volumes: [{ name: 'config', configMap: { name } }],
            },
          },
        },
      },
    },
    {
      path: `/api/v1/${inNamespace}/services`,
      object: {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'kube-dns', namespace, labels },
        spec: {
          clusterIP: layout.dnsService,
          selector: labels,
          ports: [
            { name: 'dns', port: 53, protocol: 'UDP' },
            { name: 'dns-tcp', port: 53, protocol: 'TCP' },
          ],
        },
      },
    },
  ];
}
