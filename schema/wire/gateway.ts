// The model gateway on the sandbox listener. Bodies are OpenAI's and pass through as bytes, so they have no schema here.
// Source: 20-control-plane §5.
import { z } from 'zod';
import { defineRoute } from '../define-route.ts';

/** Path prefix of the gateway: `gatewayPath` of the claim. */
export const GATEWAY_PATH = '/gateway/v1';

/** Header by which the daemon's relay names the turn that a call belongs to; at most 64 characters. */
export const TURN_HEADER = 'x-beeuni-turn-id';

const modelRoute = <const Id extends string>(operationId: Id, path: string, summary: string) =>
  defineRoute({
    operationId,
    listener: 'sandbox',
    method: 'POST',
    path: `${GATEWAY_PATH}${path}`,
    summary,
    auth: { kind: 'sandbox' },
    responses: { 200: z.unknown() },
  });

/** `POST /gateway/v1/chat/completions`: streaming or not. Errors have the shape of OpenAI's. */
export const chatCompletionsRoute = modelRoute(
  'createChatCompletion',
  '/chat/completions',
  'Call a model of the registry',
);

/** `POST /gateway/v1/responses`: OpenAI's newer API, streaming or not. Errors have the shape of OpenAI's. */
export const responsesRoute = modelRoute('createResponse', '/responses', 'Call a model by the API of responses');

/** `POST /gateway/v1/messages`: for providers of kind `anthropic`. Errors have the shape of Anthropic's. */
export const messagesRoute = modelRoute('createMessage', '/messages', "Call a model by Anthropic's API");

/** `POST /gateway/v1/embeddings`. Errors have the shape of OpenAI's. */
export const embeddingsRoute = modelRoute('createEmbeddings', '/embeddings', 'Turn texts into vectors');

/** `GET /gateway/v1/models`: the models that the project may use, in the shape of OpenAI's list. */
export const gatewayModelsRoute = defineRoute({
  operationId: 'listGatewayModels',
  listener: 'sandbox',
  method: 'GET',
  path: `${GATEWAY_PATH}/models`,
  summary: 'List the models that the session may call',
  auth: { kind: 'sandbox' },
  responses: { 200: z.unknown() },
});
