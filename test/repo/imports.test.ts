// Walks every source file of ours and judges its imports by tools/rooms.ts; proves first that a planted violation is seen.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { roomOf, valueImports, violationsOf } from '#tools/check-imports.ts';
import { ROOMS } from '#tools/rooms.ts';

const root = new URL('../../', import.meta.url).pathname;
const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.ts'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => file !== '' && existsSync(root + file));

const planted: readonly (readonly [file: string, text: string, rule: RegExp])[] = [
  ['schema/wire/x.ts', "import fs from 'node:fs';", /may not import this module/],
  ['schema/wire/x.ts', "import { y } from '#base/errors.ts';", /may not import base/],
  ['schema/wire/x.ts', 'export const now = () => Date.now();', /no clock/],
  ['operator/session/plan.ts', "import { plan } from '#operator/project/plan.ts';", /may not import operator\/project/],
  ['operator/session/plan.ts', "import { client } from '#kube/client.ts';", /pure file takes values/],
  ['operator/main.ts', "import { x } from '#controlplane/server.ts';", /may not import controlplane/],
  ['controlplane/server.ts', "import { x } from '#operator/main.ts';", /may not import operator/],
  ['controlplane/app/x.ts', "import pg from 'pg';", /may not import this package/],
  ['controlplane/gateway/x.ts', "import { x } from '#controlplane/git/mirror.ts';", /may not import controlplane\/git/],
  ['controlplane/git/x.ts', 'export const token = process.env.TOKEN;', /process\.env/],
  [
    'sandbox-image/daemon/host/x.ts',
    "export const a = await import('#daemon/harness/opencode/adapter.ts');",
    /may not import/,
  ],
  ['sandbox-image/daemon/harness/opencode/x.ts', "import { x } from '../pi/adapter.ts';", /may not import/],
  ['kube/names.ts', "import { x } from './client.ts';", /may not import|pure/],
  ['base/x.ts', "new Worker(new URL('../operator/main.ts', import.meta.url));", /may not import operator/],
  ['nowhere/x.ts', 'export {};', /every file is in one room/],
];

for (const [file, text, rule] of planted) {
  test(`a planted violation is reported: ${file}: ${text}`, () => {
    const found = violationsOf(file, text);
    assert.ok(
      found.some((violation) => rule.test(violation.rule)),
      JSON.stringify(found),
    );
  });
}

test('a type import crosses any wall, a value import does not', () => {
  assert.deepEqual(violationsOf('schema/wire/x.ts', "import type { A } from '#base/errors.ts';"), []);
  assert.deepEqual(valueImports("import { type A, b } from './x.ts';\nexport * from './y.ts';"), ['./x.ts', './y.ts']);
});

test('every source file is in one room and every import is allowed', () => {
  assert.ok(files.length > 60, `only ${files.length} files were seen`);
  const violations = files.flatMap((file) => violationsOf(file, readFileSync(root + file, 'utf8')));
  assert.deepEqual(violations, []);
});

test('every room but those still to be built has files', () => {
  const rooms = new Set(files.map((file) => roomOf(file)?.name));
  const empty = ROOMS.map((room) => room.name).filter((name) => !rooms.has(name));
  assert.deepEqual(empty, ['plugin-sdk']);
});
