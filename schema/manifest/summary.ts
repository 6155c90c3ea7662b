// What a valid manifest says, with its agent files, in the form that the rest of the product reads.
// It must not know how it was read.
import type { ManifestRuntime } from '../resources/sandbox-fields.ts';
import type { AgentMode, Permission } from './agent-file.ts';
import type { BeeuniTool } from './manifest.ts';

/** What is granted: everything, nothing, or the names in a list. */
export type GrantSet = 'all' | 'none' | readonly string[];

/** One agent: what its manifest entry grants and what its file says. */
export type AgentSummary = Readonly<{
  name: string;
  enabled: boolean;
  /** Path of the agent file in the repository. */
  file: string;
  prompt: string;
  description: string | undefined;
  mode: AgentMode;
  model: string | undefined;
  variant: string | undefined;
  temperature: number | undefined;
  topP: number | undefined;
  steps: number | undefined;
  options: Readonly<Record<string, unknown>> | undefined;
  color: string | undefined;
  hidden: boolean;
  permission: Permission | undefined;
  /** Beeuni and project tools; the harness's own tools are governed by `permission`. */
  tools: GrantSet;
  skills: GrantSet;
  secrets: GrantSet;
  connectors: GrantSet;
  connectorsRequired: readonly string[];
  beeuniPermissions: GrantSet;
  repositoryAccess: boolean;
  /** Slug of a template, or undefined for that of the platform. */
  template: string | undefined;
  /** Packages of the harness pi, those of the project included and its exclusions taken away. */
  piPackages: readonly PackageEntry[];
}>;

/** One package of the harness pi with the filters of what it loads. */
export type PackageEntry = Readonly<{
  source: string;
  extensions?: readonly string[] | undefined;
  skills?: readonly string[] | undefined;
  prompts?: readonly string[] | undefined;
  themes?: readonly string[] | undefined;
}>;

/** One sandbox template; amounts are Kubernetes quantities within the bounds of the manifest. */
export type TemplateSummary = Readonly<{
  slug: string;
  name: string | undefined;
  image: string;
  cpu: string | undefined;
  memory: string | undefined;
  disk: string | undefined;
}>;

/** A module of the repository that is a tool. */
export type ProjectTool = Readonly<{ name: string; path: string }>;

/** A model name with the place that names it. */
export type ModelUse = Readonly<{ name: string; usedBy: string }>;

/** Everything that a valid manifest says. */
export type ManifestSummary = Readonly<{
  version: number;
  runtime: ManifestRuntime | undefined;
  defaultAgent: string;
  agents: readonly AgentSummary[];
  templates: readonly TemplateSummary[];
  /** Slug of the template of agents that name none; undefined is that of the platform. */
  defaultTemplate: string | undefined;
  beeuniTools: readonly BeeuniTool[];
  projectTools: readonly ProjectTool[];
  env: Readonly<{ required: readonly string[]; optional: readonly string[] }>;
  connectors: readonly string[];
  configDirs: Readonly<{ opencode: string | undefined; pi: string | undefined }>;
  models: readonly ModelUse[];
  /** Keys that a harness ignores, by harness id; each as `file: key`. Source: A37. */
  ignoredKeys: Readonly<Record<ManifestRuntime, readonly string[]>>;
}>;
