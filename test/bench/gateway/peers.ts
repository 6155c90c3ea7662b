// Gets what the gateway is measured beside: nginx and wrk from Debian's packages, Portkey from npm, LiteLLM from PyPI.
// Everything lies in our cache folder and nothing is installed on the machine. Must not know what is measured.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cacheDir } from '#test/cluster/cache-dir.ts';

/** Programs by name; undefined for one that cannot be had here. */
export type Peers = Readonly<{
  nginx: string | undefined;
  wrk: string | undefined;
  portkey: string | undefined;
  litellm: string | undefined;
  /** Environment that the Debian programs need. */
  env: Readonly<Record<string, string>>;
}>;

const PORTKEY = '1.15.2';
/** Without these its streams answer 500. */
const PORTKEY_OVERRIDES = { '@hono/node-server': '1.13.7', hono: '4.9.7' };

const LITELLM = '1.80.11';
/** The one file of that version; releases of it were tampered with before. */
const LITELLM_SHA256 = '406283d66ead77dc7ff0e0b2559c80e9e497d8e7c2257efb1cb9210a20d09d54';
/** Longest that its installation may take. Units: milliseconds. */
const PIP_LIMIT_MS = 300_000;

const attempt = (what: string, work: () => void): void => {
  try {
    work();
  } catch (error) {
    console.log(`# ${what} cannot be had here: ${String(error).split('\n')[0]}`);
  }
};

const quiet = { stdio: 'ignore' } as const;

/** Unpacks Debian packages beside each other. */
const unpack = (directory: string, names: readonly string[]): void => {
  execFileSync('apt-get', ['download', ...names], { cwd: directory, ...quiet });
  for (const file of readdirSync(directory).filter((name) => name.endsWith('.deb'))) {
    execFileSync('dpkg', ['-x', file, 'root'], { cwd: directory, ...quiet });
  }
};

/** Installs LiteLLM in an environment of its own. It sees no variable of ours, as its releases are not to be trusted. */
const installLiteLlm = (folder: string): void => {
  const env = { PATH: process.env['PATH'] ?? '', HOME: folder };
  const run = (command: string, args: readonly string[]): void => {
    execFileSync(command, args, { cwd: folder, env, timeout: PIP_LIMIT_MS, ...quiet });
  };
  run('python3', ['-m', 'venv', 'venv']);
  const pip = join(folder, 'venv/bin/pip');
  run(pip, ['download', '--no-deps', '--dest', '.', `litellm==${LITELLM}`]);
  const wheel = readdirSync(folder).find((name) => name.endsWith('.whl')) ?? '';
  const hash = createHash('sha256')
    .update(readFileSync(join(folder, wheel)))
    .digest('hex');
  if (hash !== LITELLM_SHA256) throw new Error(`${wheel} is not the file that it should be`);
  run(pip, ['install', `./${wheel}[proxy]`]);
};

/** Gets every peer that can be had; what is there already is used as it is. */
export const getPeers = (): Peers => {
  const debian = cacheDir('bench', 'debian');
  const nginx = join(debian, 'root/usr/sbin/nginx');
  const wrk = join(debian, 'root/usr/bin/wrk');
  if (!existsSync(nginx)) attempt('nginx', () => unpack(debian, ['nginx']));
  if (!existsSync(wrk)) attempt('wrk', () => unpack(debian, ['wrk', 'libluajit-5.1-2']));
  const folder = cacheDir('bench', 'portkey');
  const portkey = join(folder, 'node_modules/@portkey-ai/gateway/build/start-server.js');
  if (!existsSync(portkey)) {
    attempt('Portkey', () => {
      const manifest = {
        private: true,
        dependencies: { '@portkey-ai/gateway': PORTKEY },
        overrides: PORTKEY_OVERRIDES,
      };
      writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
      execFileSync('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: folder, ...quiet });
    });
  }
  const python = cacheDir('bench', 'litellm');
  const litellm = join(python, 'venv/bin/litellm');
  if (!existsSync(litellm)) attempt('LiteLLM', () => installLiteLlm(python));
  const found = (path: string): string | undefined => (existsSync(path) ? path : undefined);
  const libraries = readdirSync(join(debian, 'root/usr/lib'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name.includes('-linux-'))
    .map((entry) => join(debian, 'root/usr/lib', entry.name));
  return {
    nginx: found(nginx),
    wrk: found(wrk),
    portkey: found(portkey),
    litellm: found(litellm),
    env: { LD_LIBRARY_PATH: libraries.join(':') },
  };
};

/** Settings of an nginx that answers every call with one body, or hands it on. `directory` takes its files. */
export const nginxConfig = (
  directory: string,
  port: number,
  serve: Readonly<{ answer: string }> | Readonly<{ upstream: number; key: string }>,
): string => {
  const location =
    'answer' in serve
      ? `default_type application/json; return 200 '${serve.answer}';`
      : `proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection "";
         proxy_set_header Authorization "Bearer ${serve.key}"; proxy_buffering off; proxy_request_buffering off;`;
  const upstream =
    'answer' in serve
      ? ''
      : `upstream up { server 127.0.0.1:${serve.upstream}; keepalive 1024; keepalive_requests 1000000000; }`;
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${directory}/${name};`)
    .join(' ');
  return `worker_processes 1; daemon off; master_process off; pid ${directory}/pid; error_log ${directory}/error.log;
events { worker_connections 8192; }
http { access_log off; keepalive_requests 1000000000; ${temporary}
  client_max_body_size 64m; client_body_buffer_size 2m; ${upstream}
  server { listen 127.0.0.1:${port} backlog=4096; location / { ${location} } } }
`;
};
