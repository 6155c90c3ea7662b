// The way to one API server: kubeconfig, credentials, TLS and the two connection pools. The only file that runs
// @kubernetes/client-node and undici. Must not know verbs, kinds or retries.
import { KubeConfig } from '@kubernetes/client-node';
import clientPackage from '@kubernetes/client-node/package.json' with { type: 'json' };
import { Agent, type Dispatcher, ProxyAgent } from 'undici';
import { InvalidError } from '#base/errors.ts';

/** Where the kubeconfig is. Without a path: `KUBECONFIG`, `~/.kube/config`, then the pod's service account. */
export type KubeConfigSource = Readonly<{ kubeconfigPath?: string | undefined; context?: string | undefined }>;

/** One HTTP request to the API server. `path` is absolute and holds the query. */
export type RawRequest = Readonly<{
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  path: string;
  headers: Readonly<Record<string, string>>;
  body?: string | undefined;
  /** True for a watch: it gets a connection outside the capped pool. */
  stream: boolean;
  signal: AbortSignal;
  /** Called when nothing is left to wait for; when it throws, nothing is sent. */
  onStart: () => void;
}>;

/** An answer whose body has not been read yet. Header names are in lower case. */
export type RawResponse = Readonly<{
  status: number;
  headers: Readonly<Record<string, string | undefined>>;
  text: () => Promise<string>;
  chunks: AsyncIterable<Uint8Array>;
}>;

/** The way to one API server. */
export type Connection = Readonly<{
  /** Sends one request with fresh credentials. Errors: those of the network, untranslated. */
  send: (request: RawRequest) => Promise<RawResponse>;
  /** Reads kubeconfig and credentials again; calls that overlap share one reading. Source: C18. */
  reload: () => Promise<void>;
  /** Open sockets, of both pools. */
  openConnections: () => number;
  /** TLS (or TCP) connections opened so far. Source: C7. */
  openedConnections: () => number;
  /** Namespace of the kubeconfig's context or of the pod; undefined when none is named. */
  namespace: () => string | undefined;
  /** Ends all requests and closes all sockets. */
  close: () => Promise<void>;
}>;

/** Size of the pool for calls. Watches come on top. Source: C7. */
const CALL_CONNECTIONS = 16;
/** Below the 90 s after which the API server closes an idle connection. Units: milliseconds. */
const IDLE_MS = 60_000;
const CONNECT_TIMEOUT_MS = 10_000;
/** Largest answer that is read. Units: bytes. */
const MAX_ANSWER_BYTES = 256 * 2 ** 20;

/** Throws InvalidError for a client version that is known not to work. Source: C1. */
export const refuseUnusableClient = (version: string): void => {
  if (version !== '2.0.0') return;
  throw new InvalidError(
    'invalid_configuration',
    '@kubernetes/client-node 2.0.0 ends every healthy watch after 30 s; use 2.0.1 or newer',
  );
};

type Tls = {
  ca?: string | Buffer | undefined;
  cert?: string | Buffer | undefined;
  key?: string | Buffer | undefined;
  servername?: string | undefined;
  rejectUnauthorized?: boolean | undefined;
};

type Credentials = Readonly<{ server: URL; headers: Record<string, string>; tls: Tls; proxyUrl: string | undefined }>;

const load = (source: KubeConfigSource): KubeConfig => {
  const config = new KubeConfig();
  try {
    if (source.kubeconfigPath === undefined) config.loadFromDefault();
    else config.loadFromFile(source.kubeconfigPath);
  } catch (cause) {
    throw new InvalidError('invalid_configuration', 'the kubeconfig cannot be read', { cause });
  }
  if (source.context !== undefined) config.setCurrentContext(source.context);
  if (config.getCurrentCluster() === null) {
    throw new InvalidError('invalid_configuration', 'the kubeconfig names no cluster in its current context');
  }
  return config;
};

const readCredentials = async (config: KubeConfig): Promise<Credentials> => {
  const cluster = config.getCurrentCluster();
  if (cluster === null) throw new InvalidError('invalid_configuration', 'the kubeconfig names no cluster');
  const server = new URL(cluster.server);
  if (server.protocol === 'http:' && cluster.skipTLSVerify !== true) {
    throw new InvalidError(
      'invalid_configuration',
      'the kubeconfig names a server without TLS; that needs insecure-skip-tls-verify',
    );
  }
  if (cluster.proxyUrl?.startsWith('socks') === true) {
    throw new InvalidError('invalid_configuration', 'a SOCKS proxy in a kubeconfig is not supported');
  }
  const options: Tls & { headers: Record<string, string>; auth?: string } = { headers: {} };
  await config.applyToHTTPSOptions(options as Parameters<KubeConfig['applyToHTTPSOptions']>[0]);
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(options.headers)) headers[name.toLowerCase()] = `${value}`.trim();
  if (options.auth !== undefined) headers['authorization'] = `Basic ${Buffer.from(options.auth).toString('base64')}`;
  const { ca, cert, key, servername, rejectUnauthorized } = options;
  return { server, headers, tls: { ca, cert, key, servername, rejectUnauthorized }, proxyUrl: cluster.proxyUrl };
};

const fingerprint = ({ server, tls, proxyUrl }: Credentials): string =>
  JSON.stringify([
    server.origin,
    proxyUrl,
    tls.ca?.toString(),
    tls.cert?.toString(),
    tls.key?.toString(),
    tls.servername,
    tls.rejectUnauthorized,
  ]);

type Pools = Readonly<{ print: string; calls: Dispatcher; streams: Dispatcher }>;

const definedOnly = (tls: Tls): Tls =>
  Object.fromEntries(Object.entries(tls).filter(([, value]) => value !== undefined)) as Tls;

const openPool = (credentials: Credentials, connections: number | null): Dispatcher => {
  const options = {
    connections,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: IDLE_MS,
    keepAliveMaxTimeout: IDLE_MS,
    connectTimeout: CONNECT_TIMEOUT_MS,
    // Our own time limits apply; a watch may be silent for a minute.
    headersTimeout: 0,
    bodyTimeout: 0,
    maxResponseSize: connections === null ? -1 : MAX_ANSWER_BYTES,
  };
  const tls = { ...definedOnly(credentials.tls), keepAlive: true, keepAliveInitialDelay: 30_000 };
  return credentials.proxyUrl === undefined
    ? new Agent({ ...options, connect: { ...tls, timeout: CONNECT_TIMEOUT_MS } })
    : new ProxyAgent({ ...options, uri: credentials.proxyUrl, requestTls: tls });
};

/**
 * A connection to the API server that `source` names. Credentials are taken for every request; a changed
 * certificate or CA opens new pools. Throws InvalidError when the configuration cannot be used.
 */
export const openConnection = async (source: KubeConfigSource = {}): Promise<Connection> => {
  refuseUnusableClient(clientPackage.version);
  let config = load(source);
  let open = 0;
  let opened = 0;
  let pools: Pools | undefined;
  let reloading: Promise<void> | undefined;

  const count = (pool: Dispatcher): Dispatcher => {
    pool.on('connect', () => {
      open += 1;
      opened += 1;
    });
    pool.on('disconnect', () => {
      open -= 1;
    });
    return pool;
  };
  const poolsFor = (credentials: Credentials): Pools => {
    const print = fingerprint(credentials);
    if (pools?.print === print) return pools;
    const old = pools;
    pools = {
      print,
      calls: count(openPool(credentials, CALL_CONNECTIONS)),
      streams: count(openPool(credentials, null)),
    };
    // Requests in flight end by themselves; a watch is renewed within ten minutes.
    if (old !== undefined) void Promise.allSettled([old.calls.close(), old.streams.close()]);
    return pools;
  };

  await readCredentials(config);
  return {
    send: async (request) => {
      const credentials = await readCredentials(config);
      const { calls, streams } = poolsFor(credentials);
      const prefix = credentials.server.pathname.replace(/\/$/, '');
      request.onStart();
      const answer = await (request.stream ? streams : calls).request({
        origin: credentials.server.origin,
        path: `${prefix}${request.path}`,
        method: request.method,
        headers: { ...request.headers, ...credentials.headers },
        body: request.body ?? null,
        signal: request.signal,
      });
      const headers: Record<string, string | undefined> = {};
      for (const [name, value] of Object.entries(answer.headers))
        headers[name] = Array.isArray(value) ? value[0] : value;
      return { status: answer.statusCode, headers, text: () => answer.body.text(), chunks: answer.body };
    },
    reload: async () => {
      reloading ??= (async () => {
        config = load(source);
      })().finally(() => {
        reloading = undefined;
      });
      await reloading;
    },
    openConnections: () => open,
    openedConnections: () => opened,
    namespace: () => config.getContextObject(config.getCurrentContext())?.namespace,
    close: async () => {
      const { calls, streams } = pools ?? {};
      pools = undefined;
      await Promise.allSettled([calls?.destroy(), streams?.destroy()]);
    },
  };
};
