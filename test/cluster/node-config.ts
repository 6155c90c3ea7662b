// Configuration files and command lines of the node's components, and the certificates they present. Pure: text from a layout.
import { apiserverArgs, controllerManagerArgs } from './component-flags.ts';
import { controlPlaneLayout, type NodeLayout } from './node-layout.ts';
import type { CertificateRequest } from './pki.ts';

/** Number of the kernel queue in which new connections of pods wait for the policy engine; node-init.sh fills it. */
export const policyQueue = 100;

/** Provisioner of the default StorageClass. */
export const provisionerName = 'beeuni.dev/directories';

/** The two authorities of {@link certificateRequests}. */
export const authorities = ['ca', 'front-proxy-ca'] as const;

/** Every certificate of a node cluster. */
export function certificateRequests(layout: NodeLayout): CertificateRequest[] {
  const client = (name: string, subject: string): CertificateRequest => ({
    name,
    authority: 'ca',
    subject,
    usage: 'clientAuth',
  });
  const service = 'kubernetes.default.svc.cluster.local'.split('.');
  const serviceNames = [1, 2, 3, 5].map((length) => `DNS:${service.slice(0, length).join('.')}`);
  const nodeSubject = `/O=system:nodes/CN=system:node:${layout.nodeName}`;
  return [
    {
      name: 'apiserver',
      authority: 'ca',
      subject: '/CN=kube-apiserver',
      usage: 'serverAuth',
      altNames: [
        ...serviceNames,
        'DNS:localhost',
        'IP:127.0.0.1',
        `IP:${layout.nodeAddress}`,
        `IP:${layout.apiserverService}`,
      ],
    },
    {
      name: 'kubelet-server',
      authority: 'ca',
      subject: nodeSubject,
      usage: 'serverAuth',
      altNames: [`DNS:${layout.nodeName}`, `IP:${layout.nodeAddress}`, 'IP:127.0.0.1'],
    },
    client('apiserver-kubelet-client', '/O=system:masters/CN=kube-apiserver-kubelet-client'),
    { name: 'front-proxy-client', authority: 'front-proxy-ca', subject: '/CN=front-proxy-client', usage: 'clientAuth' },
    client('admin', '/O=system:masters/CN=admin'),
    client('kube-controller-manager', '/CN=system:kube-controller-manager'),
    client('kube-scheduler', '/CN=system:kube-scheduler'),
    client('kube-proxy', '/CN=system:kube-proxy'),
    client('kubelet', nodeSubject),
  ];
}

/** Certificates that also get a kubeconfig file, `pki/<name>.kubeconfig`. */
export const kubeconfigUsers = ['admin', 'kube-controller-manager', 'kube-scheduler', 'kube-proxy', 'kubelet'] as const;

/** Configuration files by name, all in the folder `conf`. JSON where the reader takes YAML. */
export function configFiles(layout: NodeLayout, cniBinDir: string): Record<string, string> {
  return {
    'containerd.toml': containerdConfig(layout, cniBinDir),
    'cni/10-beeuni.conflist': json(cniConfig(layout)),
    'kubelet.json': json(kubeletConfig(layout)),
    'kube-proxy.json': json(proxyConfig(layout)),
    // Pods with dnsPolicy Default get this one: there is no server outside that they could ask.
    'resolv.conf': '',
  };
}

const json = (value: unknown): string => `${JSON.stringify(value, undefined, 2)}\n`;

function containerdConfig(layout: NodeLayout, cniBinDir: string): string {
  const cri = 'plugins."io.containerd.grpc.v1.cri"';
  const unused = [
    'internal.v1.opt',
    'snapshotter.v1.aufs',
    'snapshotter.v1.btrfs',
    'snapshotter.v1.devmapper',
    'snapshotter.v1.zfs',
  ];
  return `version = 2
root = "${layout.dir}/containerd"
state = "/run/containerd"
disabled_plugins = [${unused.map((plugin) => `"io.containerd.${plugin}"`).join(', ')}]
[grpc]
  address = "/run/containerd/containerd.sock"
[${cri}]
  # Without CAP_SYS_RESOURCE a negative score is refused, and no container starts at all.
  restrict_oom_score_adj = true
  sandbox_image = "${layout.kubeImage}"
[${cri}.cni]
  bin_dir = "${cniBinDir}"
  conf_dir = "${layout.dir}/conf/cni"
[${cri}.containerd]
  snapshotter = "overlayfs"
  default_runtime_name = "runc"
[${cri}.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[${cri}.containerd.runtimes.runc.options]
  SystemdCgroup = false
`;
}

/** Every pod has a routed link of its own: traffic between pods passes the node's FORWARD chain, where policies are enforced. */
function cniConfig(layout: NodeLayout): unknown {
  const ipam = {
    type: 'host-local',
    dataDir: '/run/cni-addresses',
    ranges: [[{ subnet: layout.podCidr }]],
    routes: [{ dst: '0.0.0.0/0' }],
  };
  return {
    cniVersion: '1.0.0',
    name: 'beeuni',
    plugins: [
      { type: 'ptp', ipMasq: false, mtu: 1500, ipam },
      { type: 'portmap', capabilities: { portMappings: true } },
    ],
  };
}

function kubeletConfig(layout: NodeLayout): unknown {
  const pki = `${layout.dir}/pki`;
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    address: '0.0.0.0',
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: `${pki}/ca.crt` },
    },
    authorization: { mode: 'Webhook' },
    tlsCertFile: `${pki}/kubelet-server.crt`,
    tlsPrivateKeyFile: `${pki}/kubelet-server.key`,
    containerRuntimeEndpoint: 'unix:///run/containerd/containerd.sock',
    cgroupDriver: 'cgroupfs',
    cgroupRoot: `/${layout.cgroup}`,
    failCgroupV1: false,
    failSwapOn: false,
    clusterDomain: 'cluster.local',
    clusterDNS: [layout.dnsService],
    resolvConf: `${layout.dir}/conf/resolv.conf`,
    volumePluginDir: `${layout.dir}/kubelet/volume-plugins`,
    serializeImagePulls: false,
    kubeAPIQPS: 300,
    kubeAPIBurst: 600,
    podPidsLimit: 2048,
    // Images are imported once and cannot be pulled again, so a full disk must not remove them.
    imageGCHighThresholdPercent: 100,
    imageGCLowThresholdPercent: 99,
    evictionHard: {
      'memory.available': '100Mi',
      'nodefs.available': '1%',
      'nodefs.inodesFree': '1%',
      'imagefs.available': '1%',
    },
    containerLogMaxSize: '5Mi',
    shutdownGracePeriod: '0s',
  };
}

function proxyConfig(layout: NodeLayout): unknown {
  return {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    mode: 'iptables',
    clientConnection: { kubeconfig: `${layout.dir}/pki/kube-proxy.kubeconfig` },
    clusterCIDR: layout.podCidr,
    hostnameOverride: layout.nodeName,
    healthzBindAddress: '127.0.0.1:10256',
    metricsBindAddress: '127.0.0.1:10249',
    // Zero leaves the limits of connection tracking alone: they belong to the machine.
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
    iptables: { minSyncPeriod: '100ms', syncPeriod: '30s' },
  };
}

/** Arguments of the API server of a node cluster. */
export function nodeApiserverArgs(layout: NodeLayout): string[] {
  const pki = (file: string): string => `${layout.dir}/pki/${file}`;
  return [
    ...apiserverArgs(controlPlaneLayout(layout)),
    '--authorization-mode=Node,RBAC',
    '--enable-admission-plugins=NodeRestriction',
    `--kubelet-certificate-authority=${pki('ca.crt')}`,
    `--kubelet-client-certificate=${pki('apiserver-kubelet-client.crt')}`,
    `--kubelet-client-key=${pki('apiserver-kubelet-client.key')}`,
    '--kubelet-preferred-address-types=InternalIP',
    `--requestheader-client-ca-file=${pki('front-proxy-ca.crt')}`,
    '--requestheader-allowed-names=front-proxy-client',
    '--requestheader-username-headers=X-Remote-User',
    '--requestheader-group-headers=X-Remote-Group',
    '--requestheader-extra-headers-prefix=X-Remote-Extra-',
    `--proxy-client-cert-file=${pki('front-proxy-client.crt')}`,
    `--proxy-client-key-file=${pki('front-proxy-client.key')}`,
  ];
}

/** Arguments of the controller manager of a node cluster. */
export function nodeControllerManagerArgs(layout: NodeLayout): string[] {
  const pki = (file: string): string => `${layout.dir}/pki/${file}`;
  return [
    ...controllerManagerArgs(pki('kube-controller-manager.kubeconfig')),
    '--use-service-account-credentials=true',
    `--service-account-private-key-file=${pki('sa.key')}`,
    `--root-ca-file=${pki('ca.crt')}`,
    `--cluster-signing-cert-file=${pki('ca.crt')}`,
    `--cluster-signing-key-file=${pki('ca.key')}`,
    `--flex-volume-plugin-dir=${layout.dir}/kubelet/volume-plugins`,
    '--allocate-node-cidrs=false',
    '--bind-address=127.0.0.1',
  ];
}

/** Arguments of the scheduler. */
export function schedulerArgs(layout: NodeLayout): string[] {
  const kubeconfig = `${layout.dir}/pki/kube-scheduler.kubeconfig`;
  const rate = ['--kube-api-qps=300', '--kube-api-burst=600'];
  return ['kube-scheduler', `--kubeconfig=${kubeconfig}`, '--leader-elect=false', ...rate, '--bind-address=127.0.0.1'];
}

/** Command lines of what starts once the API server answers, by component. */
export function nodeComponents(layout: NodeLayout): string[][] {
  const conf = `${layout.dir}/conf`;
  const pki = `${layout.dir}/pki`;
  const addon = [`--kubeconfig=${pki}/admin.kubeconfig`, `--node=${layout.nodeName}`];
  return [
    [
      'kubelet',
      `--config=${conf}/kubelet.json`,
      `--kubeconfig=${pki}/kubelet.kubeconfig`,
      `--hostname-override=${layout.nodeName}`,
      `--node-ip=${layout.nodeAddress}`,
      '--root-dir=/var/lib/kubelet',
    ],
    ['kube-proxy', `--config=${conf}/kube-proxy.json`],
    ['netpol', ...addon, `--queue=${policyQueue}`],
    ['provisioner', ...addon, `--dir=${layout.dir}/volumes`, `--name=${provisionerName}`],
  ];
}
