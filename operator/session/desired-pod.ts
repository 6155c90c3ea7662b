// The pod of one attempt, exactly: volumes, mounts, environment, probes, security. Pure; a whole fresh object each time.
// Nothing of the Session is an input of the daemon: name, branch, agent, model and secrets come with the claim, so that a
// pod without a Session can be made the same way. Source: 10-kubernetes §7, §8.
import { ANNOTATIONS, childLabels, childName, LABELS, podName, SANDBOX_SERVICE_ACCOUNT } from '#kube/names.ts';
import { controllerReference } from '#kube/owner.ts';
import { type KubeObject, SESSIONS } from '#kube/resource-types.ts';
import type { Installation } from '#schema/installation.ts';
import type { Project } from '#schema/resources/project.ts';
import type { Session } from '#schema/resources/session.ts';
import { shortHash } from '../runtime/canonical.ts';
import { bytesQuantity, parseQuantity } from '../runtime/quantity.ts';
import type { StartChoice } from './choose-start.ts';
import { CONTAINER } from './read-pod.ts';

/** What a pod is made from. */
export type PodInputs = Readonly<{
  session: Session;
  project: Project;
  choice: StartChoice;
  installation: Installation;
  version: string;
}>;

/** Port of the daemon. Source: D12. */
export const DAEMON_PORT = 8_000;
const TOKEN_FOLDER = '/var/run/secrets/beeuni.dev/token';
const CA_FOLDER = '/etc/beeuni/ca';
/** Drain 60 and flush 30. Units: seconds. */
const FLUSH_SECONDS = 30;
/** How long a lost node is waited for before the pod is given up. Units: seconds. */
const NODE_TOLERATION_SECONDS = 120;

/**
 * The resolver asks for both address families at once from one port; where two such packets race through the node's
 * address translation one of them is lost, and it waits 5 s before it asks again. So: one after the other, each for 1 s.
 */
const RESOLVER_OPTIONS = [
  { name: 'single-request-reopen' },
  { name: 'timeout', value: '1' },
  { name: 'attempts', value: '5' },
];

const bytes = (quantity: string): string => bytesQuantity(parseQuantity(quantity) ?? 0n);

const env = ({ choice, installation }: PodInputs) => {
  const { sandbox, controlPlane, caBundle } = installation;
  const field = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } });
  const value = (name: string, text: string) => ({ name, value: text });
  return [
    value('BEEUNI_CONTROL_PLANE_URL', controlPlane.sandboxUrl),
    value('BEEUNI_TOKEN_FILE', `${TOKEN_FOLDER}/token`),
    value('BEEUNI_PORT', String(DAEMON_PORT)),
    value('BEEUNI_HARNESS', choice.harness.id),
    field('BEEUNI_NAMESPACE', 'metadata.namespace'),
    field('BEEUNI_POD_NAME', 'metadata.name'),
    field('BEEUNI_POD_UID', 'metadata.uid'),
    field('BEEUNI_NODE_NAME', 'spec.nodeName'),
    {
      name: 'BEEUNI_MEMORY_LIMIT_BYTES',
      valueFrom: { resourceFieldRef: { containerName: CONTAINER, resource: 'limits.memory' } },
    },
    value('BEEUNI_WORKSPACE_DIR', '/workspace'),
    value('BEEUNI_DATA_DIR', '/var/lib/beeunid'),
    value('BEEUNI_CONFIG_DIR', '/opt/beeuni/config'),
    value('HOME', '/home/beeuni'),
    value('TMPDIR', '/tmp'),
    value('BEEUNI_DRAIN_SECONDS', String(sandbox.drainSeconds)),
    value('BEEUNI_ISOLATION_PROBE', sandbox.network.enforcementProbe),
    value('BEEUNI_LOG_LEVEL', sandbox.logLevel),
    ...(caBundle === undefined ? [] : [value('NODE_EXTRA_CA_CERTS', `${CA_FOLDER}/ca.crt`)]),
  ];
};

const mounts = ({ installation }: PodInputs) => [
  { name: 'data', mountPath: '/workspace', subPath: 'workspace' },
  { name: 'data', mountPath: '/var/lib/beeunid', subPath: 'daemon' },
  { name: 'data', mountPath: '/root/.beaver', subPath: 'beaver' },
  { name: 'scratch', mountPath: '/opt/beeuni/config', subPath: 'config' },
  { name: 'scratch', mountPath: '/home/beeuni', subPath: 'home' },
  { name: 'scratch', mountPath: '/tmp', subPath: 'tmp' },
  { name: 'token', mountPath: TOKEN_FOLDER, readOnly: true },
  ...(installation.caBundle === undefined ? [] : [{ name: 'ca', mountPath: CA_FOLDER, readOnly: true }]),
];

const volumes = ({ session, choice, installation }: PodInputs) => {
  const { name, uid } = session.metadata;
  const { workspace } = choice;
  const token = { audience: 'beeuni-control-plane', expirationSeconds: 3_600, path: 'token' };
  return [
    workspace.type === 'Persistent'
      ? { name: 'data', persistentVolumeClaim: { claimName: childName(name, uid) } }
      : { name: 'data', emptyDir: { sizeLimit: bytes(workspace.size) } },
    { name: 'scratch', emptyDir: { sizeLimit: bytes(installation.sandbox.scratchSize) } },
    { name: 'token', projected: { defaultMode: 0o400, sources: [{ serviceAccountToken: token }] } },
    ...(installation.caBundle === undefined
      ? []
      : [{ name: 'ca', configMap: { name: installation.caBundle.configMap, defaultMode: 0o444 } }]),
  ];
};

const securityContext = (runAsUser: number | null) => ({
  runAsNonRoot: true,
  ...(runAsUser === null
    ? {}
    : { runAsUser, runAsGroup: runAsUser, fsGroup: runAsUser, fsGroupChangePolicy: 'OnRootMismatch' }),
  seccompProfile: { type: 'RuntimeDefault' },
});

const placement = ({ project, installation }: PodInputs) => {
  const { sandbox } = installation;
  const own = project.spec.sandbox;
  const lostNode = (key: string) => ({
    key: `node.kubernetes.io/${key}`,
    operator: 'Exists',
    effect: 'NoExecute',
    tolerationSeconds: NODE_TOLERATION_SECONDS,
  });
  const nodeSelector = own?.nodeSelector ?? sandbox.nodeSelector;
  const priorityClassName = own?.priorityClassName ?? sandbox.priorityClassName;
  const pullSecrets = own?.imagePullSecrets ?? sandbox.imagePullSecrets;
  const runtimeClassName =
    sandbox.runtimeClass.policy === 'required' ? (own?.runtimeClassName ?? sandbox.runtimeClass.name) : undefined;
  return {
    ...(Object.keys(nodeSelector).length === 0 ? {} : { nodeSelector }),
    tolerations: [
      lostNode('not-ready'),
      lostNode('unreachable'),
      ...(own?.tolerations ?? sandbox.tolerations).map((toleration) => ({ ...toleration })),
    ],
    ...(priorityClassName === undefined ? {} : { priorityClassName }),
    ...(runtimeClassName === undefined ? {} : { runtimeClassName }),
    ...(pullSecrets.length === 0 ? {} : { imagePullSecrets: pullSecrets.map((name) => ({ name })) }),
  };
};

const probe = (periodSeconds: number, timeoutSeconds: number, failureThreshold: number) => ({
  httpGet: { path: '/beeuni/health', port: 'daemon' },
  periodSeconds,
  timeoutSeconds,
  failureThreshold,
});

/** `spec` of the pod: the same for every attempt until an input changes. */
export const desiredPodSpec = (inputs: PodInputs) => {
  const { choice, installation } = inputs;
  const { sandbox } = installation;
  return {
    restartPolicy: 'Never',
    serviceAccountName: SANDBOX_SERVICE_ACCOUNT,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    dnsConfig: { options: RESOLVER_OPTIONS.map((option) => ({ ...option })) },
    terminationGracePeriodSeconds: sandbox.drainSeconds + FLUSH_SECONDS,
    securityContext: securityContext(sandbox.runAsUser),
    ...placement(inputs),
    containers: [
      {
        name: CONTAINER,
        image: choice.image,
        ...(sandbox.imagePullPolicy === undefined ? {} : { imagePullPolicy: sandbox.imagePullPolicy }),
        ports: [{ name: 'daemon', containerPort: DAEMON_PORT, protocol: 'TCP' }],
        env: env(inputs),
        resources: choice.resources,
        volumeMounts: mounts(inputs),
        securityContext: {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        },
        startupProbe: probe(1, 2, 60),
        livenessProbe: probe(10, 5, 6),
        terminationMessagePolicy: 'FallbackToLogsOnError',
      },
    ],
    volumes: volumes(inputs),
  };
};

/** Hash of the pod that a start now would make; names, labels, annotations and owner do not count. Source: K26. */
export const podHash = (inputs: PodInputs): string => shortHash(desiredPodSpec(inputs));

/** The pod of an attempt; attempts count from 1. Source: 10-kubernetes §5, §7. */
export const desiredPod = (inputs: PodInputs, attempt: number): KubeObject => {
  const { session, choice, version } = inputs;
  const { name, namespace, uid } = session.metadata;
  const spec = desiredPodSpec(inputs);
  const { restartToken } = session.spec;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: podName(name, uid, attempt),
      namespace,
      labels: {
        ...childLabels({
          project: session.spec.projectRef.name,
          session: name,
          sessionUid: uid,
          source: session.spec.source.kind,
          version,
        }),
        [LABELS.harness]: choice.harness.id,
      },
      annotations: {
        [ANNOTATIONS.attempt]: String(attempt),
        [ANNOTATIONS.harnessReason]: choice.harness.reason,
        [ANNOTATIONS.gateway]: choice.gateway ? 'on' : 'off',
        ...(restartToken === undefined ? {} : { [ANNOTATIONS.restartToken]: restartToken }),
        [ANNOTATIONS.podHash]: shortHash(spec),
        // Autoscalers wait; a human drain goes through. Source: K17.
        'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false',
        'karpenter.sh/do-not-disrupt': 'true',
      },
      ownerReferences: [controllerReference(SESSIONS, session.metadata)],
    },
    spec,
  };
};
