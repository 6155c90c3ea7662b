// The manifest `beeuni.yaml`, version 2, as people write it. Shape only; what no shape can say is in `validate.ts`.
// It must not know files, commits or registries. Source: A84 to A98.
import { z } from 'zod';
import { ENV_NAME_PATTERN, SLUG_PATTERN } from '../primitives.ts';
import { MANIFEST_RUNTIMES } from '../resources/sandbox-fields.ts';

/** The newest manifest version that this product reads. */
export const MANIFEST_VERSION = 2;
/** Most agents, templates and tools of a manifest. */
export const MAX_ENTRIES = 64;
/** The tools that Beeuni brings. Source: A44. */
export const BEEUNI_TOOLS = ['web_search', 'image_search', 'scrape_webpage', 'memory', 'show'] as const;
export type BeeuniTool = (typeof BEEUNI_TOOLS)[number];
/** Names that belong to the tools of harnesses; a project tool cannot take one. Source: A94, A116. */
export const HARNESS_TOOLS = [
  'apply_patch',
  'bash',
  'edit',
  'find',
  'glob',
  'grep',
  'list',
  'ls',
  'lsp',
  'multiedit',
  'patch',
  'question',
  'read',
  'skill',
  'task',
  'todoread',
  'todowrite',
  'webfetch',
  'websearch',
  'write',
] as const;

const slug = z
  .string()
  .regex(
    SLUG_PATTERN,
    'must be 1 to 128 lower-case letters, digits, dashes and underscores, with a letter or digit first',
  );
const envName = z
  .string()
  .regex(ENV_NAME_PATTERN, 'must be 1 to 64 upper-case letters, digits and underscores, with no digit first');

/** A path inside the repository: relative, without empty, `.` or `..` segments after an optional `./`. */
export const RepositoryPath = z
  .string()
  .max(255)
  .regex(
    /^(\.\/)?(?!\.{0,2}(\/|$))[^/\\]+(\/(?!\.{0,2}(\/|$))[^/\\]+)*\/?$/,
    'must be a relative path inside the repository',
  );

/** `all`, `none` or a list of names; another text counts as `none` and is warned about. Source: A92. */
export const Grant = z
  .union([z.string(), z.array(z.string().min(1).max(128)).max(256)], 'must be all, none or a list of names')
  .describe('all, none or a list of names. Default: none.');

/** A package pin, `npm:<name>@<x.y.z>`, or a path that starts with `./`. Source: A74. */
export const PackageSource = z
  .string()
  .max(255)
  .regex(
    /^(npm:(@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*@\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?|\.\/(?!.*\.\.)[^\\]+)$/,
    'must be npm:<name>@<x.y.z>, or a path that starts with ./',
  );

const globs = z.array(z.string().min(1).max(255)).max(64).optional();
const Package = z.union(
  [
    PackageSource,
    z.strictObject({ source: PackageSource, extensions: globs, skills: globs, prompts: globs, themes: globs }),
  ],
  'must be npm:<name>@<x.y.z>, a path that starts with ./, or an object with source and the lists extensions, skills, prompts, themes',
);
const packages = z.array(Package).max(20).describe('Packages of the harness pi, exact pins or paths. At most 20.');

/** One sandbox template. Bounds above which a value is clamped with a warning are checked in `validate.ts`. Source: A89. */
export const TemplateSchema = z.strictObject({
  slug: slug.describe('Name of the template; `default` is reserved.'),
  name: z.string().max(128).optional().describe('Name for people.'),
  image: z.string().max(512).optional().describe('Image with a tag or a digest.'),
  cpu: z.number().optional().describe('CPU cores, 1 to 32.'),
  memory: z
    .union([z.number(), z.string().max(32)])
    .optional()
    .describe('Memory in GiB, 1 to 128, for example 4 or 4Gi.'),
  disk: z
    .union([z.number(), z.string().max(32)])
    .optional()
    .describe('Workspace in GiB, 1 to 500, for example 20 or 20Gi.'),
  entrypoint: z.unknown().optional().describe('Ignored: the daemon is the entrypoint of every sandbox.'),
  container_runtime: z.unknown().optional().describe('Ignored: the Project sets runtimeClassName.'),
  gpu: z.unknown().optional().describe('Ignored.'),
});

/** What an agent is granted. Behaviour is in the agent's own file. Source: A91. */
export const AgentEntrySchema = z.strictObject({
  file: RepositoryPath.regex(/\.md$/, 'must be a .md file')
    .optional()
    .describe('Agent file. Default: agents/<name>.md.'),
  enabled: z.boolean().optional().describe('Default true.'),
  sandbox: slug.optional().describe('Sandbox template. Default: sandbox.default.'),
  connectors: Grant.optional(),
  connectors_required: z.array(slug).max(64).optional().describe('Connectors without which the agent does not start.'),
  secrets: Grant.optional(),
  skills: Grant.optional(),
  tools: z
    .union(
      [
        z.string(),
        z.array(z.string().min(1).max(64)).max(256),
        z.strictObject({ exclude: z.array(z.string().min(1).max(64)).max(256) }),
      ],
      'must be all, none, a list of names, or exclude with a list of names',
    )
    .optional()
    .describe('Beeuni and project tools: all, none, a list of names, or exclude with a list. Default: none.'),
  beeuni_permissions: Grant.optional(),
  repository_access: z.boolean().optional().describe('Default true.'),
  harnesses: z
    .strictObject({
      pi: z
        .strictObject({
          packages: packages.optional(),
          exclude: z.array(z.string().min(1).max(255)).max(20).optional().describe('Packages of the project to drop.'),
        })
        .optional(),
    })
    .optional(),
});

/** The whole manifest. Top-level keys that it does not know are ignored. Source: A84, A86. */
export const ManifestSchema = z.looseObject({
  beeuni_version: z.literal(MANIFEST_VERSION).describe('Version of the manifest: 2.'),
  default_agent: slug.describe('Agent of a session that names none: a declared, enabled agent.'),
  agents: z.record(slug, AgentEntrySchema.nullable()).describe('Agents by name; at least one.'),
  runtime: z
    .enum(MANIFEST_RUNTIMES)
    .optional()
    .describe('Harness of the project unless a flag decides. Default: opencode.'),
  harnesses: z
    .strictObject({ pi: z.strictObject({ packages: packages.optional() }).optional() })
    .optional()
    .describe('What a harness loads for every agent.'),
  project: z
    .looseObject({ name: z.string().max(128).optional(), description: z.string().max(1024).optional() })
    .optional()
    .describe('For people; never read.'),
  env: z
    .strictObject({
      required: z
        .array(envName)
        .max(MAX_ENTRIES)
        .optional()
        .describe('Environment variables the project expects. Advisory.'),
      optional: z.array(envName).max(MAX_ENTRIES).optional().describe('Environment variables the project can use.'),
    })
    .optional(),
  sandbox: z
    .strictObject({
      default: slug.optional().describe('Template of agents that name none, or `default`.'),
      templates: z.array(TemplateSchema).max(MAX_ENTRIES).optional(),
    })
    .optional(),
  opencode: z
    .strictObject({ config_dir: RepositoryPath.optional() })
    .optional()
    .describe('Directory of the harness opencode.'),
  pi: z.strictObject({ config_dir: RepositoryPath.optional() }).optional().describe('Directory of the harness pi.'),
  tools: z
    .record(
      z.string().regex(/^[a-z][a-z0-9_]{0,63}$/, 'must be snake_case, at most 64 characters'),
      z.string().max(255),
    )
    .nullable()
    .optional()
    .describe('Tools by name: beeuni:<same name>, or the path of a module. Absent: the five Beeuni tools.'),
  triggers: z.array(z.looseObject({})).max(256).optional(),
  connectors: z.array(z.looseObject({ slug })).max(256).optional(),
  policy: z.looseObject({ default_mode: z.enum(['risk', 'allow_all']).optional() }).optional(),
  apps: z.record(z.string(), z.unknown()).optional(),
  volumes: z.record(z.string(), z.unknown()).optional(),
});
/** A manifest of the right shape. */
export type Manifest = z.output<typeof ManifestSchema>;
export type AgentEntry = z.output<typeof AgentEntrySchema>;

/** Keys that belong into the agent's own file. Source: A93. */
export const BEHAVIOUR_KEYS = [
  'description',
  'model',
  'mode',
  'variant',
  'temperature',
  'top_p',
  'options',
  'color',
  'steps',
  'hidden',
  'prompt',
  'permission',
  'disable',
  'opencode',
] as const;
