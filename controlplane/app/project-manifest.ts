// The manifest of a commit: read from git's objects, judged by the one validator, compiled for sessions. Pure but for its ports.
// Must not know how objects are read or results are kept. Source: 20-control-plane §6, A84 to A103.
import type { ManifestErrorCode, ManifestProblem, ParseYaml } from '#schema/manifest/source.ts';
import type { AgentSummary, ManifestSummary, PackageEntry } from '#schema/manifest/summary.ts';
import { filesNamedBy, type ManifestVerdict, validateManifest } from '#schema/manifest/validate.ts';
import type { ClaimedPackage, CompiledAgent } from '#schema/wire/claim.ts';
import type { FileProblem, ProjectFact } from '#schema/wire/sync.ts';
import type { ObjectFile } from '../git/objects.ts';
import type { ProjectConfig } from './project-ports.ts';

type SyncedManifest = ProjectFact['manifest'];

/** Largest file that is read from a repository. Units: bytes. Source: 20-control-plane §6. */
export const MAX_CONFIG_FILE_BYTES = 1_048_576;
const MAX_PROBLEMS = 20;

/** Reads files of one commit. */
export type ReadCommitFiles = (paths: readonly string[], maxBytes: number) => Promise<ReadonlyMap<string, ObjectFile>>;

/** What was made of a manifest. `config` is there exactly when it is valid. */
export type JudgedManifest = Readonly<{ verdict: ManifestVerdict; config: ProjectConfig | undefined }>;

/** Why a file was not read as text; undefined for one that is simply not there. */
const whyUnread = (file: ObjectFile): Readonly<{ code: ManifestErrorCode; message: string }> | undefined => {
  switch (file.kind) {
    case 'symlink':
      return { code: 'Missing', message: 'is a symbolic link, which is not followed; commit the file itself' };
    case 'not-a-file':
      return { code: 'Missing', message: 'is no file' };
    case 'too-large':
      return { code: 'TooLarge', message: `has ${file.size} bytes; at most ${MAX_CONFIG_FILE_BYTES} are read` };
    case 'not-utf8':
      return { code: 'SyntaxError', message: 'is not UTF-8' };
    case 'missing':
    case 'text':
      return undefined;
  }
};

const problem = (path: string, code: ManifestErrorCode, message: string): ManifestProblem => ({
  path,
  line: 1,
  column: 1,
  code,
  message: `${path} ${message}`,
});

const compiledAgent = (agent: AgentSummary): CompiledAgent => ({
  name: agent.name,
  ...(agent.description === undefined ? {} : { description: agent.description }),
  mode: agent.mode,
  ...(agent.model === undefined ? {} : { model: agent.model }),
  ...(agent.variant === undefined ? {} : { variant: agent.variant }),
  ...(agent.temperature === undefined ? {} : { temperature: agent.temperature }),
  ...(agent.topP === undefined ? {} : { topP: agent.topP }),
  ...(agent.steps === undefined ? {} : { steps: agent.steps }),
  ...(agent.options === undefined ? {} : { options: agent.options as NonNullable<CompiledAgent['options']> }),
  prompt: agent.prompt,
  ...(agent.permission === undefined
    ? {}
    : { permission: agent.permission as NonNullable<CompiledAgent['permission']> }),
  tools: typeof agent.tools === 'string' ? agent.tools : [...agent.tools],
  skills: typeof agent.skills === 'string' ? agent.skills : [...agent.skills],
  hidden: agent.hidden,
});

const claimedPackage = ({ source, extensions, skills, prompts }: PackageEntry): ClaimedPackage => ({
  source,
  ...(extensions === undefined ? {} : { extensions: [...extensions] }),
  ...(skills === undefined ? {} : { skills: [...skills] }),
  ...(prompts === undefined ? {} : { prompts: [...prompts] }),
});

/** What sessions are started by, from a valid manifest. Disabled agents are left out. */
export const compileConfig = (manifest: ManifestSummary, commit: string): ProjectConfig => {
  const enabled = manifest.agents.filter((agent) => agent.enabled);
  return {
    commit,
    defaultAgent: manifest.defaultAgent,
    agents: enabled.map(compiledAgent),
    secrets: Object.fromEntries(enabled.map((agent) => [agent.name, agent.secrets])),
    models: manifest.models,
    beeuniTools: manifest.beeuniTools,
    projectTools: manifest.projectTools,
    configDirs: { opencode: manifest.configDirs.opencode ?? null, pi: manifest.configDirs.pi ?? null },
    piPackages: Object.fromEntries(enabled.map((agent) => [agent.name, agent.piPackages.map(claimedPackage)])),
  };
};

/** Judges a manifest text with the agent files of a commit. Errors: those of `readFiles`. */
export const judgeManifestText = async (
  path: string,
  text: string,
  commit: string,
  readFiles: ReadCommitFiles,
  parseYaml: ParseYaml,
): Promise<JudgedManifest> => {
  const files = await readFiles(filesNamedBy(text, parseYaml), MAX_CONFIG_FILE_BYTES);
  const unread: ManifestProblem[] = [];
  for (const [file, content] of files) {
    const why = whyUnread(content);
    if (why !== undefined) unread.push(problem(file, why.code, why.message));
  }
  const readFile = (file: string): string | undefined => {
    const content = files.get(file);
    return content?.kind === 'text' ? content.text : undefined;
  };
  const judged = validateManifest({ path, text, readFile, parseYaml });
  // Why a named file could not be read says more than that it is not there, so it comes first.
  const verdict: ManifestVerdict =
    unread.length === 0 || judged.errors.length === 0
      ? judged
      : { ...judged, reason: unread[0]?.code ?? judged.reason, errors: [...unread, ...judged.errors] };
  const { manifest } = verdict;
  return { verdict, config: manifest === undefined ? undefined : compileConfig(manifest, commit) };
};

/** Judges the manifest of a commit. Errors: those of `readFiles`. */
export const judgeManifest = async (
  path: string,
  commit: string,
  readFiles: ReadCommitFiles,
  parseYaml: ParseYaml,
): Promise<JudgedManifest> => {
  const file = (await readFiles([path], MAX_CONFIG_FILE_BYTES)).get(path) ?? { kind: 'missing' };
  if (file.kind === 'text') return judgeManifestText(path, file.text, commit, readFiles, parseYaml);
  const why = whyUnread(file) ?? { code: 'Missing' as const, message: 'is not in the repository' };
  const errors = [problem(path, why.code, why.message)];
  return {
    verdict: { reason: why.code, version: undefined, manifest: undefined, hashInput: '', errors, warnings: [] },
    config: undefined,
  };
};

const wireProblem = ({ path, line, column, code, message }: ManifestProblem): FileProblem => ({
  path,
  line,
  column,
  code,
  message: message.slice(0, 512),
});

const grantOf = (grant: AgentSummary['secrets']): 'all' | 'none' | string[] =>
  typeof grant === 'string' ? grant : [...grant];

const lastValidOf = (manifest: ManifestSummary, commit: string): NonNullable<SyncedManifest['lastValid']> => ({
  commit,
  runtime: manifest.runtime ?? null,
  defaultAgent: manifest.defaultAgent,
  agents: manifest.agents
    .filter((agent) => agent.enabled)
    .map((agent) => ({
      name: agent.name,
      mode: agent.mode,
      model: agent.model ?? null,
      template: agent.template ?? null,
      secrets: grantOf(agent.secrets),
    })),
  templates: manifest.templates.map(({ slug, image, cpu, memory, disk }) => ({
    slug,
    image,
    cpu: cpu ?? null,
    memory: memory ?? null,
    disk: disk ?? null,
  })),
  defaultTemplate: manifest.defaultTemplate ?? null,
  ignoredKeys: Object.fromEntries(Object.entries(manifest.ignoredKeys).map(([harness, keys]) => [harness, [...keys]])),
});

/** The judged manifest as the operator hears it; a broken one keeps what the last valid one said. */
export const syncedManifestOf = (
  path: string,
  commit: string,
  { verdict }: JudgedManifest,
  before: SyncedManifest | undefined,
  sha256: (text: string) => string,
): SyncedManifest => ({
  path,
  reason: verdict.reason,
  version: verdict.version ?? null,
  hash: verdict.hashInput === '' ? null : sha256(verdict.hashInput),
  errors: verdict.errors.slice(0, MAX_PROBLEMS).map(wireProblem),
  warnings: verdict.warnings.slice(0, MAX_PROBLEMS).map(wireProblem),
  lastValid: verdict.manifest === undefined ? (before?.lastValid ?? null) : lastValidOf(verdict.manifest, commit),
});

/** The manifest of a project whose repository was never read. */
export const unreadManifest = (path: string): SyncedManifest => ({
  path,
  reason: 'NotRead',
  version: null,
  hash: null,
  errors: [],
  warnings: [],
  lastValid: null,
});
