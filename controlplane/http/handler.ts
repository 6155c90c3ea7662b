// The one shape of the control plane's handlers: base/http's, with our Caller. A file of handlers exports a factory that
// takes an app (the rules) and gives back handlers; server.ts mounts them. Must not know any route.
import type * as http from '#base/http/mount.ts';
import type { Caller } from '#controlplane/app/caller.ts';
import type { Route } from '#schema/define-route.ts';

/** Handler of a route that is no stream. */
export type Handler<R extends Route> = http.Handler<R, Caller>;
/** Handler of a route with `stream: 'sse'`. */
export type SseHandler<R extends Route> = http.SseHandler<R, Caller>;
/** Handler of a route with `stream: 'ndjson'`. */
export type NdjsonHandler<R extends Route> = http.NdjsonHandler<R, Caller>;
/** Who decides about callers of one listener. */
export type Guard = http.Guard<Caller>;
