// What turns a Dockerfile into an image on disk: a Docker engine where one answers, else buildah (buildah.ts).
import { rmSync } from 'node:fs';
import { runToEnd } from '#test/cluster/process.ts';
import { buildahEngine } from './buildah.ts';
import { runWithProgress } from './progress.ts';

/** One image to be built. `output` is a path without an ending; `secretArgs` are arguments for docker and buildah alike. */
export interface BuildOrder {
  readonly context: string;
  readonly dockerfile: string;
  readonly dockerfilePath: string;
  readonly image: string;
  readonly output: string;
  readonly secretArgs: readonly string[];
}

/** Builds images. */
export interface Engine {
  readonly name: 'docker' | 'buildah';
  /** Part of an image's hash: another engine or base gives another image. */
  readonly salt: string;
  /** What `build` adds to its `output`: `.tar` for a docker archive, `.oci` for a folder with an OCI layout. */
  readonly ending: '.tar' | '.oci';
  build(order: BuildOrder, log: (line: string) => void): Promise<void>;
}

/** The engine of this machine. Throws with what to install when there is none. */
export async function findEngine(): Promise<Engine> {
  if (await succeeds('docker', ['version', '--format', '{{.Server.Version}}'])) return dockerEngine;
  const hasBuildah = (await succeeds('buildah', ['--version'])) && (await succeeds('mmdebstrap', ['--version']));
  if (hasBuildah && process.getuid?.() === 0) return buildahEngine;
  throw new Error('images need a running Docker engine, or root and the Debian packages buildah and mmdebstrap');
}

async function succeeds(program: string, args: readonly string[]): Promise<boolean> {
  try {
    return (await runToEnd(program, args)).code === 0;
  } catch {
    return false;
  }
}

const dockerEngine: Engine = {
  name: 'docker',
  salt: 'docker',
  ending: '.tar',
  async build(order, log) {
    const env = { ...process.env, DOCKER_BUILDKIT: '1' };
    const args = [
      'build',
      '--progress',
      'plain',
      ...order.secretArgs,
      '--file',
      order.dockerfilePath,
      '--tag',
      order.image,
      order.context,
    ];
    await runWithProgress('docker', args, { env, log: (line) => log(`${order.image}: ${line}`), show: /^#\d+ \[/ });
    const archive = `${order.output}.tar`;
    try {
      await runWithProgress('docker', ['save', '--output', archive, order.image], { env, log });
    } catch (err) {
      rmSync(archive, { force: true });
      throw err;
    }
  },
};
