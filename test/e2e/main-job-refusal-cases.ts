// Wrong input on a whole cluster: what is refused, and what is explained in a condition.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { conditionOf, waitForResource } from '#test/support/installation.ts';
import { NAMES, sampleProject } from '#tools/up/sample-objects.ts';

import { files, type Scene } from './main-job-scene.ts';

/** Cases of main-job.test.ts. */
export const refusalCases = (scene: () => Scene): void => {
  test('wrong input is refused or explained, with the right words', async () => {
    const { all, refused } = scene();
    const session = (spec: Record<string, unknown>, metadata: Record<string, unknown> = {}): object => ({
      apiVersion: 'beeuni.dev/v1alpha1',
      kind: 'Session',
      metadata: { name: 'wrong', namespace: NAMES.namespace, ...metadata },
      spec: { projectRef: { name: 'shop' }, ...spec },
    });
    assert.match(await refused(session({ mode: 'Task' })), /spec\.prompt is required when spec\.mode is Task/);
    assert.match(await refused(session({ prompt: 'x'.repeat(8193) })), /8192/);
    assert.match(await refused(session({}, { name: 'n'.repeat(47) })), /46/);
    assert.match(
      await refused(session({ sandbox: { resources: { requests: { memory: '2Gi' }, limits: { memory: '1Gi' } } } })),
      /requests\.memory must not exceed limits\.memory/,
    );
    assert.match(
      await refused(session({}, { labels: { 'beeuni.dev/project': 'x' } })),
      /are set by Beeuni only: beeuni\.dev\/project/,
    );
    assert.match(
      await refused(session({ source: { kind: 'Trigger', name: 't' } })),
      /is set by the control plane only/,
    );
    assert.match(
      await refused({
        ...session({ projectRef: { name: 'other' } }),
        metadata: { name: 'hello', namespace: NAMES.namespace },
      }),
      /spec\.projectRef is immutable/,
    );
    const explained: readonly (readonly [
      name: string,
      spec: Record<string, unknown>,
      reason: string,
      words: RegExp,
    ])[] = [
      ['no-project', { projectRef: { name: 'nothing' } }, 'ProjectNotFound', /nothing/],
      ['no-model', { model: 'scripted/demo-larg' }, 'ModelInvalid', /demo-larg.*scripted\/demo-large/],
      ['no-agent', { agent: 'nobody' }, 'AgentUnknown', /nobody.*dev/],
      ['no-branch', { branch: { name: 'shared' } }, 'BranchNotAvailable', /session holder works on branch shared/],
      ['base-branch', { branch: { name: 'main' } }, 'BranchNotAvailable', /main is the base branch/],
    ];
    await all.kubectl.apply([session({ branch: { name: 'shared' } }, { name: 'holder' })]);
    for (const [name, spec, reason, words] of explained) {
      await all.kubectl.apply([session(spec, { name })]);
      const stored = await waitForResource(
        all.kubectl,
        'session',
        name,
        reason,
        (one) => conditionOf(one, 'SpecAccepted')?.reason === reason,
        60_000,
      );
      assert.match(conditionOf(stored, 'SpecAccepted')?.message ?? '', words);
      assert.equal(conditionOf(stored, 'Ready')?.status, 'False');
      await all.kubectl.run('delete', 'session', name, '-n', NAMES.namespace, '--timeout=300s');
    }
    await all.kubectl.run('delete', 'session', 'holder', '-n', NAMES.namespace, '--timeout=300s');
  });

  test('a repository that cannot be used is explained in a condition', async () => {
    const { all } = scene();
    const cases: readonly (readonly [
      name: string,
      content: Record<string, string> | undefined,
      type: string,
      reason: string,
      words: RegExp,
    ])[] = [
      ['bare', { 'README.md': '# nothing' }, 'ManifestValid', 'Missing', /beeuni\.yaml/],
      [
        'broken',
        { ...files, 'beeuni.yaml': 'beeuni_version: 2\nagents:\n  dev: [\n' },
        'ManifestValid',
        'SyntaxError',
        /beeuni\.yaml:\d+:\d+/,
      ],
      ['absent', undefined, 'RepositoryReady', 'NotFound', /knows no repository at this URL/],
    ];
    for (const [name, content, type, reason, words] of cases) {
      if (content !== undefined) await all.push(name, content);
      await all.kubectl.apply([sampleProject(name, all.repositoryUrl(name), 'scripted/demo-large', undefined)]);
      const project = await waitForResource(
        all.kubectl,
        'project',
        name,
        `${type} ${reason}`,
        (one) => conditionOf(one, type)?.reason === reason,
        60_000,
      );
      assert.match(conditionOf(project, type)?.message ?? '', words);
      await all.kubectl.run('delete', 'project', name, '-n', NAMES.namespace, '--timeout=300s');
    }
  });
};
