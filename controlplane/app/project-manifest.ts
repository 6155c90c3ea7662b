// The manifest of a commit: read from git's objects, judged by the one validator, compiled for sessions. Pure but for its ports.
// Must not know how objects are read or results are kept. Source: 20-control-plane §6, A84 to A103.
import type { ManifestProblem, ParseYaml } from '#schema/manifest/source.ts';
import type { AgentSummary, ManifestSummary, PackageEntry } from '#schema/manifest/summary.ts';
import { MAX_CONFIG_FILE_BYTES, unreadProblem } from '#schema/manifest/unread-file.ts';
import { filesNamedBy, type ManifestVerdict, validateManifest } from '#schema/manifest/validate.ts';
import type { ClaimedPackage, CompiledAgent } from '#schema/wire/claim.ts';
import type { FileProblem, ProjectFact } from '#schema/wire/sync.ts';
import type { ObjectFile } from '../git/objects.ts';
import type { ProjectConfig } from './project-ports.ts';

type SyncedManifest = ProjectFact['manifest'];

const MAX_PROBLEMS = 20;

/** Reads files of one commit. */
export type ReadCommitFiles = (paths: readonly string[], maxBytes: number) => Promise<ReadonlyMap<string, ObjectFile>>;

/** What was made of a manifest. `config` is there exactly when it is valid. */
export type JudgedManifest = Readonly<{ verdict: ManifestVerdict; config: ProjectConfig | undefined }>;

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
  const readFile = (file: string): string | undefined => {
    const content = files.get(file);
    return content?.kind === 'text' ? content.text : undefined;
  };
  const problemOf = (file: string): ManifestProblem | undefined =>
    unreadProblem(file, files.get(file) ?? { kind: 'missing' });
  const verdict = validateManifest({ path, text, readFile, unread: problemOf, parseYaml });
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
  const verdict = validateManifest({
    path,
    text: undefined,
    readFile: () => undefined,
    unread: () => unreadProblem(path, file),
    parseYaml,
  });
  return { verdict, config: undefined };
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
