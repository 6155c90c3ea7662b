#!/usr/bin/env node
// The test cluster as a library (re-exported below) and as a command: `node test/cluster/cluster.ts --help`.
import { parseArgs } from 'node:util';
import { attachInNode, importImage, nodeStatus, startNode, stopNode } from './node.ts';
import { defaultName } from './node-state.ts';

export { type Apiserver, startApiserver } from './apiserver.ts';
export { ensureKubeBinary } from './binary.ts';
export {
  importImage,
  type NodeCluster,
  nodeStatus,
  runInNode,
  startNode,
  stopNode,
} from './node.ts';
export { skipReason } from './prerequisites.ts';

const help = `A real one-node Kubernetes cluster for the tests and for make up.

usage: node test/cluster/cluster.ts <command> [--name NAME] [--json]

  up                 start it and wait until pods can run; prints how to use it (at once when it runs already)
  down               end it and remove everything that it left
    --keep-images      but keep its images, for a quick next start
  status             tell whether it runs; exit code 3 when it does not
  kubeconfig         print the path of its kubeconfig file
  import ARCHIVE     make the image of a docker archive or OCI layout folder known to the node
  exec -- CMD ...    run a program inside the node, for example: exec -- ctr -n k8s.io images list

  --name NAME        one of several clusters (default: ${defaultName})
  --json             print one line of JSON instead of text
`;

/** Runs the command line `args`; gives the exit code. Text for people goes to `say`, results to `print`. */
export async function main(
  args: readonly string[],
  print: (line: string) => void,
  say: (line: string) => void,
): Promise<number> {
  const separator = args.indexOf('--');
  const own = separator < 0 ? args : args.slice(0, separator);
  const inner = separator < 0 ? [] : args.slice(separator + 1);
  const { values, positionals } = parseArgs({
    args: [...own],
    allowPositionals: true,
    options: {
      name: { type: 'string', default: defaultName },
      json: { type: 'boolean', default: false },
      'keep-images': { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  const [command, ...rest] = positionals;
  const { name } = values;
  const result = (value: unknown, text: string): void => print(values.json ? JSON.stringify(value) : text);
  if (values.help || command === undefined) {
    print(help);
    return values.help ? 0 : 2;
  }
  switch (command) {
    case 'up': {
      const cluster = await startNode({ name, log: say });
      result(
        cluster,
        `cluster ${name} runs; use it with:\n  export KUBECONFIG=${cluster.kubeconfigPath}\n  ${cluster.kubeProgram} kubectl get pods -A`,
      );
      return 0;
    }
    case 'down': {
      const keepImages = values['keep-images'];
      const existed = await stopNode({ name, keepImages });
      result({ name, existed, keepImages }, existed ? `cluster ${name} is gone` : `there was no cluster ${name}`);
      return 0;
    }
    case 'status': {
      const status = await nodeStatus(name);
      result(status, status.state === 'unhealthy' ? `unhealthy: ${status.reason}` : status.state);
      return status.state === 'running' ? 0 : 3;
    }
    case 'kubeconfig': {
      const status = await nodeStatus(name);
      if (status.state !== 'running') {
        say(
          `cluster ${name} does not run (${status.state}); start it with: node test/cluster/cluster.ts up --name ${name}`,
        );
        return 3;
      }
      result({ kubeconfigPath: status.cluster.kubeconfigPath }, status.cluster.kubeconfigPath);
      return 0;
    }
    case 'import': {
      const [archive] = rest;
      if (archive === undefined) break;
      const image = await importImage(name, archive);
      result(
        image,
        `${image.tags.join(', ')} ${image.imported ? 'is imported' : 'was there'} (${image.id.slice(0, 19)})`,
      );
      return 0;
    }
    case 'exec':
      if (inner.length === 0) break;
      return await attachInNode(name, inner);
  }
  say(`cannot run: ${args.join(' ')}\n\n${help}`);
  return 2;
}

if (import.meta.main) {
  const say = (line: string): void => void process.stderr.write(`${line}\n`);
  try {
    process.exitCode = await main(process.argv.slice(2), (line) => void process.stdout.write(`${line}\n`), say);
  } catch (err) {
    for (let fault: unknown = err; fault instanceof Error; fault = fault.cause) say(fault.message);
    process.exitCode = 1;
  }
}
