// The chart: lint, golden renders, the same defaults in values.yaml and in the schema, refusals with words, and every
// container's environment read by that process's own configuration.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { before, describe, test } from 'node:test';
import { parse, parseAllDocuments } from 'yaml';
import { CONTROL_PLANE_ENVIRONMENT } from '#controlplane/config.ts';
import { OPERATOR_ENVIRONMENT } from '#operator/config.ts';
import { InstallationSchema } from '#schema/installation.ts';
import { ValuesSchema } from '#schema/values.ts';
import { ensureKubectlHelm } from '#tools/kubectl-helm.ts';

const chart = new URL('../../charts/beeuni', import.meta.url).pathname;
const KEY = '--set=controlPlane.encryptionKey.existingSecret=beeuni-encryption-key';

type Container = { env?: { name: string; value?: string }[] };
type Rendered = {
  kind: string;
  metadata: { name: string };
  data?: Record<string, string>;
  spec?: { template?: { spec?: { containers: Container[]; enableServiceLinks?: boolean } } };
};

describe('the chart', () => {
  let helm = '';
  before(async () => {
    helm = (await ensureKubectlHelm()).helm;
  });
  const run = (...args: string[]): string =>
    execFileSync(helm, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  const template = (...args: string[]): string =>
    run('template', 'beeuni', chart, '-n', 'beeuni-system', '--set=crds.install=false', ...args);
  const objects = (text: string): Rendered[] =>
    parseAllDocuments(text)
      .map((document) => document.toJS() as Rendered | null)
      .filter((object): object is Rendered => object !== null);
  const refusal = (...args: string[]): string => {
    try {
      template(...args);
    } catch (error) {
      return String((error as { stderr?: string }).stderr);
    }
    return assert.fail('helm accepted it');
  };

  test('passes helm lint', () => {
    assert.match(run('lint', chart, KEY), /0 chart\(s\) failed/);
  });

  test('K30 has in values.yaml the defaults of the schema and a comment above each key', () => {
    const text = readFileSync(`${chart}/values.yaml`, 'utf8');
    const written = ValuesSchema.parse(parse(text));
    assert.deepEqual(written, ValuesSchema.parse({}));
    assert.deepEqual(parse(text), JSON.parse(JSON.stringify(ValuesSchema.parse({}))));
  });

  for (const [name, args] of [
    ['default', [KEY]],
    [
      'namespaced',
      [
        KEY,
        '--set=watchNamespaces={team-a,team-b}',
        '--set=secretAccess.namespaces={team-a}',
        '--set=namespaces.create={team-a}',
      ],
    ],
    [
      'external-postgres',
      [
        KEY,
        '--set=postgres.mode=external',
        '--set=postgres.external.existingSecret=db',
        '--set=controlPlane.replicas=2',
      ],
    ],
    [
      'everything-off',
      [
        KEY,
        '--set=rbac.create=false',
        '--set=policy.install=false',
        '--set=networkPolicy.enabled=false',
        '--set=operator.replicas=1',
      ],
    ],
  ] as const) {
    test(`renders ${name} as recorded`, (t) => {
      t.assert.fileSnapshot(template(...args), `${import.meta.dirname}/golden/chart-${name}.yaml`, {
        serializers: [(value) => value as string],
      });
    });
  }

  test('refuses values that cannot work, with words', () => {
    assert.match(refusal(), /encryptionKey\.existingSecret is required: kubectl create secret/);
    assert.match(refusal(KEY, '--set=controlPlane.replicas=2'), /needs postgres\.mode external/);
    assert.match(refusal(KEY, '--set=postgres.mode=external'), /postgres\.external\.existingSecret/);
    assert.match(refusal(KEY, '--set=operator.replcas=2'), /replcas/);
    assert.match(refusal(KEY, '--set-json=controlPlane.extraEnv=[{"name":"PATH","value":"x"}]'), /extraEnv/);
    assert.match(refusal(KEY, '--set=sandbox.network.enforcementProbe=maybe'), /enforcementProbe/);
  });

  test('renders false and 0 where the default is truthy', () => {
    const text = template(
      KEY,
      '--set=controlPlane.git.pollIntervalSeconds=0',
      '--set=controlPlane.statusSummaries=false',
      '--set=metrics.projectLabels=true',
      '--set=features.llm_gateway.default=false',
    );
    assert.match(text, /BEEUNI_GIT_POLL_INTERVAL_SECONDS, value: "0"/);
    assert.match(text, /BEEUNI_STATUS_SUMMARIES, value: "false"/);
    assert.match(text, /BEEUNI_METRICS_PROJECT_LABELS, value: "true"/);
    assert.match(text, /"llm_gateway\\":\{\\"available\\":true,\\"default\\":false/);
  });

  test('gives each process an environment that its own configuration knows, and no service links', () => {
    const rendered = objects(
      template(
        KEY,
        '--set=watchNamespaces={a}',
        '--set=controlPlane.git.allowedHosts={h}',
        '--set=controlPlane.envModel.baseUrl=https://m.example/v1',
        '--set=controlPlane.envModel.id=m',
        '--set-json=controlPlane.extraEnv=[{"name":"TEMPORALITY_COMPACTION_TAIL_BYTES","value":"1000"}]',
      ),
    );
    for (const [name, environment] of [
      ['beeuni-control-plane', CONTROL_PLANE_ENVIRONMENT],
      ['beeuni-operator', OPERATOR_ENVIRONMENT],
    ] as const) {
      const pod = rendered.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === name)?.spec?.template
        ?.spec;
      const env = pod?.containers[0]?.env ?? [];
      assert.ok(env.length > 5, `${name} has an environment`);
      const foreign = ['NODE_EXTRA_CA_CERTS', 'GIT_SSL_CAINFO'];
      const values = Object.fromEntries(
        env.filter((one) => !foreign.includes(one.name)).map((one) => [one.name, one.value ?? 'from-the-pod']),
      );
      assert.deepEqual(
        Object.keys(values).filter((key) => !(key in environment.shape)),
        [],
      );
      environment.parse(values);
      assert.equal(pod?.enableServiceLinks, false);
    }
    const document = rendered.find(({ metadata }) => metadata.name === 'beeuni-installation')?.data?.[
      'installation.json'
    ];
    InstallationSchema.parse(JSON.parse(String(document)));
  });
});
