// The project controller's plans: each named state printed, worlds that converge, crashes anywhere.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ProjectSpecInput, ProjectStatus } from '#schema/resources/project.ts';
import {
  type ProjectFact,
  projectFact,
  syncedCredentials,
  syncedManifest,
  syncedModels,
  syncedRepository,
} from '#schema/wire/sync.ts';
import { controllerSuite } from '#test/support/controller-suite.ts';
import { ProjectWorld } from '#test/support/project-world.ts';
import { anInstallation, aProjectFact, NOON_MS } from '#test/support/session-fixtures.ts';
import { projectStatusChange } from './major.ts';
import type { ObservedProject, ObservedProjectSession } from './observed.ts';
import { planProject } from './plan.ts';
import { policyAccepted } from './policy-accepted.ts';

const synced = (
  spec: Partial<ProjectSpecInput> = {},
  answer: Partial<ProjectFact> = {},
  changes: Partial<ObservedProject> = {},
): ObservedProject => {
  const world = new ProjectWorld(spec);
  world.answer = answer;
  world.settle();
  return { ...(world.observe() ?? assert.fail('the Project is gone')), ...changes };
};

const aChild = (n: number, changes: Partial<ObservedProjectSession> = {}): ObservedProjectSession => ({
  name: `s${n}`,
  uid: `e0000000-0000-4000-8000-00000000000${n}`,
  deleting: false,
  finished: false,
  hasPod: true,
  phase: 'Running',
  ...changes,
});

const deleting = (policy: 'Block' | 'Cascade', sessions: readonly ObservedProjectSession[]): ObservedProject => {
  const world = new ProjectWorld({ deletionPolicy: policy });
  world.settle();
  world.sessions = [...sessions];
  world.delete();
  return world.observe() ?? assert.fail('the Project is gone');
};

const manifest = (changes: Partial<ProjectFact['manifest']>): Partial<ProjectFact> => ({
  manifest: { ...aProjectFact().manifest, ...changes },
});

const SYNTAX_ERROR = manifest({
  reason: 'SyntaxError',
  errors: [{ path: 'beeuni.yaml', line: 3, column: 7, code: 'bad_indent', message: 'wrong indentation' }],
});

controllerSuite<ObservedProject>({
  name: 'project',
  plan: planProject,
  states: {
    'new': () => new ProjectWorld().observe() ?? assert.fail(),
    'new, control plane down': () => {
      const world = new ProjectWorld();
      world.controlPlane = 'down';
      return world.observe() ?? assert.fail();
    },
    'sync runs': () => synced({}, { state: 'running' }),
    synced: () => synced(),
    'synced, with sessions': () =>
      synced(
        {},
        {},
        {
          sessions: [
            aChild(1),
            aChild(2, { phase: 'Suspended', hasPod: false }),
            aChild(3, { phase: 'Failed', hasPod: false }),
          ],
        },
      ),
    'manifest became invalid': () => synced({}, SYNTAX_ERROR),
    'manifest missing, never valid': () => synced({}, manifest({ reason: 'Missing', lastValid: null })),
    'credentials missing': () =>
      synced({}, { credentials: { reason: 'SecretNotFound', message: 'there is no Secret git in team-a' } }),
    'repository not found': () =>
      synced(
        {},
        {
          repository: {
            reason: 'NotFound',
            message: 'the remote knows no such repository',
            defaultBranch: null,
            commit: null,
          },
          ...manifest({ reason: 'NotRead', lastValid: null }),
        },
      ),
    'unknown model': () =>
      synced(
        {},
        {
          models: {
            ...aProjectFact().models,
            reason: 'UnknownModel',
            message: 'agent coder: provider acme lists no model x; nearest: acme/coder-large',
            invalid: [{ name: 'acme/x', code: 'UnknownModel', usedBy: 'agent coder', suggestion: 'acme/coder-large' }],
          },
        },
      ),
    'private network asked for': () =>
      synced({ egress: { mode: 'AllowList', allow: [{ cidr: '10.0.0.0/8', ports: [{ port: 443 }] }] } }),
    suspended: () => synced({ operatingMode: 'Suspended' }),
    'budget reached': () =>
      synced({}, { budget: { reached: true, runsReached: false, message: 'the daily budget of 5 USD is used up' } }),
    'runs reached': () =>
      synced(
        {},
        { budget: { reached: false, runsReached: true, message: 'the 20 turns of this UTC day are used up' } },
      ),
    'control plane down': () => synced({}, {}, { controlPlane: { state: 'down', lastContactMs: NOON_MS - 40_000 } }),
    'operator just started': () =>
      synced(
        {},
        {},
        { controlPlane: { state: 'connecting', lastContactMs: undefined }, fact: undefined, asked: undefined },
      ),
    'platform flag changed': () =>
      synced(
        {},
        {},
        { installation: anInstallation({ features: { pi_harness: { default: true } } }), asked: undefined },
      ),
    'deleting, blocked': () => deleting('Block', [aChild(1), aChild(2)]),
    'deleting, cascade': () => deleting('Cascade', [aChild(1), aChild(2, { deleting: true })]),
    'deleting, nothing left': () => deleting('Block', []),
    'deleting, control plane down': () => ({
      ...deleting('Block', []),
      controlPlane: { state: 'down', lastContactMs: NOON_MS },
    }),
  },
  worlds: {
    'a sync': () => {
      const world = new ProjectWorld();
      return {
        world: world.model(),
        reached: () => {
          assert.equal(world.project?.status?.phase, 'Ready');
          assert.ok(world.serviceAccount);
        },
      };
    },
    'a change of the spec': () => {
      const world = new ProjectWorld();
      world.settle();
      world.edit({ features: { piHarness: 'Enabled' } });
      return {
        world: world.model(),
        reached: () => {
          assert.equal(world.project?.status?.harness?.id, 'pi');
          assert.equal(world.project?.status?.observedGeneration, 2);
        },
      };
    },
    'a cascade': () => {
      const world = new ProjectWorld({ deletionPolicy: 'Cascade' });
      world.settle();
      world.sessions = [aChild(1), aChild(2)];
      world.delete();
      return {
        world: world.model(),
        reached: () => {
          assert.equal(world.project, undefined);
          assert.deepEqual(world.sessions, []);
          assert.ok(world.closed);
          assert.ok(!world.serviceAccount, 'the last Project takes the service account with it');
        },
      };
    },
  },
});

test('§6 a restart of the operator causes no sync and no write', () => {
  const world = new ProjectWorld();
  world.settle();
  const { syncs } = world;
  const writes = world.counts.statusWrites + world.counts.writes;
  world.restart();
  world.settle();
  assert.equal(world.syncs, syncs);
  assert.equal(world.counts.statusWrites + world.counts.writes, writes);
});

test('§6 a sync result becomes status in one write', () => {
  const world = new ProjectWorld();
  world.settle();
  assert.equal(world.counts.statusWrites, 1);
  world.edit({ syncToken: 't1' });
  world.settle();
  assert.equal(world.counts.statusWrites, 2);
  assert.equal(world.project?.status?.observedSyncToken, 't1');
});

test('a flag of the platform that changed is told to the control plane, once', () => {
  const world = new ProjectWorld();
  world.settle();
  world.restart();
  world.installation = anInstallation({ features: { pi_harness: { default: true } } });
  world.settle();
  assert.equal(world.syncs, 2);
  assert.equal(world.project?.status?.harness?.id, 'pi');
  world.settle();
  assert.equal(world.syncs, 2);
});

test('a manifest that became invalid keeps the harness and the agents of the last valid one', () => {
  const { status } = planProject(synced({}, SYNTAX_ERROR));
  assert.equal(status?.manifest?.valid, false);
  assert.deepEqual(status.manifest.agents, ['coder']);
  assert.equal(status.harness?.id, 'opencode');
  assert.match(status.conditions?.[0]?.message ?? '', /beeuni\.yaml:3:7: wrong indentation/);
});

test('no condition repeats its reason as its message, whatever the control plane answers without words', () => {
  const base = aProjectFact();
  const answers: readonly Partial<ProjectFact>[] = [
    ...syncedModels.shape.reason.options.map((reason) => ({ models: { ...base.models, reason, message: '' } })),
    ...syncedCredentials.shape.reason.options.map((reason) => ({ credentials: { reason, message: '' } })),
    ...syncedRepository.shape.reason.options.map((reason) => ({
      repository: { ...base.repository, reason, message: '' },
    })),
    ...projectFact.shape.release.shape.reason.options.map((reason) => ({
      release: { ...base.release, reason, current: null },
    })),
    ...syncedManifest.shape.reason.options.map((reason) => manifest({ reason, errors: [] })),
  ];
  assert.ok(answers.length > 25);
  for (const answer of answers) {
    for (const { type, reason, message } of planProject(synced({}, answer)).status?.conditions ?? []) {
      assert.ok(message.includes(' '), `${type} ${reason}: ${message}`);
      if (type !== 'Ready') assert.ok(!message.includes(`: ${reason}`) && message !== reason, `${type}: ${message}`);
    }
  }
});

test('D10 the control plane is told once of a Secret that changed, and not of one that did not', () => {
  const world = new ProjectWorld();
  world.secrets = [
    { name: 'same', version: '1', told: '1' },
    { name: 'rotated', version: '2', told: '1' },
    { name: 'gone', version: '', told: '7' },
  ];
  world.settle();
  assert.deepEqual(world.told, ['rotated 2', 'gone ']);
});

test('the policy of the installation names the field that it does not allow', () => {
  const installation = anInstallation({
    sandbox: {
      image: 'x',
      imagePolicy: { allowedPrefixes: ['registry.example.com/'], requireDigest: true },
      maxResources: { memory: '8Gi' },
    },
  });
  const reasonOf = (sandbox: ProjectSpecInput['sandbox'], egress?: ProjectSpecInput['egress']) => {
    const { spec } = synced({ sandbox, ...(egress === undefined ? {} : { egress }) }).project;
    return policyAccepted(spec, installation).reason;
  };
  assert.equal(reasonOf({ image: 'docker.io/a@sha256:1' }), 'ImageNotAllowed');
  assert.equal(reasonOf({ image: 'registry.example.com/a:1' }), 'ImageNotAllowed');
  assert.equal(
    reasonOf({ image: 'registry.example.com/a@sha256:1', allowedImages: ['docker.io/*'] }),
    'ImageNotAllowed',
  );
  assert.equal(reasonOf({ runtimeClassName: 'gvisor' }), 'RuntimeClassNotAllowed');
  assert.equal(reasonOf({ resources: { limits: { memory: '9Gi' } } }), 'ResourcesNotAllowed');
  const privately = { mode: 'AllowList' as const, allow: [{ cidr: '192.168.1.0/24', ports: [{ port: 443 }] }] };
  assert.equal(reasonOf({}, privately), 'EgressNotAllowed');
  assert.equal(reasonOf({ image: 'registry.example.com/a@sha256:1' }), 'Accepted');
});

test('a cascade deletes at most twenty Sessions in a pass and comes back in a second', () => {
  const many = Array.from({ length: 45 }, (_, n) => aChild(1, { uid: `u${n}`, name: `s${n}` }));
  const plan = planProject(deleting('Cascade', many));
  assert.equal(plan.actions.length, 20);
  assert.equal(plan.recheckAfterMs, 1_000);
});

test('K27 that a budget is reached or raised is written at once, a count of Sessions is not', () => {
  const saying = (reason: string): ProjectStatus =>
    ({ conditions: [{ type: 'WithinLimits', status: 'True', reason, message: '' }] }) as ProjectStatus;
  assert.equal(projectStatusChange(saying('WithinLimits'), saying('BudgetReached')), 'major');
  assert.equal(projectStatusChange(saying('BudgetReached'), saying('WithinLimits')), 'major');
  assert.equal(projectStatusChange(saying('WithinLimits'), saying('SessionLimit')), 'minor');
});
