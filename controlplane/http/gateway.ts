// Mounts the model gateway on the sandbox listener. Must not know providers; the handlers do.

import { type DirectCall, mountDirect } from '#base/http/direct-route.ts';
import type { ErrorShape } from '#base/http/error-response.ts';
import type { HttpServer } from '#base/http/server.ts';
import { type Caller, callerOf } from '#controlplane/app/caller.ts';
import type { Route } from '#schema/define-route.ts';
import {
  chatCompletionsRoute,
  embeddingsRoute,
  gatewayModelsRoute,
  messagesRoute,
  responsesRoute,
} from '#schema/wire/gateway.ts';
import type { GatewayCall } from '../gateway/ports.ts';
import type { Guard } from './handler.ts';

/** The gateway's handlers by operation, and its shapes of errors. */
export type GatewayHandlers = Readonly<{
  chat: (call: GatewayCall) => Promise<void>;
  responses: (call: GatewayCall) => Promise<void>;
  messages: (call: GatewayCall) => Promise<void>;
  embeddings: (call: GatewayCall) => Promise<void>;
  models: (call: GatewayCall) => Promise<void>;
  errorShapes: Readonly<Record<'openai' | 'anthropic', ErrorShape>>;
}>;

/** Serves the paths of `/gateway/v1`. */
export const mountGateway = (server: HttpServer, handlers: GatewayHandlers, guard: Guard): void => {
  const serve = (
    route: Route,
    handler: (call: GatewayCall) => Promise<void>,
    errors: keyof GatewayHandlers['errorShapes'] = 'openai',
  ): void => {
    mountDirect(
      server,
      {
        route,
        errorShape: handlers.errorShapes[errors],
        // Anthropic's client sends its key in a header of its own.
        ...(errors === 'anthropic' ? { bearerHeader: 'x-api-key' } : {}),
        handler: ({ caller, requestId, request, response }: DirectCall<Caller>) =>
          handler({ identity: callerOf(caller, 'sandbox'), requestId, request, response }),
      },
      guard,
    );
  };
  serve(chatCompletionsRoute, handlers.chat);
  serve(responsesRoute, handlers.responses);
  serve(messagesRoute, handlers.messages, 'anthropic');
  serve(embeddingsRoute, handlers.embeddings);
  serve(gatewayModelsRoute, handlers.models);
};
