// The programs that the gateway is measured with: providers, nginx, Portkey, LiteLLM and ours, each on its core. Must not
// know what is measured.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { requestBody, type Target } from './load.ts';
import { nginxConfig, type Peers } from './peers.ts';

/** Ports of the providers: of whole answers, and of streams too; the first is nginx where it can be had. */
export type Providers = Readonly<{ whole: number; stream: number }>;

/** The programs; one that cannot be had is undefined. */
export type Programs = Readonly<{
  startProviders: () => Promise<Providers>;
  startNginx: (upstream: number) => Promise<Target | undefined>;
  startPortkey: (upstream: number) => Promise<Target | undefined>;
  /** Undefined also when it does not answer in time. */
  startLiteLlm: (upstream: number) => Promise<Target | undefined>;
  startOurs: (upstream: number, databaseUrl: string) => Promise<Target>;
  stop: (targets: readonly Target[]) => void;
  stopAll: () => void;
}>;

/** The text of the first good answer; rejects when there is none in time. */
export const untilAnswers = async (target: Target, seconds = 10): Promise<string> => {
  const most = seconds * 10;
  for (let tries = 0; ; tries += 1) {
    try {
      const answer = await fetch(`http://127.0.0.1:${target.port}${target.path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...target.headers },
        body: requestBody(target.model('m'), 100),
      });
      if (answer.status === 200) return await answer.text();
      if (tries > most) throw new Error(`${target.name} answers ${answer.status}: ${await answer.text()}`);
    } catch (error) {
      if (tries > most) throw error;
    }
    await wait(100);
  }
};

const lastIn = (dockerfile: string, instruction: string): string =>
  [...dockerfile.matchAll(new RegExp(`^${instruction} (.*)$`, 'gm'))].at(-1)?.[1] ?? '';

/** How the image starts the control plane: the options of Node, and the environment without what is a path. */
export const imageStart = (): Readonly<{ options: readonly string[]; env: Readonly<Record<string, string>> }> => {
  const text = readFileSync(join(import.meta.dirname, '../../../Dockerfile'), 'utf8');
  const command = JSON.parse(lastIn(text, 'CMD')) as string[];
  const variables = lastIn(text, 'ENV').split(' ');
  const pairs = variables.map((pair) => pair.split('=')).filter(([, value = '']) => !value.startsWith('/'));
  return {
    options: command.filter((word) => word.startsWith('--')),
    env: Object.fromEntries(pairs) as Record<string, string>,
  };
};

const path = '/v1/chat/completions';
/** As long as keys are, so that ours looks for it in every answer. */
const UPSTREAM_KEY = 'sk-upstream-0123456789abcdef0123456789abcdef';
const plain = (id: string): string => id;
const pidOf = (child: ChildProcess): number => child.pid ?? 0;
/** Longest that LiteLLM may take until it answers. Units: seconds. */
const LITELLM_START_SECONDS = 120;

/** Makes the programs; their files are in `folder`. `answer`: the whole answer; `models`: names that ours knows. */
export const makePrograms = (
  settings: Readonly<{ folder: string; peers: Peers; answer: string; models: readonly string[] }>,
): Programs => {
  const { folder, peers, answer, models } = settings;
  const children: ChildProcess[] = [];
  const start = (
    core: number,
    command: string,
    args: readonly string[],
    env: Readonly<Record<string, string>> = {},
    inherited: Readonly<Record<string, string | undefined>> = process.env,
  ): ChildProcess => {
    const child = spawn('taskset', ['-c', String(core), command, ...args], {
      env: { ...inherited, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children.push(child);
    return child;
  };
  const firstLine = (child: ChildProcess): Promise<string> =>
    new Promise((resolve, reject) => {
      let text = '';
      child.stdout?.on('data', (part: Buffer) => {
        text += part.toString('utf8');
        const end = text.indexOf('\n');
        if (end >= 0) resolve(text.slice(0, end));
      });
      child.once('exit', (code) => reject(new Error(`a program ended with ${code}`)));
    });
  const freePort = (): Promise<number> =>
    new Promise((resolve) => {
      const server = createServer();
      server.listen(0, '127.0.0.1', () => {
        const address = server.address();
        server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
      });
    });
  const startProviders = async (): Promise<Providers> => {
    const mock = start(1, process.execPath, [join(import.meta.dirname, 'mock.ts')], { MOCK_ANSWER: answer });
    const stream = Number(await firstLine(mock));
    if (peers.nginx === undefined) return { whole: stream, stream };
    const whole = await freePort();
    const directory = join(folder, 'nginx-provider');
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, 'nginx.conf'), nginxConfig(directory, whole, { answer }));
    start(1, peers.nginx, ['-p', directory, '-c', join(directory, 'nginx.conf')], peers.env);
    return { whole, stream };
  };

  const startNginx = async (upstream: number): Promise<Target | undefined> => {
    if (peers.nginx === undefined) return undefined;
    const port = await freePort();
    const directory = join(folder, `nginx-${upstream}`);
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, 'nginx.conf'), nginxConfig(directory, port, { upstream, key: UPSTREAM_KEY }));
    const child = start(0, peers.nginx, ['-p', directory, '-c', join(directory, 'nginx.conf')], peers.env);
    return { name: 'nginx', port, path, pids: [pidOf(child)], headers: { authorization: 'Bearer x' }, model: plain };
  };
  const startOurs = async (upstream: number, databaseUrl: string): Promise<Target> => {
    const { options, env } = imageStart();
    const child = start(0, process.execPath, [...options, join(import.meta.dirname, 'subject.ts')], {
      ...env,
      DATABASE_URL: databaseUrl,
      UPSTREAM: `http://127.0.0.1:${upstream}/v1`,
      UPSTREAM_KEY,
      MODELS: models.join(','),
      FOLDER: folder,
    });
    const { port, credential } = JSON.parse(await firstLine(child)) as { port: number; credential: string };
    return {
      name: 'ours',
      port,
      path: '/gateway/v1/chat/completions',
      pids: [pidOf(child)],
      headers: { authorization: `Bearer ${credential}` },
      model: (id) => `demo/${id}`,
    };
  };
  const startPortkey = async (upstream: number): Promise<Target | undefined> => {
    if (peers.portkey === undefined) return undefined;
    const port = await freePort();
    const child = start(0, process.execPath, [peers.portkey, `--port=${port}`, '--headless'], {
      TRUSTED_CUSTOM_HOSTS: '127.0.0.1,localhost',
      NODE_ENV: 'production',
    });
    child.stdout?.resume();
    const headers = {
      authorization: `Bearer ${UPSTREAM_KEY}`,
      'x-portkey-provider': 'openai',
      'x-portkey-custom-host': `http://127.0.0.1:${upstream}/v1`,
    };
    return { name: 'portkey', port, path, pids: [pidOf(child)], headers, model: plain };
  };
  /** It sees no variable of ours: releases of it were tampered with before. */
  const LITELLM_ENV = {
    PATH: process.env['PATH'] ?? '',
    HOME: folder,
    LITELLM_LOG: 'ERROR',
    LITELLM_LOCAL_MODEL_COST_MAP: 'True',
  };
  const startLiteLlm = async (upstream: number): Promise<Target | undefined> => {
    if (peers.litellm === undefined) return undefined;
    const port = await freePort();
    const config = join(folder, 'litellm.yaml');
    const model = { model: 'openai/m', api_base: `http://127.0.0.1:${upstream}/v1`, api_key: UPSTREAM_KEY };
    writeFileSync(config, JSON.stringify({ model_list: [{ model_name: 'm', litellm_params: model }] }));
    const args = ['--config', config, '--host', '127.0.0.1', '--port', String(port), '--num_workers', '1'];
    const child = start(0, peers.litellm, args, LITELLM_ENV, {});
    child.stdout?.resume();
    const target = { name: 'litellm', port, path, pids: [pidOf(child)], headers: {}, model: plain };
    try {
      await untilAnswers(target, LITELLM_START_SECONDS);
      return target;
    } catch (error) {
      console.log(
        `# LiteLLM is there and does not answer within ${LITELLM_START_SECONDS} s: ${String(error).slice(0, 200)}`,
      );
      child.kill('SIGKILL');
      return undefined;
    }
  };

  return {
    startProviders,
    startNginx,
    startPortkey,
    startLiteLlm,
    startOurs,
    stop: (targets) => {
      for (const child of children) if (targets.some(({ pids }) => pids.includes(pidOf(child)))) child.kill('SIGKILL');
    },
    stopAll: () => {
      for (const child of children) child.kill('SIGKILL');
    },
  };
};
