// `make down`: removes what `make up` made, and nothing else.
import { parseArgs } from 'node:util';
import { stopNode } from '#test/cluster/cluster.ts';
import { ensureKubectlHelm } from './kubectl-helm.ts';
import { makeKubectl } from './up/kubectl.ts';
import { runProgram } from './up/run-program.ts';
import { NAMES } from './up/sample-objects.ts';

const { values: options } = parseArgs({
  options: { 'keep-images': { type: 'boolean', default: false }, help: { type: 'boolean', default: false } },
});
if (options.help) {
  console.log(
    'Usage: node tools/down.ts [--keep-images]\n\nRemoves the cluster of `make up`, or its release from a foreign cluster.',
  );
  process.exit(0);
}

const removeFromContext = async (): Promise<void> => {
  const programs = await ensureKubectlHelm();
  const kubectl = makeKubectl(programs.kubectl, process.env['KUBECONFIG']);
  // Sessions before projects before the operator: somebody must be there to run the finalizers.
  for (const kind of ['sessions.beeuni.dev', 'projects.beeuni.dev'])
    await kubectl
      .run('delete', kind, '--all', '-n', NAMES.namespace, '--ignore-not-found', '--timeout=180s')
      .catch((error: unknown) => {
        if (!String(error).includes("doesn't have a resource type")) throw error;
      });
  await runProgram(programs.helm, [
    'uninstall',
    NAMES.release,
    '-n',
    NAMES.systemNamespace,
    '--ignore-not-found',
    '--wait',
  ]);
  await kubectl.run('delete', 'crd', 'projects.beeuni.dev', 'sessions.beeuni.dev', '--ignore-not-found');
  await kubectl.run('delete', 'clusterrolebinding', 'beeuni-demo-user', '--ignore-not-found');
  for (const namespace of [NAMES.namespace, NAMES.servicesNamespace, NAMES.systemNamespace])
    await kubectl.run('delete', 'namespace', namespace, '--ignore-not-found', '--timeout=120s');
};

const main = async (): Promise<void> => {
  if (process.env['BEEUNI_USE_CONTEXT'] === '1') {
    await removeFromContext();
    console.log('removed Beeuni from the current context');
    return;
  }
  const kind = await runProgram('kind', ['get', 'clusters'], { timeoutMs: 10_000 }).catch(() => '');
  if (kind.split('\n').includes('beeuni')) {
    await runProgram('kind', ['delete', 'cluster', '--name', 'beeuni']);
    console.log("removed kind cluster 'beeuni'");
  }
  console.log(
    (await stopNode({ name: 'beeuni', keepImages: options['keep-images'] }))
      ? 'removed the one-node cluster'
      : 'no cluster of ours runs',
  );
};

main().catch((error: unknown) => {
  console.error(`make down stopped: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
});
