// The objects that `make up` applies besides the chart: the demo services, the person who uses the API, the sample
// Project and Session. Pure: names in, objects out.

/** Names that `make up` uses everywhere. */
export const NAMES = {
  release: 'beeuni',
  systemNamespace: 'beeuni-system',
  namespace: 'beeuni-demo',
  servicesNamespace: 'beeuni-demo-services',
  user: 'demo-user',
  gitHost: 'git.beeuni-demo-services.svc',
  gitPort: 8091,
  modelHost: 'model.beeuni-demo-services.svc',
  modelPort: 8092,
  controlPlaneService: 'beeuni-control-plane',
} as const;

const labels = (name: string) => ({ 'app.kubernetes.io/name': name, 'app.kubernetes.io/part-of': 'beeuni-demo' });

const service = (name: string, image: string, port: number, args: readonly string[]): readonly object[] => [
  {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: NAMES.servicesNamespace, labels: labels(name) },
    spec: {
      replicas: 1,
      strategy: { type: 'Recreate' },
      selector: { matchLabels: { 'app.kubernetes.io/name': name } },
      template: {
        metadata: { labels: labels(name) },
        spec: {
          enableServiceLinks: false,
          automountServiceAccountToken: false,
          terminationGracePeriodSeconds: 2,
          securityContext: {
            runAsNonRoot: true,
            runAsUser: 1000,
            runAsGroup: 1000,
            fsGroup: 1000,
            seccompProfile: { type: 'RuntimeDefault' },
          },
          containers: [
            {
              name,
              image,
              imagePullPolicy: 'IfNotPresent',
              command: ['tini', '--', 'node', ...args],
              ports: [{ name: 'http', containerPort: port }],
              readinessProbe: { tcpSocket: { port: 'http' }, periodSeconds: 1 },
              securityContext: {
                allowPrivilegeEscalation: false,
                readOnlyRootFilesystem: true,
                capabilities: { drop: ['ALL'] },
              },
              volumeMounts: [
                { name: 'data', mountPath: '/data' },
                { name: 'data', mountPath: '/tmp', subPath: 'tmp' },
              ],
            },
          ],
          volumes: [
            name === 'git'
              ? { name: 'data', persistentVolumeClaim: { claimName: 'git' } }
              : { name: 'data', emptyDir: { sizeLimit: '256Mi' } },
          ],
        },
      },
    },
  },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: NAMES.servicesNamespace, labels: labels(name) },
    spec: { selector: { 'app.kubernetes.io/name': name }, ports: [{ name: 'http', port, targetPort: 'http' }] },
  },
];

/** The git server with the sample repositories and, unless a real model is given, the scripted model. */
export const demoServices = (image: string, withModel: boolean): readonly object[] => [
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMES.servicesNamespace } },
  {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'git', namespace: NAMES.servicesNamespace },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  },
  ...service('git', image, NAMES.gitPort, [
    'examples/demo/git-server.ts',
    '--port',
    String(NAMES.gitPort),
    '--host',
    '0.0.0.0',
    '--root',
    '/data/repositories',
    '--create-on-push',
  ]),
  ...(withModel
    ? service('model', image, NAMES.modelPort, [
        'examples/demo/scripted-model.ts',
        '--port',
        String(NAMES.modelPort),
        '--host',
        '0.0.0.0',
        '--models',
        'demo-large',
      ])
    : []),
];

/** The person of the demo: administrator of the demo namespace and of the workspace settings. */
export const demoUser = (): readonly object[] => [
  {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: NAMES.user, namespace: NAMES.namespace },
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: NAMES.user, namespace: NAMES.namespace },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'admin' },
    subjects: [{ kind: 'ServiceAccount', name: NAMES.user, namespace: NAMES.namespace }],
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: 'beeuni-demo-user' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'beeuni-workspace-admin' },
    subjects: [{ kind: 'ServiceAccount', name: NAMES.user, namespace: NAMES.namespace }],
  },
];

/** The sample Project. `credentialsSecretName` is left out for a repository that needs none. */
export const sampleProject = (
  name: string,
  url: string,
  model: string,
  credentialsSecretName: string | undefined,
): object => ({
  apiVersion: 'beeuni.dev/v1alpha1',
  kind: 'Project',
  metadata: { name, namespace: NAMES.namespace },
  spec: {
    repository: {
      url,
      ...(credentialsSecretName === undefined ? {} : { credentialsSecretRef: { name: credentialsSecretName } }),
    },
    defaults: { model },
  },
});

/**
 * Which model a sample Session was made for, as provider/model: another model gets a Session of its own.
 * Not under beeuni.dev/, whose names only Beeuni sets.
 */
export const MODEL_ANNOTATION = 'beeuni-up/model';

/** The sample Session: one prompt on a branch of its own. */
export const sampleSession = (name: string, project: string, prompt: string, model?: string): object => ({
  apiVersion: 'beeuni.dev/v1alpha1',
  kind: 'Session',
  metadata: {
    name,
    namespace: NAMES.namespace,
    ...(model === undefined ? {} : { annotations: { [MODEL_ANNOTATION]: model } }),
  },
  spec: { projectRef: { name: project }, prompt, workspace: { size: '1Gi' } },
});

/** A valid name of a Project for a repository path or URL: its last segment in lower case, at most 40 characters. */
export const projectNameFor = (repository: string): string =>
  (repository.replace(/\/+$/, '').split(/[/:]/).at(-1) ?? '')
    .replace(/\.git$/, '')
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, 40)
    .replace(/-+$/, '') || 'project';
