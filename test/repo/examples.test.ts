// Every example parses: objects by their kinds, strictly, and the sample repository by the manifest validator.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseYaml } from '#base/yaml.ts';
import { validateManifest } from '#schema/manifest/validate.ts';
import { ProjectKind } from '#schema/resources/project.ts';
import { SessionKind } from '#schema/resources/session.ts';
import { unknownPaths } from '#schema/unknown-paths.ts';
import { ROOT } from '#tools/generate.ts';

type Json = Record<string, unknown>;
const EXAMPLES = join(ROOT, 'examples');
const REPOSITORY = join(EXAMPLES, 'repository');
const KINDS = { Project: ProjectKind, Session: SessionKind } as const;

function documentsOf(file: string): readonly Json[] {
  const parts = readFileSync(join(EXAMPLES, file), 'utf8').split(/^---$/m);
  return parts.map((part) => {
    const { value, problems } = parseYaml(part);
    assert.deepEqual(problems, [], file);
    return value as Json;
  });
}

test('each YAML file of examples/ holds objects of our kinds without unknown fields', () => {
  const files = readdirSync(EXAMPLES).filter((name) => name.endsWith('.yaml'));
  assert.deepEqual(files, ['project.yaml', 'session.yaml']);
  for (const object of files.flatMap(documentsOf)) {
    const kind = KINDS[object['kind'] as keyof typeof KINDS];
    assert.ok(kind !== undefined, String(object['kind']));
    assert.equal(object['apiVersion'], kind.apiVersion);
    assert.match(String((object['metadata'] as Json)['name']), /^[a-z0-9-]{1,46}$/);
    const spec = kind.spec.parse(object['spec']);
    assert.deepEqual(unknownPaths(object['spec'], spec), [], String(object['kind']));
  }
});

test('the sessions of examples/ belong to the project of examples/', () => {
  const [project] = documentsOf('project.yaml');
  assert.ok(project !== undefined);
  const name = (project['metadata'] as Json)['name'];
  const sessions = documentsOf('session.yaml');
  assert.equal(sessions.length, 2);
  for (const session of sessions) assert.deepEqual((session['spec'] as Json)['projectRef'], { name });
});

test('the sample repository is valid without a warning, and names no model that an installation may lack', () => {
  const read = (path: string) => {
    const file = join(REPOSITORY, path);
    return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
  };
  const verdict = validateManifest({ path: 'beeuni.yaml', text: read('beeuni.yaml'), readFile: read, parseYaml });
  assert.deepEqual([verdict.reason, verdict.errors, verdict.warnings], ['Valid', [], []]);
  assert.deepEqual(verdict.manifest?.models, []);
  assert.deepEqual(
    verdict.manifest?.agents.map(({ name }) => name),
    ['dev'],
  );
  assert.ok((verdict.manifest?.agents[0]?.prompt.length ?? 0) > 100);
});

test('A128 each skill of the sample repository has the name of its folder and a description', () => {
  const skills = readdirSync(join(REPOSITORY, 'skills'));
  assert.ok(skills.length > 0);
  for (const skill of skills) {
    const text = readFileSync(join(REPOSITORY, 'skills', skill, 'SKILL.md'), 'utf8');
    const frontmatter = parseYaml(/^---\n([\s\S]*?)\n---\n/.exec(text)?.[1] ?? '').value as Json;
    assert.equal(frontmatter['name'], skill);
    assert.ok(String(frontmatter['description']).length > 10);
  }
});
