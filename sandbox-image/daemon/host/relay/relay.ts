// The loopback front of the control plane for harness and git: model calls with the per-process token in and the session
// credential out, git without any credential in, the environment of commands, and tool calls. Bytes pass through unchanged.
// Must not know harnesses. Source: D8, D9, A110, 20-control-plane §5.
import { createHash, timingSafeEqual } from 'node:crypto';
import type {
  IncomingHttpHeaders,
  IncomingMessage,
  OutgoingHttpHeaders,
  RequestOptions,
  ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Clock, sleep } from '#base/clock.ts';
import { errorChain } from '#base/errors.ts';
import { createServer, makeWays } from '#base/http/node-http.ts';
import type { Logger } from '#base/log.ts';
import { RELAY_RETRY_HEADER } from '#daemon/harness/contract/relay-retry.ts';
import type { ToolHost } from '#daemon/harness/contract/tools.ts';
import { TURN_HEADER } from '#schema/wire/gateway.ts';
import { JUDGE_PATH, type JudgeChildCall, serveChildCall } from './child-calls.ts';
import { errorBody, type WordedError, wordError } from './error-wording.ts';
import { waitBeforeTry } from './model-tries.ts';
import { serveToolCall, TOOLS_PATH } from './tool-calls.ts';

/** What the relay forwards to, and as whom. Known after the claim. */
export type RelayTarget = Readonly<{
  controlPlaneUrl: string;
  gatewayPath: string;
  gitPath: string;
  credential: string;
  sessionUid: string;
  generation: number;
  /** Ceiling of one model request; 0 allows nothing. */
  maxModelRequestBytes: number;
}>;

/** Ports of the relay. */
export type RelayPorts = Readonly<{
  token: string;
  /** The turn that runs now, for accounting. */
  currentTurnId: () => string | null;
  /** Environment of commands that an agent runs. */
  commandEnvironment: () => Readonly<Record<string, string>>;
  log: Logger;
}>;

/** Model calls that are made again. */
export type CallRetries = Readonly<{
  clock: Clock;
  /** A call failed for the `tries`-th time and is made again after `waitMs`. */
  onWait: (wait: Readonly<{ tries: number; waitMs: number; message: string }>) => void;
  /** A call that had failed before was answered. */
  onAnswer: () => void;
}>;

/** What is sent on of a request: the stream that comes, or a body that is whole. */
type Sent = Readonly<{ method: string | undefined; body: IncomingMessage | Buffer }>;

/** A listening relay. */
export type Relay = Readonly<{
  origin: string;
  /** Until this is called, model and git calls answer 503. */
  open: (target: RelayTarget) => void;
  /** Serves these tools from now on. Source: A110. */
  offerTools: (tools: ToolHost) => void;
  /** Judges calls of subagents from now on. Source: A127, J7. */
  judgeBy: (judge: JudgeChildCall) => void;
  /** Sets the ceiling of the model requests that begin from now on; 0 allows nothing. */
  limitModels: (maxModelRequestBytes: number) => void;
  /** Makes failed model calls again from now on, for harnesses that ask for it. Source: A79. */
  retryCalls: (retries: CallRetries) => void;
  /** Refuses model calls from now on: the session is ending. */
  closeModels: () => void;
  stop: () => void;
}>;

const MAX_ERROR_BYTES = 65_536;
const GIT_PATHS = /^\/(info\/refs\?service=git-(upload|receive)-pack|git-upload-pack|git-receive-pack)$/;
const MODEL_REQUEST_HEADERS = ['accept', 'content-type', 'content-length', 'x-session-id', 'x-parent-session-id'];
const GIT_REQUEST_HEADERS = [
  'accept',
  'accept-encoding',
  'content-encoding',
  'content-type',
  'content-length',
  'git-protocol',
  'user-agent',
];
const RESPONSE_HEADERS = [
  'content-type',
  'content-length',
  'content-encoding',
  'cache-control',
  'x-request-id',
  'expires',
  'pragma',
];

const pick = (headers: IncomingHttpHeaders, names: readonly string[]): OutgoingHttpHeaders => {
  const result: OutgoingHttpHeaders = {};
  for (const name of names) {
    const value = headers[name];
    if (value !== undefined) result[name] = value;
  }
  return result;
};

/** Equal without telling where they differ. */
export const sameSecret = (given: string, expected: string): boolean => {
  const hash = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(given), hash(expected));
};

const bearerOf = (request: IncomingMessage): string =>
  /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';

const sendWorded = (response: ServerResponse, error: WordedError, requestId?: string): void => {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const body = errorBody(error);
  response.writeHead(error.status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    ...(error.retryAfterSeconds === undefined ? {} : { 'retry-after': String(error.retryAfterSeconds) }),
    ...(requestId === undefined ? {} : { 'x-request-id': requestId }),
  });
  response.end(body);
};

const readSome = async (stream: IncomingMessage): Promise<string> => {
  const parts: Buffer[] = [];
  let size = 0;
  try {
    for await (const part of stream as AsyncIterable<Buffer>) {
      parts.push(part);
      size += part.length;
      if (size >= MAX_ERROR_BYTES) break;
    }
  } catch {
    // What came so far says enough.
  }
  return Buffer.concat(parts).toString('utf8');
};

/** A request's whole body; undefined when it is longer, and then what comes of it is thrown away. */
const readWhole = async (request: IncomingMessage, maxBytes: number): Promise<Buffer | undefined> => {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    if (size <= maxBytes) parts.push(part);
    else parts.length = 0;
  }
  return size <= maxBytes ? Buffer.concat(parts) : undefined;
};

/** Starts the relay on a free loopback port. */
export const startRelay = async (ports: RelayPorts): Promise<Relay> => {
  const { log } = ports;
  const ways = makeWays({ keepAlive: true });
  let target: RelayTarget | undefined;
  let modelsClosed = false;
  let tools: ToolHost | undefined;
  let judge: JudgeChildCall | undefined;
  let retries: CallRetries | undefined;

  /** Sends the request on and gives back the answer's head; `onBytes` may refuse by returning false. */
  const forward = (
    sent: Sent,
    response: ServerResponse,
    to: RelayTarget,
    path: string,
    headers: OutgoingHttpHeaders,
    onBytes: (total: number) => boolean,
  ): Promise<IncomingMessage | undefined> =>
    new Promise((resolve, reject) => {
      const url = new URL(to.controlPlaneUrl);
      const { agent, request: send } = ways.of(url.protocol);
      const options: RequestOptions = {
        protocol: url.protocol,
        hostname: url.hostname.replace(/^\[|\]$/g, ''),
        port: url.port,
        method: sent.method,
        path: url.pathname.replace(/\/+$/, '') + path,
        agent,
        headers: { ...headers, authorization: `Bearer ${to.credential}` },
      };
      const upstream = send(options, resolve);
      upstream.on('error', reject);
      const onClose = (): void => {
        if (!response.writableFinished) upstream.destroy();
      };
      response.once('close', onClose);
      upstream.once('close', () => response.off('close', onClose));
      if (Buffer.isBuffer(sent.body)) {
        upstream.end(sent.body);
        return;
      }
      const request = sent.body;
      let total = 0;
      request.on('data', (chunk: Buffer) => {
        total += chunk.length;
        if (!onBytes(total)) {
          upstream.destroy();
          request.resume();
          resolve(undefined);
          return;
        }
        if (!upstream.write(chunk)) {
          request.pause();
          upstream.once('drain', () => request.resume());
        }
      });
      request.once('end', () => upstream.end());
      request.once('error', () => upstream.destroy());
    });

  const pipeBody = (from: IncomingMessage, response: ServerResponse): void => {
    response.writeHead(from.statusCode ?? 502, pick(from.headers, RESPONSE_HEADERS));
    response.flushHeaders();
    from.on('error', () => response.destroy());
    from.on('aborted', () => response.destroy());
    from.pipe(response);
  };

  const model = async (request: IncomingMessage, response: ServerResponse, rest: string): Promise<void> => {
    const to = target;
    if (!sameSecret(bearerOf(request), ports.token)) {
      return sendWorded(
        response,
        wordError({ status: 401, body: '{"error":{"code":"unauthenticated"}}', retryAfter: undefined }),
      );
    }
    if (to === undefined || modelsClosed) {
      return sendWorded(
        response,
        wordError({ status: 401, body: '{"error":{"code":"unauthenticated"}}', retryAfter: undefined }),
      );
    }
    const tooLarge = wordError({ status: 413, body: '{"error":{"code":"request_too_large"}}', retryAfter: undefined });
    if (Number(request.headers['content-length'] ?? 0) > to.maxModelRequestBytes) {
      request.resume();
      return sendWorded(response, tooLarge);
    }
    const turnId = ports.currentTurnId();
    const agent = request.headers['x-beeuni-agent'];
    const headers: OutgoingHttpHeaders = {
      ...pick(request.headers, MODEL_REQUEST_HEADERS),
      'x-beeuni-session': to.sessionUid,
      'x-beeuni-generation': String(to.generation),
      ...(turnId === null ? {} : { [TURN_HEADER]: turnId }),
      ...(typeof agent === 'string' ? { 'x-beeuni-agent': agent.slice(0, 128) } : {}),
    };
    const isSmall = (total: number): boolean => total <= to.maxModelRequestBytes;
    const again = request.headers[RELAY_RETRY_HEADER] === undefined ? undefined : retries;
    // A call that may be made again is kept whole until it is answered.
    const body = again === undefined ? request : await readWhole(request, to.maxModelRequestBytes);
    if (body === undefined) return sendWorded(response, tooLarge);
    const left = new AbortController();
    response.once('close', () => left.abort());
    for (let tries = 1; ; tries += 1) {
      let worded: WordedError;
      let requestId: string | string[] | undefined;
      try {
        const answer = await forward(
          { method: request.method, body },
          response,
          to,
          to.gatewayPath + rest,
          headers,
          isSmall,
        );
        if (answer === undefined) return sendWorded(response, tooLarge);
        const status = answer.statusCode ?? 502;
        if (status < 400) {
          if (tries > 1) again?.onAnswer();
          return pipeBody(answer, response);
        }
        worded = wordError({ status, body: await readSome(answer), retryAfter: answer.headers['retry-after'] });
        requestId = answer.headers['x-request-id'];
        log.warn('a model call failed', { status, code: worded.code, requestId, tries });
      } catch (error) {
        if (response.destroyed) return;
        log.warn('the gateway could not be reached', { chain: errorChain(error), tries });
        worded = wordError({ status: 503, body: '', retryAfter: undefined });
      }
      const waitMs = again && waitBeforeTry(worded, tries);
      if (again === undefined || waitMs === undefined || left.signal.aborted || modelsClosed) {
        return sendWorded(response, worded, typeof requestId === 'string' ? requestId : undefined);
      }
      again.onWait({ tries, waitMs, message: worded.message });
      if (!(await sleep(again.clock, waitMs, left.signal))) return;
      if (modelsClosed) return sendWorded(response, worded);
    }
  };

  const git = async (request: IncomingMessage, response: ServerResponse, rest: string): Promise<void> => {
    const to = target;
    if (to === undefined || !GIT_PATHS.test(rest)) {
      response.writeHead(to === undefined ? 503 : 404).end();
      return;
    }
    try {
      const answer = await forward(
        { method: request.method, body: request },
        response,
        to,
        to.gitPath + rest,
        pick(request.headers, GIT_REQUEST_HEADERS),
        () => true,
      );
      if (answer !== undefined) pipeBody(answer, response);
    } catch (error) {
      if (response.destroyed) return;
      log.warn('the git proxy could not be reached', { chain: errorChain(error) });
      if (response.headersSent) response.destroy();
      else response.writeHead(503).end();
    }
  };

  const environment = (request: IncomingMessage, response: ServerResponse): void => {
    if (!sameSecret(bearerOf(request), ports.token)) {
      response.writeHead(401).end();
      return;
    }
    response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-store' });
    response.end(JSON.stringify(ports.commandEnvironment()));
  };

  const toolCall = async (request: IncomingMessage, response: ServerResponse, name: string): Promise<void> => {
    if (sameSecret(bearerOf(request), ports.token)) return serveToolCall(request, response, name, tools);
    response.writeHead(401).end();
  };

  const childCall = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (sameSecret(bearerOf(request), ports.token)) return serveChildCall(request, response, judge);
    response.writeHead(401).end();
  };

  const server = createServer({ noDelay: true, keepAliveTimeout: 60_000, requestTimeout: 0 }, (request, response) => {
    const url = request.url ?? '/';
    response.on('error', () => {});
    const run = async (): Promise<void> => {
      if (url.startsWith('/v1/')) return model(request, response, url.slice('/v1'.length));
      if (url.startsWith('/git/')) return git(request, response, url.slice('/git'.length));
      if (url.startsWith(`${TOOLS_PATH}/`)) return toolCall(request, response, url.slice(TOOLS_PATH.length + 1));
      if (url === JUDGE_PATH && request.method === 'POST') return childCall(request, response);
      if (url === '/env' && request.method === 'GET') return environment(request, response);
      response.writeHead(404).end();
    };
    run().catch((error: unknown) => {
      log.error('the relay broke', { err: error });
      response.destroy();
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    open: (next) => {
      target = next;
    },
    offerTools: (offered) => {
      tools = offered;
    },
    judgeBy: (next) => {
      judge = next;
    },
    limitModels: (maxModelRequestBytes) => {
      if (target !== undefined) target = { ...target, maxModelRequestBytes };
    },
    retryCalls: (next) => {
      retries = next;
    },
    closeModels: () => {
      modelsClosed = true;
    },
    stop: () => {
      server.close();
      server.closeAllConnections();
      ways.destroy();
    },
  };
};
