// `GET /gateway/v1/models`: what the session may call, in a list that OpenAI's and Anthropic's clients both read.
// Must not know HTTP frameworks.
import { isModelAllowed, usableModelNames } from '#schema/rules/check-model.ts';
import { errorBody } from './error-shape.ts';
import type { GatewayCall, GatewayPorts } from './ports.ts';
import { finalError } from './wording.ts';

/** A time that is no one's: the registry does not know when a model was made. */
const NEVER = '1970-01-01T00:00:00Z';

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
      return send(error.status, errorBody('openai', error));
    }
    if (!project.gateway) {
      const error = finalError('feature_disabled');
      return send(error.status, errorBody('openai', error));
    }
    const { providers } = await ports.readRegistry();
    const data = usableModelNames(providers)
      .filter((name) => isModelAllowed(name, project.allowed))
      .map((id) => ({
        id,
        object: 'model',
        created: 0,
        owned_by: id.slice(0, id.indexOf('/')),
        type: 'model',
        display_name: id,
        created_at: NEVER,
      }));
    const ends = { first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null };
    send(200, JSON.stringify({ object: 'list', data, has_more: false, ...ends }));
  };
