// Stands between our code and a real API server: plain HTTP on loopback towards us, TLS towards the server.
// It records every call and does harm by rules. Must not know what the code under test does.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parse } from 'yaml';
import { type FaultAct, type FaultMatch, matches, type RecordedCall, type Rule } from './fault-rules.ts';
import { type KubeCall, readKubeCall } from './kube-call.ts';
import { type Call, relayWatch, reset, statusBody } from './relay-watch.ts';

export type { FaultAct, FaultMatch, RecordedCall } from './fault-rules.ts';

/** A rule in force. */
export type FaultRule = Readonly<{
  /** Calls that were hit so far. */
  hits: () => number;
  /** Ends the rule and lets held bytes go. */
  release: () => void;
}>;

/** A running proxy. */
export type FaultProxy = Readonly<{
  url: string;
  /** For our code: the proxy as server, and the token if one was given. Without, the proxy is administrator. */
  kubeconfigPath: string;
  calls: readonly RecordedCall[];
  mutations: () => readonly RecordedCall[];
  add: (match: FaultMatch, act: FaultAct) => FaultRule;
  /** Refuses connections and cuts those that are open, until `comeBack`. */
  goDown: () => Promise<void>;
  comeBack: () => Promise<void>;
  /** Cuts every open watch; gives back how many. */
  cutWatches: (how: 'close' | 'reset') => number;
  stop: () => Promise<void>;
}>;

type Upstream = Readonly<{ url: URL; agent: Agent; headers: Record<string, string> }>;
const ON_WATCH: ReadonlySet<FaultAct['kind']> = new Set(['swallow', 'repeat', 'close', 'truncate', 'error-event']);

const readUpstream = async (kubeconfigPath: string): Promise<Upstream> => {
  const config = parse(await readFile(kubeconfigPath, 'utf8')) as {
    clusters: [{ cluster: Record<string, string> }];
    users: [{ user: Record<string, string> }];
  };
  const { cluster } = config.clusters[0];
  const { user } = config.users[0];
  const material = async (of: Record<string, string>, key: string): Promise<Buffer | undefined> => {
    const data = of[`${key}-data`];
    if (data !== undefined) return Buffer.from(data, 'base64');
    const path = of[key];
    return path === undefined ? undefined : readFile(resolve(dirname(kubeconfigPath), path));
  };
  const ca = await material(cluster, 'certificate-authority');
  const cert = await material(user, 'client-certificate');
  const key = await material(user, 'client-key');
  const agent = new Agent({ keepAlive: true, ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) });
  const { token } = user;
  return {
    url: new URL(cluster['server'] ?? ''),
    agent,
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
  };
};

/** Forwards a request and gives back the server's answer; rejects when there is none. */
const forward = (upstream: Upstream, call: Call): Promise<IncomingMessage> =>
  new Promise((done, fail) => {
    const { request, body, response } = call;
    const own = { ...request.headers, host: upstream.url.host };
    const headers = request.headers.authorization === undefined ? { ...own, ...upstream.headers } : own;
    const send = upstream.url.protocol === 'https:' ? httpsRequest : httpRequest;
    const outgoing = send(
      new URL(request.url ?? '/', upstream.url),
      { method: request.method, headers, agent: upstream.agent },
      done,
    );
    outgoing.on('error', fail);
    response.on('close', () => {
      if (!response.writableFinished) outgoing.destroy();
    });
    outgoing.end(body);
  });

const handle = async (upstream: Upstream, call: Call, open: Set<ServerResponse>): Promise<void> => {
  const { record, response } = call;
  for (const rule of call.acts) {
    const { act } = rule;
    if (record.verb === 'watch' && (ON_WATCH.has(act.kind) || ('afterEvents' in act && act.afterEvents !== undefined)))
      continue;
    switch (act.kind) {
      case 'reset':
      case 'refuse-before':
        return reset(response.socket);
      case 'hold':
        await rule.released;
        break;
      case 'delay':
        await new Promise((wake) => setTimeout(wake, act.ms));
        break;
      case 'status':
      case 'gone': {
        if (act.kind === 'gone' && act.as === 'event') break;
        const [code, reason] = act.kind === 'gone' ? [410, 'Expired'] : [act.code, act.reason ?? `Status${act.code}`];
        response.writeHead(code, { 'content-type': 'application/json', ...(act.kind === 'status' ? act.headers : {}) });
        return void response.end(statusBody(code, reason));
      }
      case 'kill':
        if (act.at === 'after') break;
        act.kill(record);
        return reset(response.socket);
      // Acts on watches only, and those that come after the server's answer.
      case 'close':
      case 'truncate':
      case 'error-event':
      case 'swallow':
      case 'repeat':
      case 'commit-then-drop':
      case 'commit-then-504':
        break;
    }
  }
  if (response.destroyed) return;
  const answer = await forward(upstream, call);
  record.serverStatus = answer.statusCode ?? 0;
  if (record.verb === 'watch' && record.serverStatus === 200) return relayWatch(call, answer, open);
  const chunks: Buffer[] = [];
  for await (const chunk of answer) chunks.push(chunk as Buffer);
  for (const { act } of call.acts) {
    if (act.kind === 'commit-then-504') {
      response.writeHead(504, { 'content-type': 'application/json' });
      return void response.end(statusBody(504, 'Timeout'));
    }
    if (act.kind === 'kill' && act.at === 'after') act.kill(record);
    if (act.kind === 'commit-then-drop' || act.kind === 'kill') return reset(response.socket);
  }
  response.writeHead(record.serverStatus, answer.headers);
  response.end(Buffer.concat(chunks));
};

/** A proxy in front of the API server of a kubeconfig. `token` is what our code sends; without, it is administrator. */
export const startFaultProxy = async (
  options: Readonly<{ kubeconfigPath: string; token?: string }>,
): Promise<FaultProxy> => {
  const upstream = await readUpstream(options.kubeconfigPath);
  const calls: RecordedCall[] = [];
  const rules: Rule[] = [];
  const open = new Set<ServerResponse>();
  const sockets = new Set<Socket>();

  const rulesFor = (call: KubeCall): Rule[] =>
    rules.filter((rule) => {
      if (rule.over || !matches(rule.match, call)) return false;
      rule.seen += 1;
      const { from = 1, count = Number.POSITIVE_INFINITY, every = 1 } = rule.match;
      const isHit = rule.seen >= from && (rule.seen - from) % every === 0 && rule.hits < count;
      if (isHit) rule.hits += 1;
      return isHit;
    });

  const onRequest = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const { method = 'GET', url = '/' } = request;
    const call = readKubeCall(method, url, request.headers['content-type']);
    const acts = rulesFor(call);
    const record: RecordedCall = {
      ...call,
      n: calls.length + 1,
      atMs: performance.now(),
      url,
      userAgent: request.headers['user-agent'] ?? '',
      body: call.mutates && body.length > 0 ? (JSON.parse(body.toString('utf8')) as unknown) : undefined,
      serverStatus: 0,
      acts: acts.map(({ act }) => act.kind),
      events: 0,
      answered: false,
    };
    response.on('close', () => {
      record.answered = true;
    });
    calls.push(record);
    await handle(upstream, { record, acts, request, response, body }, open);
  };

  let server: Server;
  const listen = async (port: number): Promise<number> => {
    server = createServer((request, response) => {
      onRequest(request, response).catch(() => response.destroy());
    });
    server.keepAliveTimeout = 60_000;
    server.on('connection', (socket) => {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket));
    });
    await new Promise<void>((done, fail) => {
      server.on('error', fail);
      server.listen(port, '127.0.0.1', done);
    });
    return (server.address() as AddressInfo).port;
  };
  const goDown = async (): Promise<void> => {
    const closed = new Promise<void>((done) => server.close(() => done()));
    for (const socket of sockets) socket.resetAndDestroy();
    await closed;
  };

  const port = await listen(0);
  const url = `http://127.0.0.1:${port}`;
  const dir = await mkdtemp(join(tmpdir(), 'beeuni-fault-proxy-'));
  const kubeconfigPath = join(dir, 'kubeconfig');
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'proxy',
    clusters: [{ name: 'proxy', cluster: { server: url, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'proxy', user: options.token === undefined ? {} : { token: options.token } }],
    contexts: [{ name: 'proxy', context: { cluster: 'proxy', user: 'proxy' } }],
  };
  await writeFile(kubeconfigPath, JSON.stringify(kubeconfig));

  return {
    url,
    kubeconfigPath,
    calls,
    mutations: () => calls.filter(({ mutates }) => mutates),
    add: (match, act) => {
      const { promise: released, resolve: release } = Promise.withResolvers<void>();
      const rule: Rule = { match, act, seen: 0, hits: 0, over: false, released, release };
      rules.push(rule);
      return {
        hits: () => rule.hits,
        release: () => {
          rule.over = true;
          release();
        },
      };
    },
    goDown,
    comeBack: async () => void (await listen(port)),
    cutWatches: (how) => {
      const cut = [...open];
      for (const response of cut) {
        if (how === 'close') response.end();
        else reset(response.socket);
      }
      return cut.length;
    },
    stop: async () => {
      for (const rule of rules) rule.release();
      await goDown();
      upstream.agent.destroy();
      await rm(dir, { recursive: true, force: true });
    },
  };
};
