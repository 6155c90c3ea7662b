// The chart's values.yaml repeats the defaults of schema/values.ts, for its comments.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseYaml } from '#base/yaml.ts';
import { ValuesSchema } from '#schema/values.ts';
import { textInTree } from '#tools/generate.ts';

const text = (await textInTree('charts/beeuni/values.yaml')) ?? '';

/** Every key of a JSON value, as a dotted path; lists and free-form maps count as leaves of their parent. */
function leaves(value: unknown, path = ''): readonly string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || Object.keys(value).length === 0)
    return [path];
  return Object.entries(value).flatMap(([key, child]) => leaves(child, path === '' ? key : `${path}.${key}`));
}

test('K30 values.yaml holds exactly the defaults of the schema', () => {
  const { value, problems } = parseYaml(text);
  assert.deepEqual(problems, []);
  assert.deepEqual(ValuesSchema.parse(value), ValuesSchema.parse({}));
  assert.deepEqual([...leaves(value)].sort(), [...leaves(ValuesSchema.parse({}))].sort());
});

test('K30 values.yaml says what each key does in the line above it or above its map', () => {
  const lines = text.split('\n');
  const indentOf = (line: string) => line.length - line.trimStart().length;
  const isDocumented = (index: number): boolean => {
    if (/^ *# \S/.test(lines[index - 1] ?? '')) return true;
    const indent = indentOf(lines[index] ?? '');
    const parent = lines.findLastIndex((line, at) => at < index && line.trim() !== '' && indentOf(line) < indent);
    return parent >= 0 && isDocumented(parent);
  };
  const keys = lines.flatMap((line, index) => (/^ *[A-Za-z_]+: *\S/.test(line) ? [index] : []));
  assert.ok(keys.length > 100, `only ${keys.length} keys were found`);
  assert.deepEqual(
    keys.filter((index) => !isDocumented(index)).map((index) => lines[index]),
    [],
  );
});

test('K30 an unknown value is refused at every level, and false and 0 are kept', () => {
  for (const path of ['nonsense', 'sandbox.nonsense', 'sandbox.network.dns.nonsense', 'features.pi_harness.nonsense']) {
    const value = path.split('.').reduceRight<unknown>((inner, key) => ({ [key]: inner }), 1);
    assert.equal(ValuesSchema.safeParse(value).success, false, path);
  }
  const values = ValuesSchema.parse({
    features: { llm_gateway: { default: false, available: false } },
    limits: { maxRunningSessions: 0 },
    sandbox: { drainSeconds: 0, runAsUser: null },
    crds: { install: false },
  });
  assert.deepEqual(values.features.llm_gateway, { default: false, available: false });
  assert.deepEqual(
    [values.limits.maxRunningSessions, values.sandbox.drainSeconds, values.sandbox.runAsUser, values.crds.install],
    [0, 0, null, false],
  );
});
