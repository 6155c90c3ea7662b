// `beeuni providers check`.
import { checkProviderRoute } from '#schema/rest/workspace.ts';
import { defineCommand, JSON_OPTION } from '../command.ts';
import { EXIT } from '../failure.ts';
import { plainJson, plainLine } from '../plain-text.ts';

/** A provider may take its time. Units: milliseconds. */
const LIMIT_MS = 60_000;

/** See the file. */
export const command = defineCommand({
  summary: 'reach a provider with its stored key and list its models; exit code 1 when that fails',
  arguments: [{ name: 'PROVIDER', summary: 'id of the provider' }],
  options: JSON_OPTION,
  needsApi: true,
  run: async ({ api, args, options, print, note }) => {
    const params = { id: args[0] ?? '' };
    const client = await api.client();
    const { body } = await client.call(checkProviderRoute, { params, body: {} }, { timeoutMs: LIMIT_MS });
    if (options.json) print(plainJson(body, 2));
    else {
      print(...body.models.map((model) => plainLine(model, 256)));
      const why = body.message === null ? '' : `: ${plainLine(body.message)}`;
      note(`${params.id} is ${body.reachable ? 'reachable' : 'not reachable'}${why}`);
    }
    return body.reachable ? EXIT.done : EXIT.failed;
  },
});
