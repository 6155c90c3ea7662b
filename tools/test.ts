// Runs the test tiers: `node tools/test.ts [--update-golden] [--serial] [all | check | unit | repo | integration | harness | contract | e2e | fuzz | chart]…`.
// Without names all run, in lanes side by side: the real programs wait most of the time, so no lane holds up the others.
// Every tier has a minimum number of files, because a glob that matches nothing would pass; a tier that cannot run on
// this machine is named with its reason, and BEEUNI_REQUIRE_TIERS=1 turns that into a failure.
import { spawn } from 'node:child_process';
import { globSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { missingPrerequisites } from '#test/cluster/prerequisites.ts';
import { findFuzzer } from '#test/fuzz/schemathesis.ts';
import { ownServer, THROWAWAY } from '#test/support/postgres-server.ts';

type Tier = Readonly<{
  globs: readonly string[];
  minimumFiles: number;
  timeoutMs: number;
  concurrency: number;
  /** Whether its files share one Postgres. */
  postgres: boolean;
  missing: () => readonly string[];
  /** Files that another tier runs in a truer place, where both run. */
  elsewhere?: Readonly<{ tier: string; files: readonly string[] }>;
}>;

const missingFuzzer = (): readonly string[] => {
  const found = findFuzzer();
  return 'missing' in found ? [found.missing] : [];
};
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
    postgres: false,
    missing: nothing,
  },
  repo: {
    globs: ['test/repo/*.test.ts'],
    minimumFiles: 4,
    timeoutMs: 120_000,
    concurrency: 2,
    postgres: false,
    missing: nothing,
  },
  integration: {
    globs: ['test/integration/*.test.ts'],
    minimumFiles: 10,
    timeoutMs: 600_000,
    concurrency: 2,
    postgres: true,
    missing: nothing,
  },
  harness: {
    globs: ['test/harness/*.test.ts'],
    minimumFiles: 1,
    timeoutMs: 600_000,
    concurrency: 2,
    postgres: false,
    missing: nothing,
    // The same cases and the same table, in containers of the sandbox image.
    elsewhere: { tier: 'contract', files: ['test/harness/contract.test.ts'] },
  },
  fuzz: {
    globs: ['test/fuzz/*.test.ts'],
    minimumFiles: 1,
    timeoutMs: 600_000,
    concurrency: 1,
    postgres: false,
    missing: missingFuzzer,
  },
  // Needs the sandbox image, but no node.
  contract: {
    globs: ['test/e2e/contract.test.ts'],
    minimumFiles: 1,
    timeoutMs: 2_400_000,
    concurrency: 1,
    postgres: false,
    missing: missingPrerequisites,
  },
  e2e: {
    globs: ['test/e2e/!(contract).test.ts'],
    minimumFiles: 2,
    timeoutMs: 2_400_000,
    concurrency: 1,
    postgres: false,
    missing: missingPrerequisites,
  },
  chart: {
    globs: ['test/repo/chart*.test.ts'],
    minimumFiles: 1,
    timeoutMs: 120_000,
    concurrency: 1,
    postgres: false,
    missing: nothing,
  },
};

const root = new URL('..', import.meta.url).pathname;
// Hundreds of short-lived processes load the same modules: with their compiled code kept, each starts in half the time.
process.env['NODE_COMPILE_CACHE'] ??= `${root}/.tools/compile-cache`;
const updateGolden = process.argv.includes('--update-golden');
const wanted = process.argv.slice(2).filter((word) => !word.startsWith('--'));
const isAll = wanted.length === 0 || wanted.includes('all');
const LANES = [
  ['check', 'unit', 'repo', 'integration'],
  ['contract', 'harness'],
  ['e2e', 'fuzz'],
] as const;

/** What a step may take before it is ended; a quiet machine needs a tenth. Units: milliseconds. */
const STEP_LIMIT_MS = 40 * 60_000;
/** How long the output of a step that ended is read. Units: milliseconds. */
const OUTPUT_MS = 10_000;

const startedAt = performance.now();
const elapsed = (): string => `${((performance.now() - startedAt) / 1000).toFixed(0)} s`;
const failed: string[] = [];
const skipped: string[] = [];

/** Where a lane says what it does. `prefix` marks its lines where several lanes write. */
type Lane = Readonly<{ prefix: string }>;

const say = ({ prefix }: Lane, line: string): void => console.log(prefix + line);

const run = async (
  lane: Lane,
  title: string,
  command: string,
  args: readonly string[],
  repair: string,
  environment: Readonly<Record<string, string>> = {},
) => {
  say(lane, `== ${title} (${elapsed()})`);
  const child = spawn(command, args, {
    cwd: root,
    stdio: lane.prefix === '' ? 'inherit' : ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...environment },
  });
  for (const stream of [child.stdout, child.stderr]) {
    if (stream !== null) createInterface({ input: stream }).on('line', (line) => say(lane, line));
  }
  const { promise, resolve } = Promise.withResolvers<number | null>();
  child.on('error', (error) => {
    say(lane, `${command}: ${error.message}`);
    resolve(null);
  });
  // Not 'close': a program that a test forgot may hold the output for ever.
  child.on('exit', (code) => setTimeout(resolve, OUTPUT_MS, code));
  child.on('close', resolve);
  const ending = setTimeout(() => {
    say(lane, `== ${title}: ended after ${STEP_LIMIT_MS / 60_000} minutes`);
    child.kill('SIGTERM');
    setTimeout(() => child.kill('SIGKILL'), OUTPUT_MS).unref();
  }, STEP_LIMIT_MS);
  const code = await promise;
  clearTimeout(ending);
  if (code === 0) return;
  failed.push(title);
  say(lane, `== ${title} failed. ${repair}`);
};

/** Files of a tier that this very run has in another tier. */
const runsElsewhere = ({ elsewhere }: Tier): readonly string[] => {
  if (elsewhere === undefined || !(isAll || wanted.includes(elsewhere.tier))) return [];
  return tiers[elsewhere.tier]?.missing().length === 0 ? elsewhere.files : [];
};

const check = async (lane: Lane): Promise<void> => {
  await run(lane, 'format', 'biome', ['check', '.'], 'Run `make fix`.');
  await run(lane, 'types', 'tsc', ['-p', '.'], '');
  await run(lane, 'lint', 'oxlint', ['--type-aware'], 'Run `make fix` for what can be repaired.');
  await run(lane, 'generated files', process.execPath, ['tools/verify.ts'], 'Run `make generate`.');
};

const runTier = async (lane: Lane, name: string, tier: Tier): Promise<void> => {
  const missing = tier.missing();
  if (missing.length > 0) {
    skipped.push(`${name}: ${missing.join('; ')}`);
    return;
  }
  const left = runsElsewhere(tier);
  if (left.length > 0) say(lane, `== ${left.join(' ')}: its cases run in the ${tier.elsewhere?.tier} tier`);
  const found = tier.globs.flatMap((glob) => globSync(glob, { cwd: root, exclude: ['**/node_modules/**'] }));
  const files = found.filter((file) => !left.includes(file)).sort();
  if (files.length < tier.minimumFiles) {
    failed.push(`${name}: only ${files.length} test files found, at least ${tier.minimumFiles} expected`);
    return;
  }
  if (name === 'harness') await run(lane, 'harness programs', 'tools/bootstrap.sh', ['harness'], '');
  const flags = [
    '--disable-warning=ExperimentalWarning',
    '--import=./test/support/file-guard.ts',
    '--test',
    `--test-timeout=${tier.timeoutMs}`,
    `--test-concurrency=${tier.concurrency}`,
    ...(updateGolden ? ['--test-update-snapshots'] : []),
  ];
  const wantsServer = tier.postgres && (process.env['DATABASE_URL'] ?? '') === '';
  const server = wantsServer ? await ownServer(THROWAWAY) : undefined;
  await run(
    lane,
    `${name} tests, ${files.length} files`,
    process.execPath,
    [...flags, ...files],
    `Run one file with \`node --test <file>\`.`,
    server === undefined ? {} : { DATABASE_URL: server.databaseUrl },
  );
  await server?.stop();
};

const runLane = async (lane: Lane, names: readonly string[]): Promise<void> => {
  for (const name of names) {
    const tier = tiers[name];
    if (name === 'check') await check(lane);
    else if (tier !== undefined) await runTier(lane, name, tier);
  }
};

const unknown = wanted.find((name) => name !== 'all' && name !== 'check' && tiers[name] === undefined);
if (unknown !== undefined) {
  console.error(`no tier '${unknown}'; tiers are: all, check, ${Object.keys(tiers).join(', ')}`);
  process.exit(2);
}
if (isAll && !process.argv.includes('--serial') && !updateGolden) {
  await Promise.all(LANES.map((names, place) => runLane({ prefix: place === 0 ? '' : `${names[0]} | ` }, names)));
} else {
  await runLane({ prefix: '' }, isAll ? LANES.flat() : wanted);
}

console.log(`\n== done in ${elapsed()}`);
for (const line of skipped) console.log(`skipped  ${line}`);
for (const line of failed) console.log(`failed   ${line}`);
const skipIsFailure = process.env['BEEUNI_REQUIRE_TIERS'] === '1' && skipped.length > 0;
process.exit(failed.length > 0 || skipIsFailure ? 1 : 0);
