// Mounts the model gateway on the sandbox listener. Must not know providers; the handlers do.
import type { ErrorShape } from '#base/http/error-response.ts';
import { mountRaw } from '#base/http/raw-route.ts';
import type { HttpServer } from '#base/http/server.ts';
import { callerOf } from '#controlplane/app/caller.ts';
import type { Route } from '#schema/define-route.ts';
import { chatCompletionsRoute, gatewayModelsRoute } from '#schema/wire/gateway.ts';
import type { GatewayCall } from '../gateway/chat.ts';
import type { Guard } from './handler.ts';

/** The gateway's handlers and its shape of errors. */
export type GatewayHandlers = Readonly<{
  chat: (call: GatewayCall) => Promise<void>;
  models: (call: GatewayCall) => Promise<void>;
  errorShape: ErrorShape;
}>;

/** Serves `/gateway/v1/chat/completions` and `/gateway/v1/models`. */
export const mountGateway = (server: HttpServer, handlers: GatewayHandlers, guard: Guard): void => {
  const serve = (route: Route, handler: (call: GatewayCall) => Promise<void>): void => {
    mountRaw(
      server,
      {
        route,
        errorShape: handlers.errorShape,
        handler: ({ caller, requestId, signal, request, response }) =>
          handler({ identity: callerOf(caller, 'sandbox'), requestId, signal, request, response }),
      },
      guard,
    );
  };
  serve(chatCompletionsRoute, handlers.chat);
  serve(gatewayModelsRoute, handlers.models);
};
