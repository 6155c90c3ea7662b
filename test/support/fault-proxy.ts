// Stands between our code and a real API server: plain HTTP on loopback towards us, TLS towards the server.
// It records every call and does harm by rules. Must not know what the code under test does.
import {
  createServer,
  type IncomingMessage,
  request as httpRequest,
  type Server,
  type ServerResponse,
} from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parse } from 'yaml';
import { type KubeCall, readKubeCall } from './kube-call.ts';

/** Which calls a rule is about; what is absent matches everything. */
export type FaultMatch = Readonly<{
  verb?: KubeCall['verb'] | readonly KubeCall['verb'][];
  resource?: string;
  subresource?: string;
  namespace?: string;
  name?: string;
  /** True: only requests that change something. */
  mutates?: boolean;
  /** First call that is hit, counted from 1 among those that match. */
  from?: number;
  /** Calls that are hit; every further one when absent is 1. */
  count?: number;
  /** Every so many of those that match; 1 when absent. */
  every?: number;
}>;

/** What happens to a call. Acts on a watch count real events, not bookmarks. */
export type FaultAct =
  /** The connection is reset; a watch after so many events. The request does not reach the server. */
  | Readonly<{ kind: 'reset'; afterEvents?: number }>
  /** A watch ends cleanly after so many events, or after a time. */
  | Readonly<{ kind: 'close'; afterEvents?: number; afterMs?: number }>
  /** A watch is cut in the middle of the line of event n + 1. */
  | Readonly<{ kind: 'truncate'; afterEvents: number }>
  /** Nothing comes and nothing ends until the rule is released; a watch after so many events. */
  | Readonly<{ kind: 'hold'; afterEvents?: number }>
  /** The request waits before it is forwarded. */
  | Readonly<{ kind: 'delay'; ms: number }>
  /** An answer of the proxy's own. */
  | Readonly<{ kind: 'status'; code: number; reason?: string; headers?: Readonly<Record<string, string>> }>
  /** 410: as a status, or as an ERROR event in a 200 stream. */
  | Readonly<{ kind: 'gone'; as: 'status' | 'event'; afterEvents?: number }>
  /** A watch gets an ERROR event of this code instead of its next event, and ends. */
  | Readonly<{ kind: 'error-event'; code: number }>
  /** The connection ends before the request reaches the server. */
  | Readonly<{ kind: 'refuse-before' }>
  /** The server commits, we hear nothing. */
  | Readonly<{ kind: 'commit-then-drop' }>
  /** The server commits, we hear 504. */
  | Readonly<{ kind: 'commit-then-504' }>
  /** Events of a watch for which `event` is true do not arrive. */
  | Readonly<{ kind: 'swallow'; event: (type: string, name: string) => boolean }>
  /** After each event of a watch come all events so far once more. */
  | Readonly<{ kind: 'repeat' }>
  /** Calls back before the request is forwarded or after the server's answer, and then drops the connection. */
  | Readonly<{ kind: 'kill'; at: 'before' | 'after'; kill: (call: RecordedCall) => void }>;

/** One call that the proxy saw. */
export type RecordedCall = KubeCall &
  Readonly<{
    n: number;
    atMs: number;
    url: string;
    userAgent: string;
    /** Body of a request that changes something. */
    body: unknown;
  }> & {
    /** Status that the server gave; 0 when it was not asked or did not answer. */
    serverStatus: number;
    /** Acts that hit this call. */
    acts: FaultAct['kind'][];
    /** Real events of a watch that were passed on. */
    events: number;
    /** True once the answer has ended or was cut. */
    answered: boolean;
  };

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

type Rule = {
  match: FaultMatch;
  act: FaultAct;
  seen: number;
  hits: number;
  over: boolean;
  released: Promise<void>;
  release: () => void;
};
type Upstream = Readonly<{ url: URL; agent: Agent; headers: Record<string, string> }>;
type Call = Readonly<{
  record: RecordedCall;
  acts: readonly Rule[];
  request: IncomingMessage;
  response: ServerResponse;
  body: Buffer;
}>;

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

const matches = (match: FaultMatch, call: KubeCall): boolean => {
  const verbs = match.verb === undefined ? undefined : [match.verb].flat();
  return (
    (verbs === undefined || verbs.includes(call.verb)) &&
    (match.resource === undefined || match.resource === call.resource) &&
    (match.subresource === undefined || match.subresource === call.subresource) &&
    (match.namespace === undefined || match.namespace === call.namespace) &&
    (match.name === undefined || match.name === call.name) &&
    (match.mutates === undefined || match.mutates === call.mutates)
  );
};

const statusBody = (code: number, reason: string): string =>
  JSON.stringify({
    kind: 'Status',
    apiVersion: 'v1',
    status: 'Failure',
    code,
    reason,
    message: `the fault proxy says ${reason}`,
  });

const reset = (socket: Socket | null): void => {
  socket?.resetAndDestroy();
};

/** Sends a watch line by line and does what the rules say about it. */
const relayWatch = (call: Call, answer: IncomingMessage, open: Set<ServerResponse>): void => {
  const { record, acts, response } = call;
  const act = <K extends FaultAct['kind']>(kind: K) => {
    const rule = acts.find((candidate) => candidate.act.kind === kind && !candidate.over);
    return rule === undefined ? undefined : { rule, act: rule.act as Extract<FaultAct, { kind: K }> };
  };
  const past: string[] = [];
  let rest = '';
  let queue = Promise.resolve();
  open.add(response);
  response.on('close', () => {
    open.delete(response);
    answer.destroy();
  });
  const end = () => response.end();

  const pass = async (line: string): Promise<void> => {
    if (response.destroyed || response.writableEnded) return;
    const event = JSON.parse(line) as { type: string; object: { metadata?: { name?: string } } };
    const isReal = event.type !== 'BOOKMARK';
    const due = (afterEvents: number | undefined) => record.events >= (afterEvents ?? 0);
    const hold = act('hold');
    if (hold !== undefined && due(hold.act.afterEvents)) await hold.rule.released;
    const cut = act('truncate');
    if (cut !== undefined && isReal && due(cut.act.afterEvents)) {
      response.write(line.slice(0, Math.ceil(line.length / 2)), () => response.destroy());
      return;
    }
    const resetAct = act('reset');
    if (resetAct !== undefined && isReal && due(resetAct.act.afterEvents)) return reset(response.socket);
    const gone = act('gone');
    if (gone?.act.as === 'event' && isReal && due(gone.act.afterEvents)) {
      response.write(`{"type":"ERROR","object":${statusBody(410, 'Expired')}}\n`);
      return;
    }
    const errorEvent = act('error-event');
    if (errorEvent !== undefined && isReal) {
      const body = statusBody(errorEvent.act.code, 'InternalError');
      response.end(`{"type":"ERROR","object":${body}}\n`);
      return;
    }
    const swallow = act('swallow');
    if (isReal && swallow?.act.event(event.type, event.object.metadata?.name ?? '') === true) return;
    // Written for good, so that a reset afterwards does not take it back.
    await new Promise((written) => response.write(`${line}\n`, written));
    if (!isReal) return;
    record.events += 1;
    if (act('repeat') !== undefined) for (const old of [...past, line]) response.write(`${old}\n`);
    past.push(line);
    const close = act('close');
    if (close?.act.afterEvents !== undefined && due(close.act.afterEvents)) end();
  };

  response.writeHead(answer.statusCode ?? 200, answer.headers);
  response.flushHeaders();
  const close = act('close');
  if (close?.act.afterMs !== undefined) setTimeout(end, close.act.afterMs).unref();
  const goneNow = act('gone');
  if (goneNow?.act.as === 'event' && (goneNow.act.afterEvents ?? 0) === 0) {
    response.end(`{"type":"ERROR","object":${statusBody(410, 'Expired')}}\n`);
    return;
  }
  const resetNow = act('reset');
  if (resetNow !== undefined && (resetNow.act.afterEvents ?? 0) === 0) return reset(response.socket);
  if (close?.act.afterEvents === 0) return void end();
  answer.setEncoding('utf8');
  answer.on('data', (chunk: string) => {
    const lines = `${rest}${chunk}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) queue = queue.then(() => pass(line));
  });
  answer.on('end', () => void queue.then(end));
  answer.on('error', () => void queue.then(() => reset(response.socket)));
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
