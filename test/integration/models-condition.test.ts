// From the registry to kubectl: control plane and operator as processes on one real API server. A change of the registry or
// of a flag is seen in the status of every project within seconds.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { PROJECTS } from '#kube/resource-types.ts';
import { type Project, ProjectKind } from '#schema/resources/project.ts';
import { createProjectRoute, patchFeaturesRoute } from '#schema/rest/projects.ts';
import * as routes from '#schema/rest/workspace.ts';
import { type ApiWorld, startApiWorld } from '#test/support/api-world.ts';
import { startTestRemote, type TestRemote } from '#test/support/git-server.ts';
import { until } from '#test/support/until.ts';

const PROJECT_COUNT = 20;
const WITHIN_MS = 10_000;
const MANIFEST = 'beeuni_version: 2\ndefault_agent: build\nagents:\n  build: {}\n';
const AGENT = '---\nmode: primary\nmodel: acme/large\n---\nBuild things.\n';

describe('the condition ModelsValid', () => {
  let world: ApiWorld;
  let remote: TestRemote;
  let folder: string;
  let operator: ChildProcess | undefined;
  const names = Array.from({ length: PROJECT_COUNT }, (_, n) => `shop-${n}`);

  before(async () => {
    remote = await startTestRemote();
    await remote.commit('shop.git', { 'beeuni.yaml': MANIFEST, 'agents/build.md': AGENT });
    world = await startApiWorld();
    folder = await mkdtemp(join(tmpdir(), 'beeuni-condition-'));
    await writeFile(join(folder, 'token'), world.operatorToken);
    const installation = {
      sandbox: { image: 'registry.example.com/sandbox:1' },
      controlPlane: { sandboxUrl: 'http://control-plane:8081', namespace: world.namespace, podLabels: { a: 'b' } },
    };
    await writeFile(join(folder, 'installation.json'), JSON.stringify(installation));
    operator = spawn(process.execPath, ['operator/main.ts'], {
      env: {
        PATH: process.env['PATH'] ?? '',
        KUBECONFIG: world.api.kubeconfigPath,
        BEEUNI_NAMESPACE: world.namespace,
        BEEUNI_WATCH_NAMESPACES: world.namespace,
        BEEUNI_CONTROL_PLANE_URL: await world.process.url('internal'),
        BEEUNI_CONTROL_PLANE_TOKEN_FILE: join(folder, 'token'),
        BEEUNI_INSTALLATION_FILE: join(folder, 'installation.json'),
        BEEUNI_LISTEN_HOST: '127.0.0.1',
        BEEUNI_METRICS_PORT: '0',
      },
      stdio: 'ignore',
    });
  });
  after(async () => {
    operator?.kill('SIGKILL');
    await world?.stop();
    await remote?.close();
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  });

  const provider = (more: Record<string, unknown> = {}) => ({
    kind: 'openai-compatible' as const,
    base_url: 'https://acme.example/v1',
    models: [{ id: 'large' }, { id: 'small' }],
    ...more,
  });
  const put = (more: Record<string, unknown>) =>
    world.alice.call(routes.putProviderRoute, {
      params: { id: 'acme' },
      query: { force: 'true' },
      body: provider(more),
    });
  const stored = async (): Promise<readonly Project[]> => {
    const { items } = await world.client.list(PROJECTS, { namespace: world.namespace });
    return items.map((item) => ProjectKind.object.parse(item));
  };
  const conditionsOf = async () =>
    (await stored()).map(({ status }) => status?.conditions?.find(({ type }) => type === 'ModelsValid'));
  /** Resolves when every project says it; gives back how long that took. */
  const everyProject = async (status: string, reason: string, sinceMs: number): Promise<number> => {
    await until(
      `every project says ModelsValid=${status} ${reason}`,
      async () => {
        const conditions = await conditionsOf();
        return (
          conditions.length === PROJECT_COUNT &&
          conditions.every((one) => one?.status === status && one.reason === reason)
        );
      },
      { deadlineMs: 60_000, describe: () => undefined },
    );
    return performance.now() - sinceMs;
  };

  test(`of ${PROJECT_COUNT} projects follows the registry within 10 s, names the nearest model, and heals`, async (t) => {
    await world.alice.call(routes.createProviderRoute, { body: { id: 'acme', ...provider() } });
    for (const name of names) {
      const params = { namespace: world.namespace, name };
      const spec = { repository: { url: remote.urlOf('shop.git'), pollIntervalSeconds: 0 } };
      await world.alice.call(createProjectRoute, { params, body: { spec } });
    }
    await everyProject('True', 'AllKnown', 0);
    const steps: readonly (readonly [string, () => Promise<unknown>, string, string])[] = [
      ['disabled', () => put({ enabled: false }), 'False', 'ProviderDisabled'],
      ['enabled', () => put({}), 'True', 'AllKnown'],
      ['taken a model', () => put({ models: [{ id: 'small' }, { id: 'largo' }] }), 'False', 'UnknownModel'],
    ];
    for (const [what, change, status, reason] of steps) {
      const sinceMs = performance.now();
      await change();
      const tookMs = await everyProject(status, reason, sinceMs);
      t.diagnostic(`${what}: all ${PROJECT_COUNT} projects after ${Math.round(tookMs)} ms`);
      assert.ok(tookMs < WITHIN_MS, `${what}: ${Math.round(tookMs)} ms`);
    }
    const [condition] = await conditionsOf();
    assert.match(
      condition?.message ?? '',
      /^agents\/build\.md: provider acme lists no model large; nearest: acme\/largo$/,
    );
    await put({});
    await everyProject('True', 'AllKnown', 0);
  });

  test('A210 a flag that is toggled through the API is in the status of its project within 10 s', async (t) => {
    const sinceMs = performance.now();
    const params = { namespace: world.namespace, name: 'shop-0' };
    await world.alice.call(patchFeaturesRoute, { params, body: { llm_gateway: false } });
    await until('the status follows', async () => {
      const project = (await stored()).find(({ metadata }) => metadata.name === 'shop-0');
      const flag = project?.status?.features?.find(({ name }) => name === 'llm_gateway');
      const models = project?.status?.conditions?.find(({ type }) => type === 'ModelsValid');
      return flag?.enabled === false && flag.source === 'Project' && models?.reason === 'NotAllowed';
    });
    const tookMs = performance.now() - sinceMs;
    t.diagnostic(`the flag was in the status after ${Math.round(tookMs)} ms`);
    assert.ok(tookMs < WITHIN_MS);
  });
});
