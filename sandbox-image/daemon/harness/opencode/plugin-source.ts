// The text of the one plug-in that runs inside OpenCode: it keeps code of the workspace out of the server, gives commands
// the granted environment, hides OpenCode's own variables from them, names the agent in model calls, and hands calls of
// Beeuni's and the project's tools to the daemon, which also judges calls of subagents. Imports nothing. Must not hold a
// secret. Source: harness-runtimes §2.6, A50, A52, A110, A127, J7, FF8.
import { type ToolSpec, UNASKABLE_TOOLS } from '../contract/tools.ts';

/** Variables of the server that a command has no use for. */
const HIDDEN = ['OPENCODE_SERVER_PASSWORD', 'OPENCODE_CONFIG_CONTENT', 'OPENCODE_CONFIG_DIR'];
/** Set for every command, so that the daemon can see that the plug-in, and with it the guard, is there. */
export const PLUGIN_PROOF = 'BEEUNI_PLUGIN';

/**
 * Tools of OpenCode that open one file. OpenCode judges its name alone and opens what it leads to, a pipe too, so they are
 * given the name of the file itself: then its rules are asked about what is opened. Source: A117, FF6.
 */
const FILE_TOOLS = ['read', 'edit', 'write', 'multiedit'];

const literal = (text: string): string => text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');

/** Pattern of the files that the server may not import: all but those inside its binary and our configuration. */
export const foreignFiles = (configDirectory: string): string =>
  `^(?!${['/$bunfs/', `${configDirectory}/`].map(literal).join('|')})`;

/**
 * Where the project's `tools/` go: no place that OpenCode looks at, since there a file that does not load ends every
 * prompt without a word (measured, 1.18.33). The plug-in of the daemon loads them one by one.
 */
export const OWN_TOOLS = 'own-tools';

/** What the plug-in is written from. `tools`: those that it hands on, fixed for the life of the server. */
export type PluginSettings = Readonly<{
  environmentUrl: string;
  toolsUrl: string;
  /** Where the call of a subagent is judged by the rules of the agent that started it. Source: J7. */
  judgeUrl: string;
  tools: readonly ToolSpec[];
  /** Files of the project's own tools, absolute; what they define wins, what does not load is left out. Source: A51. */
  ownTools: readonly string[];
  tokenVariable: string;
  configDirectory: string;
}>;

/**
 * The plug-in; the token is read from the server's environment at run time. The guard: OpenCode 1.18.33 imports the
 * plug-ins that the workspace's `.opencode` and `opencode.json` name at the first turn, whatever
 * OPENCODE_DISABLE_PROJECT_CONFIG says (measured). Nothing but our own configuration folder may be imported from disk.
 */
export const pluginSource = (settings: PluginSettings): string => `// Written by the daemon.
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
const SPECS = ${JSON.stringify(settings.tools)};
const BY_NAME = new Map(SPECS.map((spec) => [spec.name, spec]));
const UNASKABLE = new Set(${JSON.stringify(UNASKABLE_TOOLS)});
const callTool = async (name, args, context) => {
  const subject = typeof args?.path === 'string' ? args.path : '*';
  if (!UNASKABLE.has(name)) await context.ask({ permission: name, patterns: [subject], always: ['*'], metadata: {} });
  const answer = await fetch(${JSON.stringify(`${settings.toolsUrl}/`)} + name, {
    method: 'POST',
    headers: { authorization: 'Bearer ' + TOKEN, 'content-type': 'application/json' },
    body: JSON.stringify({
      arguments: args,
      threadId: context.sessionID,
      callId: context.callID ?? context.messageID,
      agent: context.agent ?? null,
    }),
    signal: context.abort,
  });
  const outcome = await answer.json();
  if (outcome.kind !== 'completed') throw new Error(outcome.message);
  const { title, output, metadata } = outcome;
  return { title, output, metadata, attachments: outcome.attachments.map((file) => ({ type: 'file', ...file })) };
};
const OWN = {};
const loadOwn = async (file) => {
  const name = file.split('/').pop().replace(/\\.[^.]+$/, '');
  const late = new Promise((_, reject) => setTimeout(() => reject(new Error('it takes too long to load')), 10000).unref());
  try {
    for (const [key, tool] of Object.entries(await Promise.race([import(file), late]))) {
      if (typeof tool?.execute !== 'function' || typeof tool.description !== 'string') continue;
      OWN[key === 'default' ? name : name + '_' + key] = tool;
    }
  } catch (error) {
    console.error('beeuni: a tool is left out: ' + file + ': ' + (error?.message ?? error));
  }
};
for (const file of ${JSON.stringify(settings.ownTools)}) await loadOwn(file);
for (const name of Object.keys(OWN)) BY_NAME.delete(name);
const AGENTS = new Map();
const PARENTS = new Map();
const parentOf = async (client, id) => {
  if (!PARENTS.has(id)) {
    const { data } = await client.session.get({ path: { id } });
    if (data === undefined) throw new Error('the conversation of this call is not known');
    PARENTS.set(id, data.parentID ?? null);
  }
  return PARENTS.get(id);
};
const judge = async (client, { tool, sessionID, callID }, args) => {
  const parent = await parentOf(client, sessionID);
  if (parent === null) return;
  const answer = await fetch(${JSON.stringify(settings.judgeUrl)}, {
    method: 'POST',
    headers: { authorization: 'Bearer ' + TOKEN, 'content-type': 'application/json' },
    body: JSON.stringify({
      tool,
      arguments: args ?? {},
      threadId: sessionID,
      callId: callID,
      agent: AGENTS.get(sessionID) ?? null,
      parentAgent: AGENTS.get(parent) ?? null,
    }),
  });
  const verdict = await answer.json();
  if (verdict.allowed !== true) throw new Error(verdict.reason ?? 'the call of this subagent could not be judged');
};
const files = process.getBuiltinModule('fs');
const paths = process.getBuiltinModule('path');
const leadsTo = (path) => {
  const rest = [];
  for (let at = path; ; at = paths.dirname(at)) {
    try {
      return paths.join(files.realpathSync(at), ...rest);
    } catch {
      if (paths.dirname(at) === at) return path;
      rest.unshift(paths.basename(at));
    }
  }
};
const FILE_TOOLS = new Set(${JSON.stringify(FILE_TOOLS)});
const nameRealFile = (directory, tool, args) => {
  if (!FILE_TOOLS.has(tool) || typeof args?.filePath !== 'string') return;
  const path = paths.resolve(directory, args.filePath);
  const real = leadsTo(path);
  const stat = files.statSync(real, { throwIfNoEntry: false });
  if (stat !== undefined && !stat.isFile() && !stat.isDirectory()) throw new Error(args.filePath + ' is no regular file');
  const root = leadsTo(directory);
  const isInside = real === root || real.startsWith(root + '/');
  const named = isInside ? paths.join(directory, paths.relative(root, real)) : real;
  if (named !== path) args.filePath = named;
};
export const Beeuni = async ({ client, directory }) => ({
  tool: {
    ...Object.fromEntries(
      SPECS.map(({ name, description, parameters }) => [
        name,
        { description, args: parameters.properties ?? {}, execute: (args, context) => callTool(name, args, context) },
      ]),
    ),
    ...OWN,
  },
  'tool.definition': async ({ toolID }, output) => {
    const spec = BY_NAME.get(toolID);
    if (spec !== undefined) output.jsonSchema = spec.parameters;
  },
  'shell.env': async (_input, output) => {
    Object.assign(output.env, await environment().catch(() => last));
    for (const name of ${JSON.stringify([...HIDDEN, settings.tokenVariable])}) output.env[name] = '';
    output.env[${JSON.stringify(PLUGIN_PROOF)}] = '1';
  },
  'chat.headers': async (input, output) => {
    const agent = typeof input.agent === 'string' ? input.agent : input.agent?.name;
    if (typeof agent === 'string') {
      output.headers['x-beeuni-agent'] = agent;
      AGENTS.set(input.sessionID, agent);
    }
  },
  'tool.execute.before': async (input, output) => {
    nameRealFile(directory, input.tool, output.args);
    await judge(client, input, output.args);
  },
});
`;
