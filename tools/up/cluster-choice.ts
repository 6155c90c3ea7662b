// Which cluster `make up` uses: the current kube context when asked for, kind where a Docker engine answers, else our own
// one-node cluster.
import { importImage, startNode } from '#test/cluster/cluster.ts';
import { pushLayout } from '../images/buildah.ts';
import { runProgram } from './run-program.ts';

/** The cluster of `make up`. `load` makes an image of this machine known to its nodes and gives back its name there. */
export type ChosenCluster = Readonly<{
  kind: 'context' | 'kind' | 'node';
  description: string;
  kubeconfigPath: string | undefined;
  load: (image: string, archivePath: string) => Promise<string>;
}>;

const answers = async (program: string, args: readonly string[]): Promise<boolean> =>
  runProgram(program, args, { timeoutMs: 10_000 }).then(
    () => true,
    () => false,
  );

const contextCluster = async (): Promise<ChosenCluster> => {
  const registry = process.env['BEEUNI_REGISTRY'];
  const context = (await runProgram('kubectl', ['config', 'current-context'])).trim();
  if (registry === undefined || registry === '')
    throw new Error(
      `BEEUNI_USE_CONTEXT=1 uses the context '${context}', whose nodes pull images from a registry: set BEEUNI_REGISTRY to one that you may push to, for example BEEUNI_REGISTRY=registry.example.com/team`,
    );
  return {
    kind: 'context',
    description: `the current kube context '${context}'`,
    kubeconfigPath: process.env['KUBECONFIG'],
    load: async (image, archivePath) => {
      const remote = `${registry.replace(/\/$/, '')}/${image.replace(/^localhost\//, '')}`;
      // Without a Docker engine the image is a folder with an OCI layout.
      if (archivePath.endsWith('.oci')) {
        await pushLayout(archivePath, remote);
      } else {
        await runProgram('docker', ['tag', image, remote]);
        await runProgram('docker', ['push', remote]);
      }
      return remote;
    },
  };
};

const kindCluster = async (): Promise<ChosenCluster> => {
  const clusters = (await runProgram('kind', ['get', 'clusters'])).split('\n');
  if (!clusters.includes('beeuni'))
    await runProgram('kind', ['create', 'cluster', '--name', 'beeuni', '--wait', '120s']);
  await runProgram('kubectl', ['config', 'use-context', 'kind-beeuni']);
  return {
    kind: 'kind',
    description: "kind cluster 'beeuni'",
    kubeconfigPath: process.env['KUBECONFIG'],
    load: async (image, archivePath) => {
      await runProgram('kind', ['load', 'image-archive', archivePath, '--name', 'beeuni']);
      return image;
    },
  };
};

const ownNode = async (log: (line: string) => void): Promise<ChosenCluster> => {
  const node = await startNode({ name: 'beeuni', log });
  return {
    kind: 'node',
    description: `our own one-node cluster (${node.nodeName})`,
    kubeconfigPath: node.kubeconfigPath,
    load: async (image, archivePath) => {
      await importImage('beeuni', archivePath);
      return image;
    },
  };
};

/** Finds or starts the cluster. Rejects with what to install or set when none can be had. */
export const chooseCluster = async (log: (line: string) => void): Promise<ChosenCluster> => {
  if (process.env['BEEUNI_USE_CONTEXT'] === '1') return contextCluster();
  if ((await answers('docker', ['info'])) && (await answers('kind', ['version']))) return kindCluster();
  return ownNode(log);
};
