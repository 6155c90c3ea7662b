// A model server that follows a script and speaks the APIs of OpenAI and of Anthropic's messages: for tests, and for the
// demo, which needs no key and no network.
// `node examples/demo/scripted-model.ts --port 4010 [--host 0.0.0.0] [--key-file FILE] [--models a,b]`.
// It must not know Beeuni; whatever speaks to an OpenAI-compatible provider can speak to it.
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import {
  type ApiAnswer,
  chatOfMessages,
  chatOfResponses,
  embeddingsAnswer,
  type Frame,
  messagesAnswer,
  responsesAnswer,
} from './model-apis.ts';
import { decide, type Step } from './model-script.ts';
import { type Completion, chunksOf, completionOf } from './model-wire.ts';

/** One request as it came in. `closed` settles when the answer ended: true when the client left before that. */
export type RecordedRequest = Readonly<{
  method: string;
  path: string;
  headers: Readonly<Record<string, string>>;
  raw: Buffer;
  body: Readonly<Record<string, unknown>>;
  closed: Promise<boolean>;
}>;

/** What the server is started with. `key`: required bearer key. `queue`: answers given before any script. */
export type ScriptedModelOptions = Readonly<{
  port?: number | undefined;
  host?: string | undefined;
  key?: string | undefined;
  /** More keys that are accepted. */
  keys?: readonly string[] | undefined;
  models?: readonly string[] | undefined;
  /** Sees every request, newest last; the server keeps none itself. */
  onRequest?: ((request: RecordedRequest) => void) | undefined;
}>;

/** A running server. `url` ends in `/v1`. `queue` answers the next chat requests in order, before any script. */
export type ScriptedModel = Readonly<{
  url: string;
  port: number;
  queue: (...steps: readonly Step[]) => void;
  close: () => Promise<void>;
}>;

const MAX_BODY_BYTES = 64 * 1024 * 1024;

const json = (response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void => {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
};

const errorBody = (message: string, type: string, code: string | null = null) => ({
  error: { message, type, param: null, code },
});

const readBody = async (request: IncomingMessage): Promise<Buffer> => {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > MAX_BODY_BYTES) throw new Error('the body is too large');
    parts.push(part);
  }
  return Buffer.concat(parts);
};

const OVERFLOW =
  "This model's maximum context length is 8192 tokens. However, your messages resulted in 99999 tokens. Please reduce the length of the messages.";

const errorTypeOf = (status: number): string =>
  status === 429
    ? 'rate_limit_error'
    : status === 401
      ? 'authentication_error'
      : status >= 500
        ? 'server_error'
        : 'invalid_request_error';

type ErrorShape = (message: string, type: string, code?: string | null) => unknown;

const anthropicError: ErrorShape = (message, type) => ({ type: 'error', error: { type, message } });

/** True when the step failed as it should, so that nothing else is to be sent. */
const fail = (response: ServerResponse, step: Step, shape: ErrorShape = errorBody): boolean => {
  const mischief = step.mischief;
  if (mischief?.kind === 'overflow') {
    json(response, 400, shape(OVERFLOW, 'invalid_request_error', 'context_length_exceeded'));
    return true;
  }
  if (mischief?.kind === 'error') {
    const retryAfter = step.retryAfterSeconds ?? (mischief.status === 429 ? 1 : undefined);
    const headers = retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) };
    json(response, mischief.status, shape(mischief.message, errorTypeOf(mischief.status)), headers);
    return true;
  }
  return mischief?.kind === 'silent';
};

/** A stream in the words of one API: frames of text, frames that end it, an error, and what follows the last frame. */
type Frames = Readonly<{
  text: readonly string[];
  end: readonly string[];
  error: (message: string, isFinal: boolean) => string;
  last: string;
}>;

const chatFrames = (completion: Completion): Frames => {
  const frame = (data: unknown): string => `data: ${JSON.stringify(data)}\n\n`;
  const chunks = chunksOf(completion);
  return {
    text: chunks.text.map(frame),
    end: chunks.end.map(frame),
    error: (message, isFinal) =>
      frame(
        isFinal ? errorBody(message, 'invalid_request_error', 'provider_failed') : errorBody(message, 'server_error'),
      ),
    last: 'data: [DONE]\n\n',
  };
};

const apiFrames = (answer: ApiAnswer): Frames => {
  const frame = ({ event, data }: Frame): string => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
  return {
    text: answer.text.map(frame),
    end: answer.end.map(frame),
    error: (message) => frame(answer.error(message)),
    last: '',
  };
};

const stream = async (response: ServerResponse, frames: Frames, step: Step): Promise<void> => {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  for (const chunk of frames.text) {
    if (response.destroyed) return;
    response.write(chunk);
    if (step.mischief?.kind === 'hang') return;
    if (step.paced !== undefined && step.paced.gapMs > 0) await wait(step.paced.gapMs);
  }
  const { mischief } = step;
  if (mischief?.kind === 'drop') {
    await wait(20);
    response.destroy();
    return;
  }
  if (mischief?.kind === 'truncate' || mischief?.kind === 'error-inside') {
    if (mischief.kind === 'error-inside') response.write(frames.error(mischief.message, mischief.final === true));
    response.end();
    return;
  }
  for (const chunk of frames.end) response.write(chunk);
  response.end(frames.last);
};

/** Starts the server; port 0, the default, takes a free one. Rejects when the port is taken. */
export const startScriptedModel = async (options: ScriptedModelOptions = {}): Promise<ScriptedModel> => {
  const { key, host = '127.0.0.1', models = ['scripted-large', 'scripted-small'] } = options;
  const keys = key === undefined ? options.keys : [key, ...(options.keys ?? [])];
  const waiting: Step[] = [];
  const tries = new Map<string, number>();

  /** The step to play now: a step that fails for its first tries says "recovered" afterwards. */
  const settle = (step: Step, triesKey: string | undefined): Step => {
    if (step.mischief === undefined || !('times' in step.mischief) || triesKey === undefined) return step;
    const tried = (tries.get(triesKey) ?? 0) + 1;
    tries.set(triesKey, tried);
    return tried > step.mischief.times ? { text: 'recovered' } : step;
  };

  /** How one API reads a request and writes an answer. */
  type Api = Readonly<{
    read: (body: Record<string, unknown>) => Parameters<typeof decide>[0];
    answer: ((completion: Completion) => ApiAnswer) | undefined;
    errors: ErrorShape;
  }>;
  const apis: Readonly<Record<string, Api>> = {
    '/chat/completions': { read: (body) => body, answer: undefined, errors: errorBody },
    '/responses': { read: chatOfResponses, answer: responsesAnswer, errors: errorBody },
    '/messages': { read: chatOfMessages, answer: messagesAnswer, errors: anthropicError },
  };

  const converse = async (
    response: ServerResponse,
    api: Api,
    body: Record<string, unknown>,
    bytes: number,
  ): Promise<void> => {
    const queued = waiting.shift();
    const decision = queued === undefined ? decide(api.read(body)) : { step: queued, triesKey: undefined };
    const step = settle(decision.step, decision.triesKey);
    if (step.delayMs !== undefined) await wait(step.delayMs);
    if (fail(response, step, api.errors)) return;
    const completion = completionOf(step, {
      id: `chatcmpl-${randomUUID()}`,
      createdSeconds: Math.floor(Date.now() / 1000),
      model: typeof body['model'] === 'string' ? body['model'] : (models[0] ?? 'scripted'),
      promptBytes: bytes,
      newCallId: () => `call_${randomUUID().slice(0, 12)}`,
    });
    const answer = api.answer?.(completion);
    if (body['stream'] === true) {
      await stream(response, answer === undefined ? chatFrames(completion) : apiFrames(answer), step);
    } else if (step.mischief?.kind !== 'hang') {
      json(response, 200, answer?.whole ?? completion.whole);
    }
  };

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const closed = new Promise<boolean>((resolve) => {
      response.on('close', () => resolve(!response.writableFinished));
    });
    const path = new URL(request.url ?? '/', 'http://localhost').pathname;
    if (path === '/healthz') return json(response, 200, { ok: true });
    const raw = await readBody(request);
    let body: Record<string, unknown> = {};
    if (raw.length > 0) body = JSON.parse(raw.toString('utf8')) as Record<string, unknown>;
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
    options.onRequest?.({ method: request.method ?? '', path, headers, raw, body, closed });
    const api = Object.entries(apis).find(([suffix]) => path.endsWith(suffix))?.[1];
    const given = request.headers['x-api-key'] ?? request.headers.authorization?.replace(/^Bearer /, '');
    if (keys !== undefined && !keys.includes(String(given))) {
      const shape = api?.errors ?? errorBody;
      return json(response, 401, shape('the key is wrong', 'authentication_error', 'invalid_api_key'));
    }
    if (path.endsWith('/models')) {
      const data = models.map((id) => ({ id, object: 'model', created: 0, owned_by: 'scripted' }));
      return json(response, 200, { object: 'list', data });
    }
    if (path.endsWith('/embeddings')) return json(response, 200, embeddingsAnswer(body, raw.length));
    if (api === undefined) return json(response, 404, errorBody('no such route', 'invalid_request_error'));
    await converse(response, api, body, raw.length);
  };

  const server = createServer((request, response) => {
    handle(request, response).catch(() => {
      if (response.headersSent) response.destroy();
      else json(response, 400, errorBody('the request is not valid', 'invalid_request_error'));
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, host, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    port,
    queue: (...steps) => {
      waiting.push(...steps);
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      port: { type: 'string', default: '4010' },
      host: { type: 'string', default: '127.0.0.1' },
      'key-file': { type: 'string' },
      models: { type: 'string' },
    },
  });
  const keyFile = values['key-file'];
  const model = await startScriptedModel({
    port: Number(values.port),
    host: values.host,
    key: keyFile === undefined ? undefined : readFileSync(keyFile, 'utf8').trim(),
    models: values.models?.split(','),
  });
  process.on('SIGTERM', () => void model.close());
  process.on('SIGINT', () => void model.close());
  console.log(`scripted model on http://${values.host}:${model.port}/v1`);
}
