// A route as a plain value: served by base/http/mount.ts, called by base/http/client.ts, described in OpenAPI.
// Must not know any HTTP framework.
import type { z } from 'zod';

/** Listener of the control plane (public 8080, sandbox 8081, internal 8082, metrics 9090) or the daemon (8000). */
export type Listener = 'public' | 'sandbox' | 'internal' | 'metrics' | 'daemon';

/** Who may call a route. Source: D5, D6, D12, 20-control-plane §1, §2. */
export type RouteAuth =
  /** Nobody is asked who they are: health, metrics, the OpenAPI document. */
  | Readonly<{ kind: 'anyone' }>
  /** SubjectAccessReview on a beeuni.dev resource; namespace and name come from the params `namespace` and `name`. */
  | Readonly<{ kind: 'resource'; resource: 'projects' | 'sessions'; subresource?: string; verb: string }>
  /** SubjectAccessReview on a path; the verb is the HTTP method in lower case unless given. */
  | Readonly<{ kind: 'non-resource'; path: string; verb: string }>
  /** Anybody with a valid token: the handler gives only what the cluster's RBAC lets this person have. */
  | Readonly<{ kind: 'user' }>
  /** Pod-bound service-account token: the claim only. */
  | Readonly<{ kind: 'pod' }>
  /** Session credential, whose generation must be the newest. */
  | Readonly<{ kind: 'sandbox' }>
  /** The operator's service-account token. */
  | Readonly<{ kind: 'operator' }>
  /** The credential that the claim gave to daemon and control plane. */
  | Readonly<{ kind: 'control-plane' }>;

/** The HTTP methods in use. */
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

type Schemas = Readonly<{
  params?: z.ZodObject;
  query?: z.ZodObject;
  body?: z.ZodType;
  responses: Readonly<Record<number, z.ZodType>>;
}>;

/** One route: plain data. `stream` marks an endless answer, whose frames (texts of a WebSocket) have the shape of response 200. */
export type Route<S extends Schemas = Schemas> = Readonly<
  {
    operationId: string;
    listener: Listener;
    method: Method;
    /** Fastify's form, for example `/v1/namespaces/:namespace/sessions/:name`. */
    path: string;
    summary: string;
    auth: RouteAuth;
    bodyLimitBytes?: number;
    stream?: 'sse' | 'ndjson' | 'websocket';
    /** Field of the answer's body whose value, in quotes, is its ETag. */
    etag?: string;
  } & S
>;

/** Gives back the route with its exact types. */
export const defineRoute = <const S extends Schemas>(route: Route<S>): Route<S> => route;

/** What a caller of the route sends. */
export type RouteInput<R extends Route> = (R['params'] extends z.ZodObject
  ? { params: z.input<R['params']> }
  : { params?: undefined }) &
  (R['query'] extends z.ZodObject ? { query?: z.input<R['query']> } : { query?: undefined }) &
  (R['body'] extends z.ZodType ? { body: z.input<R['body']> } : { body?: undefined });

/** What the handler of the route receives, after parsing. */
export type RouteRequest<R extends Route> = Readonly<{
  params: R['params'] extends z.ZodObject ? z.output<R['params']> : undefined;
  query: R['query'] extends z.ZodObject ? z.output<R['query']> : undefined;
  body: R['body'] extends z.ZodType ? z.output<R['body']> : undefined;
}>;

/** One declared answer: status and body. */
export type RouteAnswer<R extends Route> = {
  [S in keyof R['responses'] & number]: Readonly<{ status: S; body: z.input<R['responses'][S]> }>;
}[keyof R['responses'] & number];
