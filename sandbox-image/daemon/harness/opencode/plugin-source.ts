// The text of the one plug-in that runs inside OpenCode: it gives commands the granted environment, hides OpenCode's
// own variables from them, and names the agent in model calls. Imports nothing. Must not hold a secret.
// Source: harness-runtimes §2.6.

/** Variables of the server that a command has no use for. */
const HIDDEN = ['OPENCODE_SERVER_PASSWORD', 'OPENCODE_CONFIG_CONTENT', 'OPENCODE_CONFIG_DIR'];

/** The plug-in; the token is read from the server's environment at run time. */
export const pluginSource = (environmentUrl: string, tokenVariable: string): string => `// Written by the daemon.
const URL = ${JSON.stringify(environmentUrl)};
const TOKEN = process.env[${JSON.stringify(tokenVariable)}];
let last = {};
const environment = async () => {
  const answer = await fetch(URL, { headers: { authorization: 'Bearer ' + TOKEN }, signal: AbortSignal.timeout(5000) });
  if (answer.ok) last = await answer.json();
  return last;
};
export const Beeuni = async () => ({
  'shell.env': async (_input, output) => {
    Object.assign(output.env, await environment().catch(() => last));
    for (const name of ${JSON.stringify([...HIDDEN])}) output.env[name] = '';
    output.env[${JSON.stringify(tokenVariable)}] = '';
  },
  'chat.headers': async (input, output) => {
    const agent = typeof input.agent === 'string' ? input.agent : input.agent?.name;
    if (typeof agent === 'string') output.headers['x-beeuni-agent'] = agent;
  },
});
`;
