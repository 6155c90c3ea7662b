// The text of the one plug-in that runs inside OpenCode: it keeps code of the workspace out of the server, gives commands
// the granted environment, hides OpenCode's own variables from them, and names the agent in model calls.
// Imports nothing. Must not hold a secret. Source: harness-runtimes §2.6, FF8.

/** Variables of the server that a command has no use for. */
const HIDDEN = ['OPENCODE_SERVER_PASSWORD', 'OPENCODE_CONFIG_CONTENT', 'OPENCODE_CONFIG_DIR'];
/** Set for every command, so that the daemon can see that the plug-in, and with it the guard, is there. */
export const PLUGIN_PROOF = 'BEEUNI_PLUGIN';

const literal = (text: string): string => text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');

/** Pattern of the files that the server may not import: all but those inside its binary and our configuration. */
export const foreignFiles = (configDirectory: string): string =>
  `^(?!${['/$bunfs/', `${configDirectory}/`].map(literal).join('|')})`;

/**
 * The plug-in; the token is read from the server's environment at run time. The guard: OpenCode 1.18.33 imports the
 * plug-ins that the workspace's `.opencode` and `opencode.json` name at the first turn, whatever
 * OPENCODE_DISABLE_PROJECT_CONFIG says (measured). Nothing but our own configuration folder may be imported from disk.
 */
export const pluginSource = (
  settings: Readonly<{ environmentUrl: string; tokenVariable: string; configDirectory: string }>,
): string => `// Written by the daemon.
const TOKEN = process.env[${JSON.stringify(settings.tokenVariable)}];
Bun.plugin({
  name: 'beeuni-guard',
  setup: (build) => {
    build.onLoad({ filter: new RegExp(${JSON.stringify(foreignFiles(settings.configDirectory))}) }, ({ path }) => {
      console.error('beeuni: not imported: ' + path);
      return { contents: "export default { id: 'not-imported', setup() {} };", loader: 'js' };
    });
  },
});
let last = {};
const environment = async () => {
  const answer = await fetch(${JSON.stringify(settings.environmentUrl)}, {
    headers: { authorization: 'Bearer ' + TOKEN },
    signal: AbortSignal.timeout(5000),
  });
  if (answer.ok) last = await answer.json();
  return last;
};
export const Beeuni = async () => ({
  'shell.env': async (_input, output) => {
    Object.assign(output.env, await environment().catch(() => last));
    for (const name of ${JSON.stringify([...HIDDEN, settings.tokenVariable])}) output.env[name] = '';
    output.env[${JSON.stringify(PLUGIN_PROOF)}] = '1';
  },
  'chat.headers': async (input, output) => {
    const agent = typeof input.agent === 'string' ? input.agent : input.agent?.name;
    if (typeof agent === 'string') output.headers['x-beeuni-agent'] = agent;
  },
});
`;
