// Calls a route value: typed input and output, a time limit, and errors back as the classes of base/errors.ts.
// Must not know any route or who serves it.
import type { z } from 'zod';
import {
  type BeeuniError,
  ConflictError,
  ForbiddenError,
  InvalidError,
  LimitError,
  NotFoundError,
  UnauthenticatedError,
  UnavailableError,
  UnsupportedError,
} from '#base/errors.ts';
import { retryAfterMs } from '#base/retry-after.ts';
import type { Route, RouteInput } from '#schema/define-route.ts';
import { PROBLEMS, type ProblemCode, type ProblemCodeOf } from '#schema/problem.ts';
import { readLines, readSse } from './read-stream.ts';
import { type Answer, readText, type Sent, send as sendPlainly } from './send.ts';

/** Time limit of a call that sets none. Units: milliseconds. */
export const DEFAULT_CALL_TIMEOUT_MS = 30_000;

/** What a client is made from. `unreachable` is the code for a server that does not answer as the contract says. */
export type ClientOptions = Readonly<{
  /** For example `http://127.0.0.1:8080`; a path is kept in front of the routes' paths. */
  baseUrl: string;
  /** Bearer credential, asked for each call. */
  token?: (() => string | undefined | Promise<string | undefined>) | undefined;
  /** Who is called, in messages: `the control plane`. */
  peer: string;
  unreachable: ProblemCodeOf<'unavailable'>;
  /** How calls are sent: `fetch` for one, with its redirects left alone; our own way when absent. */
  fetch?: ((url: string, sent: Sent & { redirect: 'manual' }) => Promise<Answer>) | undefined;
}>;

/** Settings of one call. Units: milliseconds; a stream's time limit ends at its head. */
export type CallOptions = Readonly<{
  signal?: AbortSignal | undefined;
  timeoutMs?: number | undefined;
  headers?: Readonly<Record<string, string>> | undefined;
  /** The body as JSON text, for a caller that has it as text already; the input's own is not sent then. */
  bodyText?: string | undefined;
  /** Streams only: silence after which the stream counts as broken; Infinity when absent. */
  silenceMs?: number | undefined;
}>;

/** A declared answer as it was read. */
export type RouteResult<R extends Route> = {
  [S in keyof R['responses'] & number]: Readonly<{
    status: S;
    body: R['responses'][S] extends z.ZodType ? z.output<R['responses'][S]> : never;
  }>;
}[keyof R['responses'] & number];

/** One value of an NDJSON route. */
export type StreamValue<R extends Route> = R['responses'] extends { 200: infer S extends z.ZodType }
  ? z.output<S>
  : never;

/** One frame of an SSE route; `data` is parsed JSON, to be read by the schema that `event` asks for. */
export type SseEvent = Readonly<{ id: string | undefined; event: string; data: unknown }>;

/** Calls routes of one server. All reject with a BeeuniError, or with the signal's reason when it fired. */
export type Client = Readonly<{
  call: <R extends Route>(route: R, input: RouteInput<R>, options?: CallOptions) => Promise<RouteResult<R>>;
  /** Resolves once the head came; then gives the values until the server ends the stream. */
  ndjson: <R extends Route>(
    route: R,
    input: RouteInput<R>,
    options?: CallOptions,
  ) => Promise<AsyncGenerator<StreamValue<R>>>;
  sse: <R extends Route>(route: R, input: RouteInput<R>, options?: CallOptions) => Promise<AsyncGenerator<SseEvent>>;
}>;

type AnyInput = Readonly<{
  params?: Readonly<Record<string, unknown>>;
  query?: Readonly<Record<string, unknown>>;
  body?: unknown;
}>;

const textOf = (value: unknown): string => {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return `${value}`;
  throw new TypeError(`a ${typeof value} cannot stand in a path or a query`);
};

/** The path and query of a call. Throws TypeError when a param is missing or is no string, number or boolean. */
export const routeUrl = (route: Route, input: AnyInput): string => {
  const path = route.path.replace(/:([A-Za-z]+)/g, (_match, name: string) => {
    const value = input.params?.[name];
    if (value === undefined) throw new TypeError(`route ${route.operationId} needs the param ${name}`);
    return encodeURIComponent(textOf(value));
  });
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(input.query ?? {})) {
    if (value !== undefined) query.set(name, textOf(value));
  }
  return query.size === 0 ? path : `${path}?${query.toString()}`;
};

/** The error that an answer stands for: class by the group of its code. Foreign or broken answers give `unreachable`. */
export const errorFromAnswer = (
  status: number,
  body: unknown,
  options: Pick<ClientOptions, 'peer' | 'unreachable'>,
  retryAfterMs?: number,
): BeeuniError => {
  const error = typeof body === 'object' && body !== null && 'error' in body ? body.error : undefined;
  const fields = (typeof error === 'object' && error !== null ? error : {}) as Record<string, unknown>;
  const { code, message, details } = fields as { code?: unknown; message?: unknown; details?: unknown };
  const known = typeof code === 'string' && Object.hasOwn(PROBLEMS, code) ? (code as ProblemCode) : undefined;
  const text = typeof message === 'string' ? message.slice(0, 2_048) : undefined;
  if (known === undefined || PROBLEMS[known].group === 'bug') {
    return new UnavailableError(
      options.unreachable,
      `${options.peer} answered ${status}${text === undefined ? '' : `: ${text}`}`,
      {
        retryAfterMs,
      },
    );
  }
  const own = text ?? PROBLEMS[known].meaning;
  const rest = typeof details === 'object' && details !== null ? { details: details as Record<string, unknown> } : {};
  const wait = retryAfterMs === undefined ? {} : { retryAfterMs };
  switch (PROBLEMS[known].group) {
    case 'invalid':
      return new InvalidError(known as ProblemCodeOf<'invalid'>, own, rest);
    case 'unauthenticated':
      return new UnauthenticatedError(own, rest);
    case 'forbidden':
      return new ForbiddenError(known as ProblemCodeOf<'forbidden'>, own, rest);
    case 'not-found':
      return new NotFoundError(known as ProblemCodeOf<'not-found'>, own, rest);
    case 'conflict':
      return new ConflictError(known as ProblemCodeOf<'conflict'>, own, rest);
    case 'limit':
      return new LimitError(known as ProblemCodeOf<'limit'>, own, { ...rest, ...wait });
    case 'unsupported':
      return new UnsupportedError(known as ProblemCodeOf<'unsupported'>, own, rest);
    default:
      return new UnavailableError(known as ProblemCodeOf<'unavailable'>, own, { ...rest, ...wait });
  }
};

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/** Fails the read when nothing arrives for `silenceMs`. */
async function* watchSilence(
  chunks: AsyncIterable<Uint8Array>,
  silenceMs: number,
  onSilence: () => void,
): AsyncGenerator<Uint8Array> {
  if (!Number.isFinite(silenceMs)) {
    yield* chunks;
    return;
  }
  let timer = setTimeout(onSilence, silenceMs);
  try {
    for await (const chunk of chunks) {
      timer.refresh();
      yield chunk;
      timer.refresh();
    }
  } finally {
    clearTimeout(timer);
  }
}

/** A client of one server; it holds no connection open by itself. */
export const createClient = (options: ClientOptions): Client => {
  const send = options.fetch ?? sendPlainly;
  const base = options.baseUrl.replace(/\/+$/, '');

  const unreachable = (message: string, cause?: unknown): BeeuniError =>
    new UnavailableError(options.unreachable, `${options.peer} ${message}`, { cause });

  /** Sends and gives back the response, whatever its status; `limit` cuts it off later too. */
  const open = async (route: Route, input: AnyInput, call: CallOptions, limit: AbortController): Promise<Answer> => {
    const token = await options.token?.();
    const headers: Record<string, string> = { accept: '*/*', ...call.headers };
    if (token !== undefined) headers['authorization'] = `Bearer ${token}`;
    const hasBody = route.body !== undefined;
    if (hasBody) headers['content-type'] = 'application/json';
    const signals = call.signal === undefined ? limit.signal : AbortSignal.any([call.signal, limit.signal]);
    try {
      return await send(`${base}${routeUrl(route, input)}`, {
        method: route.method,
        headers,
        redirect: 'manual',
        signal: signals,
        ...(hasBody ? { body: call.bodyText ?? JSON.stringify(input.body ?? {}) } : {}),
      });
    } catch (error) {
      throw readError(route, call, limit, error);
    }
  };

  const readError = (route: Route, call: CallOptions, limit: AbortController, error: unknown): unknown => {
    if (call.signal?.aborted === true) return call.signal.reason;
    if (limit.signal.aborted) {
      return new UnavailableError('timed_out', `${options.peer} did not answer ${route.operationId} in time`, {
        cause: error,
      });
    }
    return unreachable('could not be reached', error);
  };

  const failure = async (response: Answer): Promise<BeeuniError> => {
    const text = await readText(response).catch(() => '');
    return errorFromAnswer(
      response.status,
      parseJson(text),
      options,
      retryAfterMs(response.headers.get('retry-after')),
    );
  };

  const call = async <R extends Route>(
    route: R,
    input: RouteInput<R>,
    settings: CallOptions = {},
  ): Promise<RouteResult<R>> => {
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(), settings.timeoutMs ?? DEFAULT_CALL_TIMEOUT_MS);
    try {
      const response = await open(route, input as AnyInput, settings, limit);
      const schema = route.responses[response.status];
      if (schema === undefined) throw await failure(response);
      const text = await readText(response).catch((error: unknown) => {
        throw readError(route, settings, limit, error);
      });
      const parsed = schema.safeParse(text === '' ? null : parseJson(text));
      if (!parsed.success) {
        throw unreachable(`answered ${route.operationId} in a form that is not the contract's`, parsed.error);
      }
      return { status: response.status, body: parsed.data } as RouteResult<R>;
    } finally {
      clearTimeout(timer);
    }
  };

  const openStream = async (
    route: Route,
    input: AnyInput,
    settings: CallOptions,
  ): Promise<Readonly<{ chunks: AsyncIterable<Uint8Array>; fail: (error: unknown) => unknown; close: () => void }>> => {
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(), settings.timeoutMs ?? DEFAULT_CALL_TIMEOUT_MS);
    try {
      const response = await open(route, input, settings, limit);
      if (response.status !== 200 || response.body === null) throw await failure(response);
      const { body } = response;
      let silent = false;
      return {
        chunks: watchSilence(body, settings.silenceMs ?? Number.POSITIVE_INFINITY, () => {
          silent = true;
          limit.abort();
        }),
        fail: (error) => (silent ? unreachable('went silent', error) : readError(route, settings, limit, error)),
        close: () => limit.abort(),
      };
    } finally {
      clearTimeout(timer);
    }
  };

  const ndjson = async <R extends Route>(
    route: R,
    input: RouteInput<R>,
    settings: CallOptions = {},
  ): Promise<AsyncGenerator<StreamValue<R>>> => {
    const stream = await openStream(route, input as AnyInput, settings);
    const schema = route.responses[200];
    return (async function* () {
      try {
        for await (const line of readLines(stream.chunks)) {
          if (line === '') continue;
          const parsed = schema?.safeParse(parseJson(line));
          if (parsed?.success !== true) {
            throw unreachable(`sent a frame of ${route.operationId} that is not the contract's`, parsed?.error);
          }
          yield parsed.data as StreamValue<R>;
        }
      } catch (error) {
        throw error instanceof UnavailableError ? error : stream.fail(error);
      } finally {
        stream.close();
      }
    })();
  };

  const sse = async <R extends Route>(
    route: R,
    input: RouteInput<R>,
    settings: CallOptions = {},
  ): Promise<AsyncGenerator<SseEvent>> => {
    const stream = await openStream(route, input as AnyInput, settings);
    return (async function* () {
      try {
        for await (const frame of readSse(stream.chunks)) {
          yield { id: frame.id, event: frame.event, data: parseJson(frame.data) };
        }
      } catch (error) {
        throw error instanceof UnavailableError ? error : stream.fail(error);
      } finally {
        stream.close();
      }
    })();
  };

  return { call, ndjson, sse };
};
