// The one validator of a repository's manifest and agent files: for the control plane, the command line and merges.
// Pure: texts in, verdict out. It must not know commits, providers or Kubernetes. Source: A84 to A105.
import { SERVED_RUNTIMES } from '../resources/sandbox-fields.ts';
import { didYouMean } from '../rules/nearest-names.ts';
import { type AgentFileResult, checkAgentFile } from './check-agent-file.ts';
import { checkTemplateName, checkTemplates } from './check-sandbox.ts';
import { checkGrant, checkToolGrant, checkTools, type LoadedTools } from './check-tools.ts';
import { checkShape, kindOf } from './issues.ts';
import {
  type AgentEntry,
  BEHAVIOUR_KEYS,
  MANIFEST_VERSION,
  MAX_ENTRIES,
  type Manifest,
  ManifestSchema,
} from './manifest.ts';
import { makeReport, problemAt, type Report } from './report.ts';
import type { ManifestErrorCode, ManifestProblem, ParseYaml } from './source.ts';
import type { AgentSummary, ManifestSummary, PackageEntry, TemplateSummary } from './summary.ts';

/**
 * What is validated. `readFile` gives the text of a file of the same commit, undefined when there is none. `unread`: the problem of
 * a file that is there and was not read, the manifest among them.
 */
export type ManifestInput = Readonly<{
  path: string;
  text: string | undefined;
  readFile: (path: string) => string | undefined;
  unread?: (path: string) => ManifestProblem | undefined;
  parseYaml: ParseYaml;
}>;

/** The verdict. `manifest` is there exactly when `reason` is Valid; `hashInput` is what a hash of the configuration is made of. */
export type ManifestVerdict = Readonly<{
  reason: 'Valid' | ManifestErrorCode;
  version: number | undefined;
  manifest: ManifestSummary | undefined;
  hashInput: string;
  errors: readonly ManifestProblem[];
  warnings: readonly ManifestProblem[];
}>;

type Raw = Record<string, unknown>;
const isMap = (value: unknown): value is Raw => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Where an agent file is looked for when the manifest names none, in this order. Source: A91. */
export function defaultAgentFiles(agent: string): readonly string[] {
  return [`agents/${agent}.md`, `.beeuni/opencode/agents/${agent}.md`];
}

/** Files that the validation of this manifest may read, so that a caller can fetch them first. Empty for a text that is no map. */
export function filesNamedBy(text: string, parseYaml: ParseYaml): readonly string[] {
  const { value } = parseYaml(text);
  const agents = isMap(value) && isMap(value['agents']) ? Object.entries(value['agents']) : [];
  const files = agents.slice(0, MAX_ENTRIES).flatMap(([name, entry]) => {
    const file = isMap(entry) ? entry['file'] : undefined;
    return typeof file === 'string' ? [withoutDot(file)] : defaultAgentFiles(name);
  });
  return [...new Set(files)];
}

const withoutDot = (path: string) => path.replace(/^\.\//, '');

/** The verdict on a manifest with its agent files. Never throws for a text. */
export function validateManifest({ path, text, readFile, unread, parseYaml }: ManifestInput): ManifestVerdict {
  const verdict = (problem: ManifestProblem, version?: number): ManifestVerdict => ({
    reason: problem.code,
    version,
    manifest: undefined,
    hashInput: JSON.stringify([path, text]),
    errors: [problem],
    warnings: [],
  });
  if (text === undefined) {
    return verdict(unread?.(path) ?? problemAt(path, 'Missing', `the repository has no file ${path}`));
  }
  if (path.endsWith('.toml')) return verdict(problemAt(path, 'SchemaError', 'a manifest is YAML; name a .yaml file'));
  const document = parseYaml(text);
  const [syntax] = document.problems;
  if (syntax !== undefined) {
    const errors = document.problems.map((problem) => problemAt(path, problem.code, problem.message, problem));
    return { ...verdict(problemAt(path, syntax.code, syntax.message, syntax)), errors };
  }
  const report = makeReport(path, document.placeOf);
  if (!isMap(document.value)) {
    return verdict(problemAt(path, 'SchemaError', `the manifest must be a map, not ${kindOf(document.value)}`));
  }
  const version = document.value['beeuni_version'];
  if (typeof version === 'number' && version > MANIFEST_VERSION) {
    const message = `beeuni_version: ${version} is above ${MANIFEST_VERSION}, the newest version that this installation reads`;
    return verdict(problemAt(path, 'VersionTooNew', message, document.placeOf(['beeuni_version'])), version);
  }
  const raw = structuredClone(document.value);
  refuseMisplacedKeys(raw, report);
  const shape = checkShape(ManifestSchema, raw);
  report.issues(shape.issues);
  const files: AgentFile[] = [];
  const manifest =
    shape.value === undefined ? undefined : summarise(shape.value, { report, readFile, unread, parseYaml, files });
  const errors = [...report.errors, ...files.flatMap(({ result }) => result.errors)].sort(byPlace(path));
  const warnings = [...report.warnings, ...files.flatMap(({ result }) => result.warnings)].sort(byPlace(path));
  return {
    reason: errors[0]?.code ?? 'Valid',
    version: typeof version === 'number' ? version : undefined,
    manifest: errors.length === 0 ? manifest : undefined,
    hashInput: JSON.stringify([path, text, ...files.map(({ file, text: content }) => [file, content])]),
    errors,
    warnings,
  };
}

/** Manifest first, then agent files by path; by line within a file. */
function byPlace(manifestPath: string) {
  const rank = (problem: ManifestProblem) => (problem.path === manifestPath ? '' : problem.path);
  return (a: ManifestProblem, b: ManifestProblem) =>
    (rank(a) < rank(b) ? -1 : rank(a) > rank(b) ? 1 : 0) || a.line - b.line || a.column - b.column;
}

const MISPLACED_TOP: Readonly<Record<string, string>> = {
  imports: 'a manifest is one file here; move the imported entries into it',
  subprojects: 'a subproject is a file of its own beside the root manifest; apply a Project with manifestPath for it',
};

/** Errors for keys that belong elsewhere, each with where; they are taken out, so that they are reported once. */
function refuseMisplacedKeys(raw: Raw, report: Report): void {
  for (const key of Object.keys(raw)) {
    const misplaced = Object.hasOwn(MISPLACED_TOP, key) ? MISPLACED_TOP[key] : undefined;
    if (misplaced !== undefined) report.error([key], misplaced, 'key');
    else if (!Object.hasOwn(ManifestSchema.shape, key)) {
      report.warn([key], `unknown key is ignored${didYouMean(key, Object.keys(ManifestSchema.shape))}`, 'key');
    }
  }
  const agents = isMap(raw['agents']) ? raw['agents'] : {};
  for (const [name, entry] of Object.entries(agents)) {
    if (!isMap(entry)) continue;
    const file = typeof entry['file'] === 'string' ? entry['file'] : defaultAgentFiles(name)[0];
    for (const key of BEHAVIOUR_KEYS) {
      if (!Object.hasOwn(entry, key)) continue;
      report.error(['agents', name, key], `belongs into the frontmatter of ${file}`, 'key');
      delete entry[key];
    }
    if ('env' in entry) {
      report.error(['agents', name, 'env'], 'is not a key of an agent; grant secrets with secrets', 'key');
      delete entry['env'];
    }
  }
  const sandbox = isMap(raw['sandbox']) ? raw['sandbox'] : {};
  const templates = Array.isArray(sandbox['templates']) ? sandbox['templates'] : [];
  for (const [index, template] of templates.entries()) {
    if (!isMap(template) || !('dockerfile' in template)) continue;
    const path = ['sandbox', 'templates', index, 'dockerfile'];
    report.error(
      path,
      'images are not built from a Dockerfile in the cluster; build one and name it with image',
      'key',
    );
    delete template['dockerfile'];
    // The template stays, so that agents which name it are not reported too.
    template['image'] ??= 'replaced:dockerfile';
  }
}

type AgentFile = Readonly<{ file: string; text: string; result: AgentFileResult }>;
type Context = Readonly<{
  report: Report;
  readFile: ManifestInput['readFile'];
  unread: ManifestInput['unread'];
  parseYaml: ParseYaml;
  /** Agent files that were read are added here. */
  files: AgentFile[];
}>;

function summarise(manifest: Manifest, context: Context): ManifestSummary {
  const { report } = context;
  const templates = checkTemplates(manifest, report);
  const loaded = checkTools(manifest, report);
  const defaultTemplate = checkTemplateName(manifest.sandbox?.default, templates, ['sandbox', 'default'], report);
  const projectPackages = (manifest.harnesses?.pi?.packages ?? []).map(packageEntry);
  const entries = Object.entries(manifest.agents);
  if (entries.length === 0) report.error(['agents'], 'needs at least one agent');
  if (entries.length > MAX_ENTRIES) report.error(['agents'], `must be at most ${MAX_ENTRIES} agents`);
  const agents = entries.slice(0, MAX_ENTRIES).map(([name, entry]) =>
    summariseAgent(name, entry ?? {}, {
      ...context,
      templates,
      loaded,
      defaultTemplate,
      projectPackages,
    }),
  );
  checkDefaultAgent(manifest.default_agent, agents, report);
  checkRuntime(manifest.runtime, report);
  return {
    version: manifest.beeuni_version,
    runtime: manifest.runtime,
    defaultAgent: manifest.default_agent,
    agents,
    templates,
    defaultTemplate,
    ...loaded,
    env: { required: manifest.env?.required ?? [], optional: manifest.env?.optional ?? [] },
    connectors: (manifest.connectors ?? []).map(({ slug }) => slug),
    configDirs: { opencode: manifest.opencode?.config_dir, pi: manifest.pi?.config_dir },
    models: agents.flatMap(({ model, file, enabled }) =>
      model === undefined || !enabled ? [] : [{ name: model, usedBy: file }],
    ),
    ignoredKeys: {
      opencode: [],
      pi: agents.flatMap(({ options, file }) => (options === undefined ? [] : [`${file}: options`])),
      beaver: [],
    },
  };
}

type AgentContext = Context &
  Readonly<{
    templates: readonly TemplateSummary[];
    loaded: LoadedTools;
    defaultTemplate: string | undefined;
    projectPackages: readonly PackageEntry[];
  }>;

function summariseAgent(name: string, entry: AgentEntry, context: AgentContext): AgentSummary {
  const { report, templates, loaded, projectPackages } = context;
  const at = (key: string) => ['agents', name, key];
  const { file, result } = readAgentFile(name, entry, context);
  const { frontmatter } = result;
  const connectors = checkGrant(entry.connectors, at('connectors'), report);
  const connectorsRequired = entry.connectors_required ?? [];
  for (const [index, connector] of connectorsRequired.entries()) {
    if (connectors === 'all' || (connectors !== 'none' && connectors.includes(connector))) continue;
    report.error([...at('connectors_required'), index], `"${connector}" is not granted by connectors`);
  }
  const excluded = entry.harnesses?.pi?.exclude ?? [];
  const ownPackages = (entry.harnesses?.pi?.packages ?? []).map(packageEntry);
  const ownNames = ownPackages.map(({ source }) => packageName(source));
  const inherited = projectPackages.filter(({ source }) => {
    const named = packageName(source);
    return !excluded.includes(named) && !ownNames.includes(named);
  });
  return {
    name,
    enabled: (entry.enabled ?? true) && frontmatter.disable !== true,
    file,
    prompt: result.prompt,
    description: frontmatter.description,
    mode: frontmatter.mode ?? 'all',
    model: frontmatter.model,
    variant: frontmatter.variant,
    temperature: frontmatter.temperature,
    topP: frontmatter.top_p,
    steps: frontmatter.steps,
    options: frontmatter.options,
    color: frontmatter.color,
    hidden: frontmatter.hidden ?? false,
    permission: frontmatter.permission,
    tools: checkToolGrant(entry.tools, loaded, at('tools'), report),
    skills: checkGrant(entry.skills, at('skills'), report),
    secrets: checkGrant(entry.secrets, at('secrets'), report),
    connectors,
    connectorsRequired,
    beeuniPermissions: checkGrant(entry.beeuni_permissions, at('beeuni_permissions'), report),
    repositoryAccess: entry.repository_access ?? true,
    template:
      entry.sandbox === undefined
        ? context.defaultTemplate
        : checkTemplateName(entry.sandbox, templates, at('sandbox'), report),
    piPackages: [...inherited, ...ownPackages],
  };
}

const NO_FILE: AgentFileResult = { frontmatter: {}, prompt: '', errors: [], warnings: [] };

function readAgentFile(name: string, entry: AgentEntry, { report, readFile, unread, parseYaml, files }: AgentContext) {
  const candidates = entry.file === undefined ? defaultAgentFiles(name) : [withoutDot(entry.file)];
  for (const file of candidates) {
    const text = readFile(file);
    const problem = text === undefined ? unread?.(file) : undefined;
    if (problem !== undefined) {
      const result = { ...NO_FILE, errors: [problem] };
      files.push({ file, text: '', result });
      return { file, result };
    }
    if (text === undefined) continue;
    const result = checkAgentFile(file, text, parseYaml);
    files.push({ file, text, result });
    return { file, result };
  }
  const file = candidates[0] ?? '';
  if (entry.file !== undefined) report.error(['agents', name, 'file'], `the repository has no file ${file}`);
  else if (entry.enabled !== false) {
    report.error(['agents', name], `the repository has no file ${file}; write it, or name another with file`, 'key');
  }
  return { file, result: NO_FILE };
}

function checkDefaultAgent(name: string, agents: readonly AgentSummary[], report: Report): void {
  const agent = agents.find((candidate) => candidate.name === name);
  const path = ['default_agent'];
  if (agent === undefined) {
    const names = agents.map((candidate) => candidate.name);
    report.error(path, `no agent is named "${name}"${didYouMean(name, names)}`);
  } else if (!agent.enabled) report.error(path, `the agent "${name}" is disabled`);
  else if (agent.mode === 'subagent') report.error(path, `the agent "${name}" is a subagent and runs no session`);
}

function checkRuntime(runtime: Manifest['runtime'], report: Report): void {
  if (runtime === undefined || SERVED_RUNTIMES.includes(runtime)) return;
  report.warn(['runtime'], `this version does not run ${runtime} yet: sessions fail at their start`);
}

function packageEntry(entry: string | PackageEntry): PackageEntry {
  return typeof entry === 'string' ? { source: entry } : entry;
}

/** `npm:@scope/name@1.2.3` → `@scope/name`; a path stays as it is. */
function packageName(source: string): string {
  return source.startsWith('npm:') ? source.slice(4).replace(/@[^@/]*$/, '') : source;
}
