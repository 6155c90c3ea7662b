// The statements of the session contract against the names of the tests: each has a test whose name begins with its id, and
// what both harnesses have to do is a case of the contract suite, which runs on both. Each list of gaps is exact. This finds
// what nobody claims to prove; the tests themselves are beside the code, in test/harness/contract and in test/integration.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

const root = new URL('../../', import.meta.url).pathname;
const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.ts'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter(
    (file) => (file.endsWith('.test.ts') || file.startsWith('test/harness/contract/')) && existsSync(root + file),
  );

const TEST = /\b(?:it|test|describe)(?:\.\w+)?\(\s*(['"`])(.*?)\1/gs;
const IDS = /^(?:[A-Z]{1,2}\d+(?:,? (?:and |to )?)?)+/;

/** Ids at the beginning of the names of the tests in these files. */
const idsIn = (chosen: readonly string[]): ReadonlySet<string> =>
  new Set(
    chosen.flatMap((file) =>
      [...readFileSync(root + file, 'utf8').matchAll(TEST)].flatMap(
        ([, , name = '']) => IDS.exec(name)?.[0].match(/[A-Z]{1,2}\d+/g) ?? [],
      ),
    ),
  );

const numbers = (letter: string, text: string): readonly string[] =>
  text.split(' ').flatMap((part) => {
    const [from = 0, to = from] = part.split('-').map(Number);
    return Array.from({ length: to - from + 1 }, (_, at) => `${letter}${from + at}`);
  });

/** What holds for a session in any case. */
const ONCE = numbers('A', '1-10 26 30-31 34 38-64 69-72 156 179 207 212 220 237');
/** What a client or a project may rely on with either harness, so that one case has to show it on both. */
const ON_BOTH = numbers('A', '1-4 10 26 30 31 34 38-45 47-49 52-55 59 61-64 69-72 179 212 220 237');
const JOINS = numbers('J', '1-18');

/** Configuration releases are not built (docs/decisions/0012), and neither is the third harness. */
const WITHOUT_RELEASES = ['A46', 'A58', 'A60', 'A156'];
const LATER_JOINS = ['J4', 'J8', 'J10', 'J11', 'J15', 'J16'];

test('every statement of the contract has a test of its name, but those on the list of gaps', () => {
  const named = idsIn(files);
  assert.ok(named.size > 300, `only ${named.size} ids were seen`);
  assert.deepEqual(
    ONCE.filter((id) => !named.has(id)),
    WITHOUT_RELEASES,
  );
  assert.deepEqual(
    JOINS.filter((id) => !named.has(id)),
    LATER_JOINS,
  );
});

test('what both harnesses have to do is a case of the suite that runs on both', () => {
  const named = idsIn(files.filter((file) => file.startsWith('test/harness/contract/')));
  assert.deepEqual(
    ON_BOTH.filter((id) => !named.has(id)),
    [],
  );
});
