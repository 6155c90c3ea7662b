// What can be checked in a document is checked: links, make targets, files that are named, decision numbers.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

const root = new URL('../../', import.meta.url).pathname;
const documents = execFileSync('git', ['ls-files', '*.md'], { cwd: root, encoding: 'utf8' })
  .split('\n')
  .filter((path) => path !== '' && existsSync(root + path));
const textOf = (path: string): string => readFileSync(root + path, 'utf8');

test('every relative link of a document leads to a file', () => {
  assert.ok(documents.length > 10, `only ${documents.length} documents`);
  const broken = documents.flatMap((path) =>
    [...textOf(path).matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)]
      .map((match) => match[1] ?? '')
      .filter((link) => !existsSync(join(root, dirname(path), link)))
      .map((link) => `${path}: ${link}`),
  );
  assert.deepEqual(broken, []);
});

test('every make target that a document names exists', () => {
  const targets = new Set([...textOf('Makefile').matchAll(/^([a-z-]+):/gm)].map((match) => match[1]));
  const unknown = documents.flatMap((path) =>
    [...textOf(path).matchAll(/(?:`|^\$ )make ([a-z-]+)/gm)]
      .map((match) => match[1] ?? '')
      .filter((target) => !targets.has(target))
      .map((target) => `${path}: make ${target}`),
  );
  assert.deepEqual(unknown, []);
});

test('every file that ARCHITECTURE.md, AGENTS.md and README.md name exists', () => {
  const missing = ['ARCHITECTURE.md', 'AGENTS.md', 'README.md'].flatMap((path) =>
    [...textOf(path).matchAll(/`([a-z][\w.-]*\/[\w./-]*)`/g)]
      .map((match) => (match[1] ?? '').replace(/\/$/, ''))
      .filter((named) => !/…|<|\*/.test(named) && !existsSync(root + named))
      .filter((named) => !['provider/model', 'namespace/name', 'host', 'store', 'harness'].includes(named))
      .map((named) => `${path}: ${named}`),
  );
  assert.deepEqual(missing, []);
});

test('decisions are numbered without gaps and say context, decision, what was given up and what would change it', () => {
  const decisions = documents.filter((path) => path.startsWith('docs/decisions/')).sort();
  assert.deepEqual(
    decisions.map((path) => Number(/(\d{4})-/.exec(path)?.[1])),
    decisions.map((_, index) => index + 1),
  );
  for (const path of decisions.filter((one) => !one.includes('dependencies')))
    for (const word of ['**Context.**', '**Decision.**', '**Given up.**', '**Would change our mind.**'])
      assert.ok(textOf(path).includes(word), `${path} lacks ${word}`);
});

test('every decision that the code cites exists', () => {
  const cited = execFileSync('git', ['grep', '-hoE', 'docs/decisions/[0-9]{4}', '--', '*.ts', '*.go', '*.md'], {
    cwd: root,
    encoding: 'utf8',
  })
    .split('\n')
    .filter((line) => line !== '');
  const numbers = new Set(documents.map((path) => /docs\/decisions\/\d{4}/.exec(path)?.[0]));
  assert.ok(cited.length > 3);
  assert.deepEqual(
    cited.filter((line) => !numbers.has(line)),
    [],
  );
});
