// `GET /gateway/v1/models`: what the session may call, in the shape of OpenAI's list. Must not know HTTP frameworks.
import { isModelAllowed, usableModelNames } from '#schema/rules/check-model.ts';
import type { GatewayCall } from './chat.ts';
import type { GatewayPorts } from './ports.ts';
import { errorBody, finalError } from './wording.ts';

/** Makes the handler. Errors: those of the registry. */
export const makeGatewayModelsHandler =
  (ports: Pick<GatewayPorts, 'readRegistry' | 'findProjectPolicy'>): ((call: GatewayCall) => Promise<void>) =>
  async ({ identity, response, requestId }) => {
    const send = (status: number, body: string): void => {
      response.writeHead(status, {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        'cache-control': 'no-store',
        'x-request-id': requestId,
      });
      response.end(body);
    };
    const project = ports.findProjectPolicy(identity.projectUid);
    if (project === undefined) {
      const error = finalError('project_not_found');
      return send(error.status, errorBody(error));
    }
    if (!project.gateway) {
      const error = finalError('feature_disabled');
      return send(error.status, errorBody(error));
    }
    const { providers } = await ports.readRegistry();
    const data = usableModelNames(providers)
      .filter((name) => isModelAllowed(name, project.allowed))
      .map((id) => ({ id, object: 'model', created: 0, owned_by: id.slice(0, id.indexOf('/')) }));
    send(200, JSON.stringify({ object: 'list', data }));
  };
