// The project's folder for OpenCode, as far as it may be used: commands and a few keys of its configuration, each checked,
// since OpenCode answers nothing at all with a wrong one; tools and plug-ins as they are. Agents, skills and permissions
// come from the manifest. The folder is a copy of the base commit. Source: A51, A69, A71, A134, docs/decisions/0034.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import type { Logger } from '#base/log.ts';
import { parseYaml } from '#base/yaml.ts';
import { splitAgentFile } from '#schema/manifest/agent-file.ts';
import type { ConfigFile } from './config-files.ts';
import { parseJsonc } from './parse-jsonc.ts';
import { OWN_TOOLS } from './plugin-source.ts';

/** What of the folder is used. */
export type ProjectDirectory = Readonly<{
  /** Keys for the configuration file. */
  settings: Readonly<Record<string, unknown>>;
  /** Commands, and what its code may import. */
  files: readonly ConfigFile[];
  /** Entries of the folder that are copied as they are, with code among them. */
  copied: readonly Readonly<{ from: string; to: string }>[];
  /** Files of tools below OWN_TOOLS; they win over Beeuni's of the same name. Source: A51. */
  ownTools: readonly string[];
}>;

/** What is known from elsewhere: names that commands may refer to. */
export type KnownNames = Readonly<{ agents: ReadonlySet<string>; modelOf: (name: string) => string | undefined }>;

const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
const FROM_MANIFEST = /^(agents?|modes?|skills?)$/;
const TOOL_FILE = /^[A-Za-z0-9_-]{1,64}\.(ts|js)$/;
const MAX_FILE_BYTES = 262_144;
const MAX_COMMANDS = 128;
/** Read from the manifest or checked one by one, so never copied. */
const NOT_COPIED =
  /^(agents?|modes?|commands?|skills?|opencode\.jsonc?|config\.json|package(-lock)?\.json|node_modules|bun\.lockb?|\..*)$/;

const text = z.string().max(16_384);
const texts = z.record(z.string().max(256), text);
const shared = { enabled: z.boolean().optional(), timeout: z.int().min(1).max(3_600_000).optional() };
const mcpServer = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('local'),
    command: z.array(text).min(1).max(64),
    environment: texts.optional(),
    ...shared,
  }),
  z.strictObject({
    type: z.literal('remote'),
    url: z.url({ protocol: /^https?$/ }),
    headers: texts.optional(),
    oauth: z.literal(false).optional(),
    ...shared,
  }),
]);
const command = z.strictObject({
  template: z.string().min(1).max(MAX_FILE_BYTES),
  description: z.string().max(1_024).optional(),
  agent: z.string().optional(),
  model: z.string().optional(),
  subtask: z.boolean().optional(),
});
type Command = z.output<typeof command>;

/** Keys that are taken as they are when they have this shape. */
const PLAIN_KEYS: Readonly<Record<string, z.ZodType>> = {
  compaction: z.strictObject({
    auto: z.boolean().optional(),
    prune: z.boolean().optional(),
    reserved: z.int().min(0).optional(),
  }),
  snapshot: z.boolean(),
  watcher: z.strictObject({ ignore: z.array(text).max(256).optional() }),
};

/** OpenCode puts variables and files in place of these words, wherever they stand. */
const expands = (value: unknown): boolean => /\{(env|file):/.test(JSON.stringify(value));

/** What an MCP server is told may name a granted value; the names that are ours or steer the harness are no such. */
const GRANTED = /\{env:(?!(?:BEEUNI_|OPENCODE_|XDG_|GIT_|LD_|NODE_|PATH\}|HOME\}|TMPDIR\}))[A-Z_][A-Z0-9_]*\}/g;
const withoutGranted = (value: unknown): unknown => {
  if (typeof value !== 'object' || value === null) return value;
  const told = (given: unknown): unknown =>
    JSON.parse((JSON.stringify(given) ?? 'null').replaceAll(GRANTED, '')) as unknown;
  const { environment, headers, ...rest } = value as Readonly<Record<string, unknown>>;
  return { ...rest, environment: told(environment), headers: told(headers) };
};

/** A command with references that exist; others are left out. */
const known = (own: Command, names: KnownNames): Command => {
  const { agent, model, ...rest } = own;
  const resolved = model === undefined ? undefined : names.modelOf(model);
  return {
    ...rest,
    ...(agent !== undefined && names.agents.has(agent) ? { agent } : {}),
    ...(resolved === undefined ? {} : { model: resolved }),
  };
};

type Report = (what: string, reason: string) => void;

const entriesOf = (value: unknown): readonly (readonly [string, unknown])[] =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : [];

/** The keys of a configuration text that may be used. Pure but for what it reports. */
export const safeSettings = (source: string, names: KnownNames, report: Report): Readonly<Record<string, unknown>> => {
  const value = parseJsonc(source);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    report('opencode.jsonc', 'it is no JSON object');
    return {};
  }
  const settings: Record<string, unknown> = {};
  const take = <T>(where: string, shape: z.ZodType<T>, given: unknown): T | undefined => {
    const parsed = shape.safeParse(given);
    if (!parsed.success) report(where, 'it does not have the shape that OpenCode takes');
    else if (expands(where.startsWith('mcp ') ? withoutGranted(given) : given))
      report(
        where,
        '{env:…} is used in headers and environments of MCP servers only, for granted values; {file:…} is not',
      );
    else return parsed.data;
    return undefined;
  };
  for (const [key, given] of Object.entries(value)) {
    if (key === '$schema') continue;
    const plain = Object.hasOwn(PLAIN_KEYS, key) ? PLAIN_KEYS[key] : undefined;
    if (plain !== undefined) {
      const taken = take(key, plain, given);
      if (taken !== undefined) settings[key] = taken;
    } else if (key === 'mcp' || key === 'command') {
      const taken = entriesOf(given).flatMap(([name, entry]): [string, unknown][] => {
        if (!NAME.test(name)) return [];
        if (key === 'mcp') {
          const server = take(`mcp ${name}`, mcpServer, entry);
          return server === undefined ? [] : [[name, server]];
        }
        const own = take(`command ${name}`, command, entry);
        return own === undefined ? [] : [[name, known(own, names)]];
      });
      settings[key] = Object.fromEntries(taken);
    } else report(key, 'this key is not used; agents, models and permissions come from the manifest');
  }
  return settings;
};

/** A command file with known keys only, or why it is none. Pure. */
export const commandFile = (
  name: string,
  source: string,
  names: KnownNames,
): ConfigFile | Readonly<{ problem: string }> => {
  if (!NAME.test(name)) return { problem: 'its name must be letters, digits, dashes and underscores' };
  const parts = splitAgentFile(source);
  if (parts === undefined) return { problem: 'its frontmatter is not closed' };
  const { value, problems } = parseYaml(parts.frontmatter);
  if (problems.length > 0) return { problem: 'its frontmatter cannot be read' };
  const given = Object.fromEntries(
    entriesOf(value).filter(([key]) => ['description', 'agent', 'model', 'subtask'].includes(key)),
  );
  const parsed = command.safeParse({ ...given, template: parts.prompt });
  if (!parsed.success) return { problem: 'it is empty, or a key of its frontmatter has a wrong type' };
  const { template, ...keys } = known(parsed.data, names);
  const firstLine = template.split('\n').find((line) => line.trim() !== '') ?? '';
  const head = { description: firstLine.trim().slice(0, 200), ...keys };
  const lines = Object.entries(head).map(([key, entry]) => `${key}: ${JSON.stringify(entry)}`);
  return { path: `commands/${name}.md`, content: `---\n${lines.join('\n')}\n---\n${template}\n` };
};

const EMPTY: ProjectDirectory = { settings: {}, files: [], copied: [], ownTools: [] };

/** What tools and plug-ins usually import; OpenCode would fetch it from the network. It names a lock, so that it does not try. */
const PACKAGE = '@opencode-ai/plugin';
const PACKAGE_FILES: readonly ConfigFile[] = [
  {
    path: `node_modules/${PACKAGE}/package.json`,
    content: `${JSON.stringify({ name: PACKAGE, version: '1.18.33', type: 'module', exports: { '.': './index.js', './tool': './index.js' } })}\n`,
  },
  {
    path: `node_modules/${PACKAGE}/index.js`,
    content: "import { z } from 'zod';\nexport const tool = (definition) => definition;\ntool.schema = z;\n",
  },
  { path: 'package.json', content: `${JSON.stringify({ dependencies: { [PACKAGE]: '1.18.33' } })}\n` },
  {
    path: 'package-lock.json',
    content: `${JSON.stringify({ lockfileVersion: 3, packages: { '': { dependencies: { [PACKAGE]: '1.18.33' } } } })}\n`,
  },
];

/** The library of schemas that such tools use, without what never runs. */
const schemaLibrary = (): ProjectDirectory['copied'] => {
  const folder = dirname(createRequire(import.meta.url).resolve('zod'));
  return ['package.json', 'index.js', 'v4'].map((name) => ({
    from: join(folder, name),
    to: `node_modules/zod/${name}`,
  }));
};

const namesIn = (folder: string): readonly string[] => {
  try {
    return readdirSync(folder).sort();
  } catch {
    return [];
  }
};

const readText = (path: string): string | undefined => {
  try {
    return statSync(path).size <= MAX_FILE_BYTES ? readFileSync(path, 'utf8') : undefined;
  } catch {
    return undefined;
  }
};

/** Reads the folder; null is one that brings nothing. Never throws. */
export const readProjectDirectory = (folder: string | null, names: KnownNames, log: Logger): ProjectDirectory => {
  if (folder === null) return EMPTY;
  const report: Report = (what, reason) => log.warn('a part of the harness folder is not used', { what, reason });
  const source = readText(join(folder, 'opencode.jsonc')) ?? readText(join(folder, 'opencode.json'));
  const commands = namesIn(join(folder, 'commands'))
    .filter((name) => name.endsWith('.md'))
    .slice(0, MAX_COMMANDS)
    .flatMap((name) => {
      const content = readText(join(folder, 'commands', name));
      const file =
        content === undefined ? { problem: 'it cannot be read' } : commandFile(name.slice(0, -3), content, names);
      if (!('problem' in file)) return [file];
      report(`commands/${name}`, file.problem);
      return [];
    });
  for (const name of namesIn(folder).filter((each) => FROM_MANIFEST.test(each))) {
    report(name, 'agents and skills come from the manifest and the folder skills/ of the repository');
  }
  const code = namesIn(folder)
    .filter((name) => !NOT_COPIED.test(name))
    .map((name) => ({ from: join(folder, name), to: name === 'tools' ? OWN_TOOLS : name }));
  return {
    settings: source === undefined ? {} : safeSettings(source, names, report),
    files: code.length === 0 ? commands : [...commands, ...PACKAGE_FILES],
    copied: code.length === 0 ? code : [...code, ...schemaLibrary()],
    ownTools: namesIn(join(folder, 'tools')).filter((name) => TOOL_FILE.test(name)),
  };
};
