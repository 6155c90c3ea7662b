// Where one node cluster lives: its folder, addresses and names, all from a name and a small number. Pure.
import type { ControlPlaneLayout } from './component-flags.ts';

/** Paths and addresses of one node cluster. */
export interface NodeLayout {
  readonly name: string;
  /** Folder with everything that the cluster writes. */
  readonly dir: string;
  /** Kubernetes name of the node. */
  readonly nodeName: string;
  /** Our end of the link: where pods reach servers of this machine. */
  readonly hostAddress: string;
  /** The node's end: API server, kubelet and node ports. */
  readonly nodeAddress: string;
  readonly hostLink: string;
  readonly podCidr: string;
  readonly serviceCidr: string;
  /** First address of the services: the API server from inside. */
  readonly apiserverService: string;
  readonly dnsService: string;
  /** Name of the control group below which the kubelet keeps its pods. */
  readonly cgroup: string;
  /** Image of the pause container and of CoreDNS; its tag changes with the program. */
  readonly kubeImage: string;
}

/** Smallest and largest number of a cluster: the third part of its addresses. */
export const clusterNumbers = { least: 1, most: 40 } as const;

/** Layout of cluster `number`. `programKey` names the build of the `kube` program. */
export function nodeLayout(options: {
  readonly name: string;
  readonly number: number;
  readonly dir: string;
  readonly programKey: string;
}): NodeLayout {
  const { name, number, dir } = options;
  return {
    name,
    dir,
    nodeName: `${name}-node`,
    hostAddress: `10.77.${number}.1`,
    nodeAddress: `10.77.${number}.2`,
    hostLink: `beeuni-${number}`,
    podCidr: `10.78.${number}.0/24`,
    serviceCidr: `10.79.${number}.0/24`,
    apiserverService: `10.79.${number}.1`,
    dnsService: `10.79.${number}.10`,
    cgroup: `beeuni-${name}`,
    kubeImage: `localhost/beeuni-kube:${options.programKey.slice(0, 12)}`,
  };
}

/** The part of the layout that the control plane's command lines need. Inside its own network namespace every cluster uses the same ports. */
export function controlPlaneLayout(layout: NodeLayout): ControlPlaneLayout {
  return {
    pkiDir: `${layout.dir}/pki`,
    etcdDir: `${layout.dir}/etcd`,
    etcdClient: '127.0.0.1:2379',
    etcdPeer: '127.0.0.1:2380',
    apiserver: { bindAddress: '0.0.0.0', advertiseAddress: layout.nodeAddress, port: 6443 },
    serviceCidr: layout.serviceCidr,
  };
}

/** Address of the API server from this machine and from the node. */
export function apiserverUrl(layout: NodeLayout): string {
  return `https://${layout.nodeAddress}:6443`;
}
