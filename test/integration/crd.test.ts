// The generated CRDs on a real API server: served as generated, every CEL rule with its exact message, defaults, columns.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { customResourceDefinition, openApiSchemaOf } from '#schema/crd.ts';
import type { AnyKind } from '#schema/define-kind.ts';
import { isBranchName } from '#schema/primitives.ts';
import { celRulesOf, type StructuralNode } from '#schema/structural.ts';
import { type Apiserver, ensureKubeBinary, skipReason, startApiserver } from '#test/cluster/cluster.ts';
import { APPLY, type ApiAnswer, type ApiRequests, apiRequests, causesOf } from '#test/support/api-requests.ts';
import { KINDS } from '#tools/generators/crds.ts';
import { MINIMAL_SPECS, RULE_CASES, type SpecValues, TRANSITION_CASES } from './crd-cases.ts';

type KindName = keyof typeof MINIMAL_SPECS;
type Json = Record<string, unknown>;

const NAMESPACE = 'crd-test';
const kindOf = (name: string): AnyKind => {
  const kind = KINDS.find((candidate) => candidate.kind === name);
  assert.ok(kind !== undefined, `no kind ${name}`);
  return kind;
};

/** A spec of a kind with values set by path; a dot in a name does not occur. */
function specWith(kind: KindName, values: SpecValues): Json {
  const spec = structuredClone(MINIMAL_SPECS[kind]) as Json;
  for (const [path, value] of Object.entries(values)) {
    const names = path.split('.');
    const last = names.pop() ?? '';
    const parent = names.reduce<Json>((node, name) => {
      node[name] ??= {};
      return node[name] as Json;
    }, spec);
    parent[last] = value;
  }
  return spec;
}

describe('the CRDs on a real API server', { skip: skipReason('apiserver', 'integration') }, () => {
  let api: Apiserver;
  let requests: ApiRequests;

  const objectOf = (kind: KindName, name: string, spec: unknown): Json => ({
    apiVersion: 'beeuni.dev/v1alpha1',
    kind,
    metadata: { name, namespace: NAMESPACE },
    spec,
  });
  const collection = (kind: KindName) => `/apis/beeuni.dev/v1alpha1/namespaces/${NAMESPACE}/${kindOf(kind).plural}`;
  const create = (kind: KindName, name: string, spec: unknown, query = ''): Promise<ApiAnswer> =>
    requests.call({ method: 'POST', path: `${collection(kind)}${query}`, body: objectOf(kind, name, spec) });
  const tryCreate = (kind: KindName, spec: unknown) =>
    create(kind, 'probe', spec, '?dryRun=All&fieldValidation=Strict');

  const expectAccepted = (answer: ApiAnswer) => assert.ok(answer.status < 300, JSON.stringify(answer.body['message']));
  const expectRefused = (answer: ApiAnswer, field: string, message: string) => {
    assert.equal(answer.status, 422, JSON.stringify(answer.body));
    const causes = causesOf(answer);
    const found = causes.some((cause) => cause.field === field && cause.message.endsWith(`: ${message}`));
    assert.ok(found, `no cause ${field}: ${message} in ${JSON.stringify(causes)}`);
  };

  before(async () => {
    api = await startApiserver();
    requests = apiRequests(api);
    for (const kind of KINDS) {
      const crd = customResourceDefinition(kind);
      const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${crd.metadata.name}?fieldManager=test&fieldValidation=Strict`;
      expectAccepted(await requests.call({ method: 'PATCH', path, body: crd, contentType: APPLY }));
    }
    for (const kind of KINDS) await untilEstablished(kind);
    expectAccepted(
      await requests.call({ method: 'POST', path: '/api/v1/namespaces', body: { metadata: { name: NAMESPACE } } }),
    );
  });
  after(async () => {
    requests?.close();
    await api?.stop();
  });

  async function readCrd(kind: AnyKind): Promise<Json> {
    const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${kind.plural}.${kind.group}`;
    return (await requests.call({ method: 'GET', path })).body;
  }

  /** Waits at most 20 s until the kind is established and its paths are served. */
  async function untilEstablished(kind: AnyKind): Promise<void> {
    const deadline = performance.now() + 20_000;
    for (;;) {
      const conditions = ((await readCrd(kind))['status'] as Json | undefined)?.['conditions'] as Json[] | undefined;
      const established = conditions?.some(({ type, status }) => type === 'Established' && status === 'True');
      const path = `/apis/${kind.apiVersion}/${kind.plural}`;
      if (established && (await requests.call({ method: 'GET', path })).status === 200) return;
      assert.ok(performance.now() < deadline, `${kind.kind} is not established: ${JSON.stringify(conditions)}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  for (const kind of KINDS) {
    test(`K1 K2 the stored CRD of ${kind.kind} is the generated one, field for field`, async () => {
      const stored = await readCrd(kind);
      assert.deepEqual(stored['spec'], customResourceDefinition(kind).spec);
      const conditions = (stored['status'] as Json)['conditions'] as Json[];
      assert.deepEqual(conditions.map(({ type, status }) => `${type}=${status}`).sort(), [
        'Established=True',
        'NamesAccepted=True',
      ]);
    });

    test(`the served OpenAPI schema of ${kind.kind} has spec and status as generated`, async () => {
      const document = await publishedOpenApi(kind);
      const generated = openApiSchemaOf(kind)['properties'] as Record<string, StructuralNode>;
      for (const part of ['spec', 'status']) assert.deepEqual(withoutTypeUnion(document[part]), generated[part], part);
    });
  }

  /** Properties of a kind in `/openapi/v3`; the server publishes it some time after the CRD, so waits at most 20 s. */
  async function publishedOpenApi(kind: AnyKind): Promise<Record<string, StructuralNode>> {
    const deadline = performance.now() + 20_000;
    for (;;) {
      const { body } = await requests.call({ method: 'GET', path: `/openapi/v3/apis/${kind.apiVersion}` });
      const schemas = (body['components'] as Json | undefined)?.['schemas'] as
        | Record<string, StructuralNode>
        | undefined;
      const name = Object.keys(schemas ?? {}).find((key) => key.endsWith(`.${kind.kind}`));
      if (name !== undefined) return schemas?.[name]?.['properties'] as Record<string, StructuralNode>;
      assert.ok(performance.now() < deadline, `OpenAPI v3 has no ${kind.kind}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  test('every CEL rule of both kinds has a case', () => {
    const covered = new Set(
      [...RULE_CASES, ...TRANSITION_CASES].map(({ kind, at, message }) => `${kind} ${at}: ${message}`),
    );
    const rules = KINDS.flatMap((kind) =>
      celRulesOf(openApiSchemaOf(kind)).map(({ path, rule }) => `${kind.kind} ${path}: ${rule.message}`),
    );
    assert.ok(rules.length > 40, `only ${rules.length} rules were found`);
    assert.deepEqual(
      [...new Set(rules)].filter((rule) => !covered.has(rule)),
      [],
    );
    assert.deepEqual(
      [...covered].filter((rule) => !rules.includes(rule)),
      [],
    );
  });

  for (const { kind, at, message, field, accepted, refused } of RULE_CASES) {
    test(`${kind} ${at} refuses with "${message}"`, async () => {
      expectAccepted(await tryCreate(kind, specWith(kind, accepted)));
      const named = field ?? at.replaceAll('[]', '[0]');
      expectRefused(await tryCreate(kind, specWith(kind, refused)), named, message);
    });
  }

  for (const [index, { kind, message, field, from, accepted, refused }] of TRANSITION_CASES.entries()) {
    test(`K9 ${kind} refuses a change with "${message}"`, async () => {
      const name = `transition-${index}`;
      const created = await create(kind, name, specWith(kind, from));
      expectAccepted(created);
      const replace = (values: SpecValues) =>
        requests.call({
          method: 'PUT',
          path: `${collection(kind)}/${name}?dryRun=All`,
          body: { ...created.body, spec: specWith(kind, values) },
        });
      expectAccepted(await replace(accepted));
      for (const values of refused) expectRefused(await replace(values), field, message);
    });
  }

  test('branch names that git refuses are refused, and usual ones are not', async () => {
    const good = ['main', 'feature/x', 'beeuni/fix-login-1a2b3', 'v1.2', 'a_b-c', 'dépôt', '#1', 'a@b'];
    const bad = [
      'a..b',
      'a//b',
      'a/',
      'a.',
      'a.lock',
      'x.lock/y',
      '/a',
      '-a',
      '.a',
      'a/.b',
      'a b',
      'a~1',
      'a^',
      'a:b',
      'a?',
      'a*',
      'a[',
      'a\\b',
      'a@{1}',
      '@',
      'HEAD',
      'refs/heads/main',
      'a\u0007',
    ];
    for (const name of good) expectAccepted(await tryCreate('Session', specWith('Session', { 'branch.name': name })));
    for (const name of bad) {
      const answer = await tryCreate('Session', specWith('Session', { 'branch.name': name }));
      expectRefused(answer, 'spec.branch.name', 'must be a valid git branch name');
    }
    assert.deepEqual(
      good.filter((name) => !isBranchName(name)),
      [],
    );
    assert.deepEqual(bad.filter(isBranchName), []);
  });

  test('K3 names are DNS labels of at most 46 characters', async () => {
    const dryRun = '?dryRun=All';
    expectAccepted(await create('Project', 'a'.repeat(46), MINIMAL_SPECS.Project, dryRun));
    for (const name of ['a'.repeat(47), 'a.b']) {
      const answer = await create('Session', name, MINIMAL_SPECS.Session, dryRun);
      assert.equal(answer.status, 422, name);
      assert.ok(causesOf(answer).some(({ field }) => field === 'metadata.name'));
    }
  });

  for (const kind of KINDS) {
    test(`K7 the server and zod fill the same defaults into the smallest ${kind.kind}`, async () => {
      const name = kind.kind as KindName;
      const created = await create(name, 'minimal', MINIMAL_SPECS[name]);
      expectAccepted(created);
      assert.deepEqual(created.body['spec'], kind.spec.parse(MINIMAL_SPECS[name]));
      assert.deepEqual(kind.object.parse(created.body), {
        ...(kind.object.parse(created.body) as Json),
        spec: created.body['spec'],
      });
    });

    test(`zod and the server agree on every bound of ${kind.kind}`, async () => {
      const name = kind.kind as KindName;
      const cases = boundCases(openApiSchemaOf(kind));
      assert.ok(cases.length > 40, `only ${cases.length} bounds were found`);
      for (const { path, value } of cases) {
        const spec = specWith(name, { [path]: value });
        const answer = await tryCreate(name, spec);
        assert.ok(
          answer.status === 422 || answer.status === 400,
          `${path} = ${JSON.stringify(value)}: ${answer.status}`,
        );
        assert.equal(kind.spec.safeParse(spec).success, false, `zod takes ${path} = ${JSON.stringify(value)}`);
      }
    });
  }

  test('the columns of Project and Session are those that kubectl prints', async () => {
    const columnsOf = async (kind: KindName) => {
      const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io';
      const { body } = await requests.call({ method: 'GET', path: collection(kind), accept });
      const definitions = (body['columnDefinitions'] ?? []) as { name: string; priority: number }[];
      const named = (priority: number) =>
        definitions.filter((column) => column.priority === priority).map((column) => column.name);
      return { narrow: named(0).join(' '), wide: named(1).join(' ') };
    };
    assert.deepEqual(await columnsOf('Project'), {
      narrow: 'Name Ready Harness Model Release Running Age',
      wide: 'Sessions Commit Reason',
    });
    assert.deepEqual(await columnsOf('Session'), {
      narrow: 'Name Harness Phase Ready Activity Model Age',
      wide: 'Project Agent Branch Pod Node Release Reason',
    });
  });

  describe('kubectl', () => {
    const kubectl = async (args: readonly string[], input?: unknown): Promise<string> => {
      const kube = await ensureKubeBinary(() => {});
      const running = promisify(execFile)(kube, [
        'kubectl',
        '--kubeconfig',
        api.kubeconfigPath,
        '-n',
        NAMESPACE,
        ...args,
      ]);
      running.child.stdin?.end(input === undefined ? '' : JSON.stringify(input));
      return running.then(
        ({ stdout }) => stdout,
        (error: { stderr: string }) => error.stderr,
      );
    };
    const refusals: readonly [kind: KindName, name: string, spec: SpecValues, text: string][] = [
      [
        'Session',
        't1',
        { harness: 'pi' },
        'Session in version "v1alpha1" cannot be handled as a Session: strict decoding error: unknown field "spec.harness"',
      ],
      [
        'Session',
        't1',
        { mode: 'Task' },
        'The Session "t1" is invalid: spec.prompt: Invalid value: "object": spec.prompt is required when spec.mode is Task',
      ],
      [
        'Project',
        'p1',
        { egress: { mode: 'AllowList', allow: [{ cidr: '203.0.113.9/24', ports: [{ port: 443 }] }] } },
        'The Project "p1" is invalid: spec.egress.allow[0].cidr: Invalid value: "string": must be a network in canonical CIDR form, for example 203.0.113.0/24',
      ],
    ];
    for (const [kind, name, values, text] of refusals) {
      test(`apply --dry-run=server says: ${text}`, async () => {
        const printed = await kubectl(
          ['apply', '--dry-run=server', '-f', '-'],
          objectOf(kind, name, specWith(kind, values)),
        );
        assert.ok(printed.includes(text), printed);
      });
    }

    test('the examples are accepted', async () => {
      const kube = await ensureKubeBinary(() => {});
      for (const file of ['project.yaml', 'session.yaml']) {
        const path = join(import.meta.dirname, '../../examples', file);
        const args = [
          'kubectl',
          '--kubeconfig',
          api.kubeconfigPath,
          '-n',
          NAMESPACE,
          'apply',
          '--dry-run=server',
          '-f',
          path,
        ];
        const { stdout } = await promisify(execFile)(kube, args);
        assert.match(stdout, / created \(server dry run\)/);
      }
    });

    test('apply of a changed prompt says that it is immutable and what to do', async () => {
      expectAccepted(await create('Session', 'fix-login', specWith('Session', { prompt: 'go' })));
      const changed = objectOf('Session', 'fix-login', specWith('Session', { prompt: 'stop' }));
      const printed = await kubectl(
        ['apply', '--server-side', '--force-conflicts', '--dry-run=server', '-f', '-'],
        changed,
      );
      const text =
        'The Session "fix-login" is invalid: spec.prompt: Invalid value: "object": spec.prompt is immutable; send further prompts through the REST API';
      assert.ok(printed.includes(text), printed);
    });

    test('K2 the category and both short names list the kinds', async () => {
      const status = {
        phase: 'Running',
        harness: { id: 'opencode', reason: 'default' },
        conditions: [
          { type: 'Ready', status: 'True', reason: 'Ready', message: '', lastTransitionTime: '2026-11-30T12:41:07Z' },
        ],
      };
      expectAccepted(await create('Session', 'shown', MINIMAL_SPECS.Session));
      const path = `${collection('Session')}/shown/status`;
      expectAccepted(
        await requests.call({ method: 'PATCH', path, body: { status }, contentType: 'application/merge-patch+json' }),
      );
      expectAccepted(await create('Project', 'shown', MINIMAL_SPECS.Project));
      const listed = await kubectl(['get', 'beeuni']);
      assert.match(listed, /^project\.beeuni\.dev\/shown /m);
      assert.match(listed, /^session\.beeuni\.dev\/shown +opencode +Running +True /m);
      assert.match(await kubectl(['get', 'bproj', 'shown']), /^NAME +READY +HARNESS +MODEL +RELEASE +RUNNING +AGE\n/);
      assert.match(
        await kubectl(['get', 'bsess', 'shown', '-o', 'wide']),
        /AGE +PROJECT +AGENT +BRANCH +POD +NODE +RELEASE +REASON\n/,
      );
    });

    test('explain prints what spec.mode does, with its values', async () => {
      const printed = await kubectl(['explain', 'session.spec.mode']);
      assert.match(
        printed.replaceAll(/\s+/g, ' '),
        /Interactive Task .*Interactive stays for further prompts; Task ends with the turn of spec\.prompt\. Immutable\./,
      );
    });
  });
});

/** A published schema without the `anyOf: [integer, string]` that the server itself adds to int-or-string fields. */
function withoutTypeUnion(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutTypeUnion);
  if (typeof value !== 'object' || value === null) return value;
  const isUnion = 'x-kubernetes-int-or-string' in value;
  const kept = Object.entries(value).filter(([key]) => !(isUnion && key === 'anyOf'));
  return Object.fromEntries(kept.map(([key, child]) => [key, withoutTypeUnion(child)]));
}

/** For every leaf of `spec` that no list holds: values just outside its bounds, and one of another type. */
function boundCases(root: StructuralNode): readonly Readonly<{ path: string; value: unknown }>[] {
  const outside = (node: StructuralNode): unknown[] => {
    if (node['enum'] !== undefined) return ['Nonsense', 7];
    switch (node['type']) {
      case 'string':
        return ['a'.repeat(Number(node['maxLength']) + 1), 7, ...(node['pattern'] === undefined ? [] : ['not valid!'])];
      case 'integer':
        return [Number(node['minimum']) - 1, Number(node['maximum']) + 1, 'many', 1.5];
      case 'boolean':
        return ['true'];
      case 'array':
        return [Array.from({ length: Number(node['maxItems']) + 1 }, (_, index) => `a${index}/b`), 'a'];
      case 'object':
        return ['a', 7];
      default:
        return ['-1', '1Zi', true];
    }
  };
  const walk = (node: StructuralNode, path: string): { path: string; value: unknown }[] => [
    ...(path === '' ? [] : outside(node).map((value) => ({ path, value }))),
    ...Object.entries((node['properties'] ?? {}) as Record<string, StructuralNode>).flatMap(([name, child]) =>
      walk(child, path === '' ? name : `${path}.${name}`),
    ),
  ];
  const spec = (root['properties'] as Record<string, StructuralNode>)['spec'];
  return spec === undefined ? [] : walk(spec, '');
}
