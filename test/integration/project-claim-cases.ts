// What a claim is told of a project that was synced: cases of project-sync.test.ts, which has the parts. Must not know how they are
// made.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { StoredPolicy } from '#controlplane/app/agent-policies.ts';
import { makeProjectConfig, type ProjectConfigApp } from '#controlplane/app/project-config.ts';
import type { Project } from '#schema/resources/project.ts';
import { ProjectKind } from '#schema/resources/project.ts';
import { type Session, SessionKind } from '#schema/resources/session.ts';
import { COMPILED_BUDGETS, COMPILED_LIMITS } from '#schema/settings/budgets.ts';
import { COMPILED_HAB } from '#schema/settings/hab.ts';
import { type ModelRole, NO_ROLES } from '#schema/settings/roles.ts';
import { codeOf, type SyncWorld } from '#test/support/sync-world.ts';

/** The project of the case that runs. */
export type ClaimScene = Readonly<{
  world: SyncWorld;
  uid: string;
  /** Names of the project and of its repository. */
  project: string;
  repository: string;
  /** Commits its manifest with the agents build and review; gives back the commit. */
  commit: () => Promise<string>;
  ask: () => Promise<unknown>;
}>;

const object = (kind: string, name: string, objectUid: string, spec: unknown) => ({
  apiVersion: 'beeuni.dev/v1alpha1',
  kind,
  metadata: {
    name,
    namespace: 'team',
    uid: objectUid,
    resourceVersion: '1',
    creationTimestamp: '2026-11-30T00:00:00Z',
  },
  spec,
});
const policyOf = (agent: string, saved: Partial<StoredPolicy['saved']>): StoredPolicy => ({
  agent,
  revision: 1,
  saved: { vision: null, vision_describe: null, vision_keep_images: null, ...saved },
});

/** The cases. */
export const claimCases = (scene: () => ClaimScene): void => {
  const aProject = (spec: Record<string, unknown>): Project =>
    ProjectKind.object.parse(
      object('Project', scene().project, scene().uid, {
        repository: { url: scene().world.remote.urlOf(scene().repository) },
        ...spec,
      }),
    );
  const aSession = (spec: Record<string, unknown> = {}): Session =>
    SessionKind.object.parse(
      object('Session', 'one', '99999999-0000-0000-0000-000000000001', {
        projectRef: { name: scene().project },
        ...spec,
      }),
    );

  /** The settings of claims under saved policies and slots of roles. */
  const claimsWith = (
    policies: () => readonly StoredPolicy[],
    slots: Partial<Record<ModelRole, string>>,
  ): ProjectConfigApp =>
    makeProjectConfig({
      store: scene().world.store,
      readRegistry: scene().world.registry.fresh,
      readSecret: scene().world.readSecret,
      branchCommit: async (_uid, branch) => (branch === 'develop' ? 'd'.repeat(40) : undefined),
      defaultModel: undefined,
      author: { name: 'Beeuni', email: 'agent@beeuni.dev' },
      listPolicies: async () => policies(),
      limits: COMPILED_LIMITS,
      settings: {
        current: async () => ({
          revision: 0,
          budgets: COMPILED_BUDGETS,
          roles: { ...NO_ROLES, ...slots },
          hab: COMPILED_HAB,
        }),
      },
    });
  test('B2 B7 B13 a claim gets base, agent, model, roles, image policies, limits and exactly the granted secrets', async () => {
    const config = claimsWith(() => [policyOf('review', { vision: false })], { compaction: 'demo/scripted-small' });
    const entry = (env: string, agents: string[]) => ({ env, secretRef: { name: 'app', key: env }, agents });
    const project = aProject({
      secrets: [entry('NPM', ['build']), entry('OTHER', ['review']), entry('THIRD', ['*'])],
      defaults: { model: 'gone/model' },
    });
    assert.deepEqual(await config.claimConfig(aSession(), project), { wait: 'project_not_synced' });
    const commit = await scene().commit();
    await scene().ask();
    scene().world.secrets.set('app', { NPM: 'npm-value', OTHER: 'other-value', THIRD: 'third-value' });
    const settings = await config.claimConfig(aSession(), project);
    assert.ok(!('wait' in settings));
    assert.deepEqual(
      [settings.baseBranch, settings.baseCommit, settings.agent, settings.model?.name],
      ['main', commit, 'build', 'demo/scripted-large'],
    );
    assert.deepEqual(
      settings.agents.map(({ name, prompt }) => [name, prompt.trim()]),
      [
        ['build', 'Build things.'],
        ['review', 'Review things.'],
      ],
    );
    assert.deepEqual(
      settings.agents.map(({ vision }) => vision),
      [
        { mode: 'pixels', keepImages: 0 },
        { mode: 'off', keepImages: 0 },
      ],
    );
    assert.deepEqual(
      settings.roles?.map(({ role, model, reason }) => [role, model, reason]),
      [
        ['judge', null, 'off: nothing is assigned to the role'],
        ['vision', null, 'off: model demo/scripted-large takes no images'],
        ['compaction', 'demo/scripted-small', 'it is assigned to the role'],
        [
          'title',
          null,
          'off: nothing is assigned to the role, nothing is assigned to the role judge, the environment names no model',
        ],
        ['extraction', 'demo/scripted-large', 'it is the model of the run'],
      ],
    );
    assert.equal(settings.maxModelRequestBytes, COMPILED_BUDGETS.max_model_request_bytes);
    assert.deepEqual(settings.limits, COMPILED_LIMITS);
    assert.deepEqual(settings.env, { NPM: 'npm-value' });
    const claimOf = async (spec: Record<string, unknown>) => {
      const found = await config.claimConfig(aSession(spec), project);
      assert.ok(!('wait' in found));
      return found;
    };
    assert.deepEqual((await claimOf({ agent: 'review' })).env, {});
    assert.equal(
      (await claimOf({ agent: 'review' })).model?.name,
      'demo/scripted-large',
      'a stale project default is skipped',
    );
    assert.deepEqual((await claimOf({ scope: { secrets: [] } })).env, {});
    assert.equal((await claimOf({ model: 'demo/none' })).model, null);
    assert.equal((await claimOf({ branch: { base: 'develop' } })).baseCommit, 'd'.repeat(40));
    assert.equal(await codeOf(claimOf({ branch: { base: 'nope' } })), 'branch_not_found');
  });

  test('B8 B9 B11 A216 a claim tells how each agent sees images, the model that looks at them, and the tiers of models', async () => {
    let policies: readonly StoredPolicy[] = [];
    const config = claimsWith(() => policies, { vision: 'demo/scripted-eyes' });
    const project = aProject({});
    await scene().commit();
    await scene().ask();
    const eyes = { id: 'scripted-eyes', input: ['text', 'image'], reasoning: true, variants: ['low', 'deep'] };
    await scene().world.put({ models: [{ id: 'scripted-large' }, { id: 'scripted-small' }, eyes] });
    const told = async () => {
      const claim = await config.claimConfig(aSession({ model: 'demo/scripted-eyes' }), project);
      assert.ok(!('wait' in claim));
      const [build, review] = claim.agents.map(({ vision }) => vision);
      return { build, review, looks: claim.roles?.find(({ role }) => role === 'vision')?.model, model: claim.model };
    };
    const pixels = { mode: 'pixels', keepImages: 0 };
    const plain = await told();
    assert.deepEqual([plain.build, plain.review, plain.looks], [pixels, pixels, 'demo/scripted-eyes']);
    assert.deepEqual([plain.model?.reasoning, plain.model?.variants], [true, ['low', 'deep']]);
    // A saved change counts from the next claim.
    policies = [
      policyOf('build', { vision_describe: true }),
      policyOf('review', { vision: false, vision_describe: true }),
    ];
    const changed = await told();
    assert.deepEqual(
      [changed.build, changed.review, changed.looks],
      [{ mode: 'descriptions', keepImages: 0 }, { mode: 'off', keepImages: 0 }, 'demo/scripted-eyes'],
    );
    await scene().world.put();
  });
};
