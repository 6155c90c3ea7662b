// Runs the test tiers: `node tools/test.ts [--update-golden] [all | check | unit | repo | integration | harness | e2e | chart]…`.
// Every tier has a minimum number of files, because a glob that matches nothing would pass; a tier that cannot run on
// this machine is named with its reason, and BEEUNI_REQUIRE_TIERS=1 turns that into a failure.
import { spawnSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { missingPrerequisites } from '#test/cluster/prerequisites.ts';

type Tier = Readonly<{
  globs: readonly string[];
  minimumFiles: number;
  timeoutMs: number;
  concurrency: number;
  arguments: readonly string[];
  missing: () => readonly string[];
}>;

const nothing = (): readonly string[] => [];
const tiers: Readonly<Record<string, Tier>> = {
  unit: {
    globs: [
      '{schema,base,kube,operator,controlplane,cli,tools,plugin-sdk,test/cluster}/**/*.test.ts',
      'sandbox-image/daemon/**/*.test.ts',
    ],
    minimumFiles: 15,
    timeoutMs: 60_000,
    concurrency: 2,
    arguments: [],
    missing: nothing,
  },
  repo: {
    globs: ['test/repo/*.test.ts'],
    minimumFiles: 4,
    timeoutMs: 120_000,
    concurrency: 2,
    arguments: [],
    missing: nothing,
  },
  integration: {
    globs: ['test/integration/*.test.ts'],
    minimumFiles: 10,
    timeoutMs: 600_000,
    concurrency: 2,
    arguments: [],
    missing: nothing,
  },
  harness: {
    globs: ['test/harness/*.test.ts'],
    minimumFiles: 1,
    timeoutMs: 600_000,
    concurrency: 2,
    arguments: [],
    missing: nothing,
  },
  e2e: {
    globs: ['test/e2e/*.test.ts'],
    minimumFiles: 2,
    timeoutMs: 1_500_000,
    concurrency: 1,
    arguments: [],
    missing: missingPrerequisites,
  },
  chart: {
    globs: ['test/repo/chart*.test.ts'],
    minimumFiles: 1,
    timeoutMs: 120_000,
    concurrency: 1,
    arguments: [],
    missing: nothing,
  },
};

const root = new URL('..', import.meta.url).pathname;
// Hundreds of short-lived processes load the same modules: with their compiled code kept, each starts in half the time.
process.env['NODE_COMPILE_CACHE'] ??= `${root}/.tools/compile-cache`;
const updateGolden = process.argv.includes('--update-golden');
const wanted = process.argv.slice(2).filter((word) => !word.startsWith('--'));
const names =
  wanted.length === 0 || wanted.includes('all') ? ['check', 'unit', 'repo', 'integration', 'harness', 'e2e'] : wanted;

const startedAt = performance.now();
const elapsed = (): string => `${((performance.now() - startedAt) / 1000).toFixed(0)} s`;
const failed: string[] = [];
const skipped: string[] = [];

const run = (title: string, command: string, args: readonly string[], repair: string): void => {
  console.log(`\n== ${title} (${elapsed()})`);
  const result = spawnSync(command, args, { cwd: root, stdio: 'inherit' });
  if (result.status !== 0) {
    failed.push(title);
    console.log(`== ${title} failed. ${repair}`);
  }
};

const check = (): void => {
  run('format', 'biome', ['check', '.'], 'Run `make fix`.');
  run('types', 'tsc', ['-p', '.'], '');
  run('lint', 'oxlint', ['--type-aware'], 'Run `make fix` for what can be repaired.');
  run('generated files', process.execPath, ['tools/verify.ts'], 'Run `make generate`.');
};

const runTier = (name: string, tier: Tier): void => {
  const missing = tier.missing();
  if (missing.length > 0) {
    skipped.push(`${name}: ${missing.join('; ')}`);
    return;
  }
  const files = tier.globs.flatMap((glob) => globSync(glob, { cwd: root, exclude: ['**/node_modules/**'] })).sort();
  if (files.length < tier.minimumFiles) {
    failed.push(`${name}: only ${files.length} test files found, at least ${tier.minimumFiles} expected`);
    return;
  }
  if (!existsSync(`${root}/sandbox-image/node_modules`) && name === 'harness') {
    run('harness programs', 'tools/bootstrap.sh', ['harness'], '');
  }
  const flags = [
    '--disable-warning=ExperimentalWarning',
    '--test',
    `--test-timeout=${tier.timeoutMs}`,
    `--test-concurrency=${tier.concurrency}`,
    ...(updateGolden ? ['--test-update-snapshots'] : []),
    ...tier.arguments,
  ];
  run(
    `${name} tests, ${files.length} files`,
    process.execPath,
    [...flags, ...files],
    `Run one file with \`node --test <file>\`.`,
  );
};

for (const name of names) {
  if (name === 'check') check();
  else {
    const tier = tiers[name];
    if (tier === undefined) {
      console.error(`no tier '${name}'; tiers are: all, check, ${Object.keys(tiers).join(', ')}`);
      process.exit(2);
    }
    runTier(name, tier);
  }
}

console.log(`\n== done in ${elapsed()}`);
for (const line of skipped) console.log(`skipped  ${line}`);
for (const line of failed) console.log(`failed   ${line}`);
const skipIsFailure = process.env['BEEUNI_REQUIRE_TIERS'] === '1' && skipped.length > 0;
process.exit(failed.length > 0 || skipIsFailure ? 1 : 0);
