// Command lines of the Kubernetes components. Pure: addresses and paths come in, arguments go out. Both kinds of cluster use it.

/** Addresses and files of one control plane. Addresses are `host:port`, `pkiDir` holds what pki.ts makes. */
export interface ControlPlaneLayout {
  readonly pkiDir: string;
  readonly etcdDir: string;
  readonly etcdClient: string;
  readonly etcdPeer: string;
  /** Address that the API server listens on, and the one that it tells to others. */
  readonly apiserver: { readonly bindAddress: string; readonly advertiseAddress: string; readonly port: number };
  readonly serviceCidr: string;
}

/** Issuer and default audience of service account tokens. */
export const tokenIssuer = 'https://kubernetes.default.svc.cluster.local';

/** Arguments of etcd. Data is not synced to disk: it is thrown away with the cluster. */
export function etcdArgs(layout: ControlPlaneLayout): string[] {
  const client = `http://${layout.etcdClient}`;
  const peer = `http://${layout.etcdPeer}`;
  return [
    'etcd',
    '--name=etcd',
    `--data-dir=${layout.etcdDir}`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=etcd=${peer}`,
    '--unsafe-no-fsync',
    '--log-level=warn',
  ];
}

/** Arguments of kube-apiserver that both kinds of cluster share. */
export function apiserverArgs(layout: ControlPlaneLayout): string[] {
  const pki = (file: string): string => `${layout.pkiDir}/${file}`;
  return [
    'kube-apiserver',
    `--etcd-servers=http://${layout.etcdClient}`,
    `--bind-address=${layout.apiserver.bindAddress}`,
    `--advertise-address=${layout.apiserver.advertiseAddress}`,
    `--secure-port=${layout.apiserver.port}`,
    `--tls-cert-file=${pki('apiserver.crt')}`,
    `--tls-private-key-file=${pki('apiserver.key')}`,
    `--client-ca-file=${pki('ca.crt')}`,
    `--service-cluster-ip-range=${layout.serviceCidr}`,
    `--service-account-issuer=${tokenIssuer}`,
    `--service-account-key-file=${pki('sa.pub')}`,
    `--service-account-signing-key-file=${pki('sa.key')}`,
    '--allow-privileged=true',
  ];
}

/** Arguments of kube-controller-manager that both kinds share. Its default limit of 20 requests per second would delay everything by seconds. */
export function controllerManagerArgs(kubeconfigPath: string): string[] {
  return [
    'kube-controller-manager',
    `--kubeconfig=${kubeconfigPath}`,
    '--leader-elect=false',
    '--kube-api-qps=300',
    '--kube-api-burst=600',
  ];
}
