// The catalogues against the code: error codes, condition reasons, metrics, environment names, routes. Each list of gaps is
// exact, so it shrinks when a gap is closed and nothing joins it unseen. A word in quotes counts as produced: this finds
// what nothing can say, and the tests beside the code prove that the right thing says it.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { METRICS } from '#schema/metrics.ts';
import { PROBLEMS } from '#schema/problem.ts';
import {
  PROJECT_CONDITIONS,
  PROJECT_EVENTS,
  SESSION_CONDITIONS,
  SESSION_EVENTS,
} from '#schema/resources/conditions.ts';
import { FAILURE_CATEGORIES } from '#schema/resources/session.ts';
import { PUBLIC_ROUTES } from '#schema/rest/index.ts';

const root = new URL('../../', import.meta.url).pathname;
const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.ts', 'docs', '*.md'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => file !== '' && existsSync(root + file));

const textOf = (chosen: (file: string) => boolean): string =>
  files
    .filter(chosen)
    .map((file) => readFileSync(root + file, 'utf8'))
    .join('\n');

const isTest = (file: string): boolean => file.endsWith('.test.ts') || file.startsWith('test/');
const isProduct = (file: string): boolean =>
  /^(schema|base|kube|operator|controlplane|sandbox-image)\/.*\.ts$/.test(file) && !isTest(file);
const withoutComments = (text: string): string => text.replace(/^\s*(\/\/|\/?\*).*$/gm, '');
const isQuotedIn = (text: string, word: string): boolean =>
  new RegExp(`['"\`]${word}['"\`:]`).test(withoutComments(text));

test('every error code is raised', () => {
  const code = textOf((file) => isProduct(file) && file !== 'schema/problem.ts');
  const unraised = Object.keys(PROBLEMS).filter((word) => !isQuotedIn(code, word));
  assert.deepEqual(unraised, []);
});

/** Reasons of features that are not built: releases, and events of the kubelet about images. */
const UNREACHED_REASONS = [
  'Project ReleasePublished BuildFailed',
  'Project ReleasePublished Published',
  'Project ReleasePublished Publishing',
  'Project ReleasePublished Quarantined',
  'Session SandboxReady ImagePulling',
];

test('every condition reason is produced, but those on the list of gaps', () => {
  const unreached = (
    kind: 'Project' | 'Session',
    conditions: typeof PROJECT_CONDITIONS | typeof SESSION_CONDITIONS,
  ) => {
    const rooms = [`operator/${kind.toLowerCase()}/`, 'operator/runtime/', 'controlplane/', 'schema/manifest/'];
    const code = textOf((file) => isProduct(file) && rooms.some((room) => file.startsWith(room)));
    return Object.entries(conditions).flatMap(([type, words]) =>
      [words.True, words.False, words.Unknown]
        .flatMap((reasons) => Object.keys(reasons))
        .filter((reason) => !isQuotedIn(code, reason))
        .map((reason) => `${kind} ${type} ${reason}`),
    );
  };
  const found = [...unreached('Project', PROJECT_CONDITIONS), ...unreached('Session', SESSION_CONDITIONS)];
  assert.deepEqual(found.sort(), UNREACHED_REASONS);
});

test('every reason that the operator gives to Ready is on the closed list', () => {
  const code = textOf((file) => isProduct(file) && file.startsWith('operator/'));
  const given = [...code.matchAll(/note\('Ready', '(True|False|Unknown)', '(\w+)'/g)];
  assert.ok(given.length >= 5, `only ${given.length} places were seen`);
  const known: ReadonlySet<string> = new Set(
    [PROJECT_CONDITIONS.Ready, SESSION_CONDITIONS.Ready].flatMap((words) =>
      [words.True, words.False, words.Unknown].flatMap((reasons) => Object.keys(reasons)),
    ),
  );
  assert.deepEqual(
    given.map((match) => match[2] ?? '').filter((reason) => !known.has(reason)),
    [],
  );
});

/** Events of features that are not built. */
const UNSENT_EVENTS = ['ReleaseQuarantined'];

test('every reason of an Event is sent, but those on the list of gaps', () => {
  const code = textOf((file) => isProduct(file) && file.startsWith('operator/'));
  const unsent = [...PROJECT_EVENTS, ...SESSION_EVENTS].filter((reason) => !isQuotedIn(code, reason));
  assert.deepEqual(unsent, UNSENT_EVENTS);
});

test('every metric is moved', () => {
  const code = textOf(isProduct);
  const still = Object.keys(METRICS).filter(
    (name) => !new RegExp(`\\b${name}\\??[.](inc|set|replace|observe)\\b`).test(code),
  );
  assert.deepEqual(still, []);
});

/**
 * Metrics that 10-kubernetes §10 names and nothing counts yet: of features that are not built (releases, warm sessions), and of
 * what is not measured so far.
 */
const METRICS_FOR_LATER = [
  'db_migration_version',
  'db_query_duration_seconds',
  'internal_requests_total',
  'manifest_validation_total',
  'outbox_depth',
  'outbox_oldest_age_seconds',
  'release_lag_sessions',
  'release_proof_duration_seconds',
  'release_rollouts_total',
  'releases_published_total',
  'releases_quarantined',
  'requests_open',
  'session_deletes_total',
  'session_finalizer_duration_seconds',
  'session_start_stage_duration_seconds',
  'stream_lag_events',
  'turn_first_event_seconds',
];

test('no metric is on the list of those for later once it is there', () => {
  const names: ReadonlySet<string> = new Set(Object.values(METRICS).map(({ name }) => name));
  assert.ok(names.has('beeuni_build_info'));
  assert.deepEqual(
    METRICS_FOR_LATER.filter((name) => names.has(`beeuni_${name}`)),
    [],
  );
});

/** Words that begin like an environment name and are none. */
const NO_ENVIRONMENT = new Set(['BEEUNI_PLUGIN', 'BEEUNI_PREFIX', 'BEEUNI_TOOLS']);

test('every BEEUNI_ name of the code is documented', () => {
  const code = textOf((file) => isProduct(file) || /^(tools|test\/cluster)\/.*(?<![.]test)[.]ts$/.test(file));
  const documents = textOf((file) => file.endsWith('.md'));
  const names = new Set([...code.matchAll(/\bBEEUNI_[A-Z][A-Z0-9_]*\b/g)].map(([name]) => name));
  assert.ok(names.size > 50, `only ${names.size} names were seen`);
  const silent = [...names].filter((name) => !NO_ENVIRONMENT.has(name) && !new RegExp(`${name}\\b`).test(documents));
  assert.deepEqual(silent, []);
});

test('docs/operations.md says of every failure category what to do', () => {
  const rows = textOf((file) => file === 'docs/operations.md')
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .join('\n');
  assert.deepEqual(
    FAILURE_CATEGORIES.filter((category) => !rows.includes(`\`${category}\``)),
    [],
  );
});

// The walk over all routes tests who may call them; this asks for a test that looks at the answer.
test('every public route is named by a test', () => {
  const tests = textOf((file) => isTest(file) && !file.startsWith('test/repo/'));
  const unnamed = PUBLIC_ROUTES.filter(({ operationId, path }) => {
    const pattern = path.replaceAll('.', '[.]').replace(/:[A-Za-z]+/g, '[^/\'"`]+');
    return !new RegExp(`\\b${operationId}(Route)?\\b|${pattern}['"\`?]`).test(tests);
  });
  assert.deepEqual(unnamed.map(({ operationId }) => operationId).sort(), []);
});
