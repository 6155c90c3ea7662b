// Which packages of Pi a session gets: of the image, of its project, and which entry counts where both name one.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { createLogger } from '#base/log.ts';
import { findPackages } from './packages.ts';

describe('findPackages', () => {
  const root = mkdtempSync(join(tmpdir(), 'beeuni-packages-'));
  after(() => rmSync(root, { recursive: true, force: true }));
  const image = join(root, 'image');
  const copy = join(root, 'copy');
  const logged: string[] = [];
  const log = createLogger({ level: 'error', write: (line) => logged.push(line) });
  for (const [name, version] of [
    ['plan', '1.2.3'],
    ['@bees/todo', '2.0.0'],
  ] as const) {
    mkdirSync(join(image, 'node_modules', name), { recursive: true });
    writeFileSync(join(image, 'node_modules', name, 'package.json'), JSON.stringify({ name, version }));
  }
  mkdirSync(join(image, 'house'));
  mkdirSync(join(copy, 'packages/own'), { recursive: true });
  const settings = (value: unknown): void => writeFileSync(join(image, 'settings.json'), JSON.stringify(value));
  const find = (...sources: string[]) =>
    findPackages({ harness: 'pi', piPackages: sources.map((source) => ({ source })) }, copy, log, image).map(
      ({ source, directory }) => [source, directory],
    );
  const todo = join(image, 'node_modules/@bees/todo');
  const plan = join(image, 'node_modules/plan');

  it('A77 A78 takes a pinned package from the image where it has this very version, and nothing else', () => {
    assert.deepEqual(
      find(
        'npm:plan@1.2.3',
        'npm:plan@1.2.4',
        'npm:@bees/todo@2.0.0',
        'npm:gone@1.0.0',
        'npm:../plan@1.2.3',
        './packages/own',
      ),
      [
        ['npm:plan@1.2.3', plan],
        ['npm:plan@1.2.4', null],
        ['npm:@bees/todo@2.0.0', todo],
        ['npm:gone@1.0.0', null],
        ['npm:../plan@1.2.3', null],
        ['./packages/own', join(copy, 'packages/own')],
      ],
    );
  });

  it('A78 gives every session what the settings of the image name, unless the project names the same package', () => {
    settings({
      theme: 'dark',
      packages: ['npm:plan@1.2.3', { source: 'npm:@bees/todo@2.0.0', skills: [] }, './house', './../copy'],
    });
    const house = ['./house', join(image, 'house')];
    assert.deepEqual(find(), [['npm:plan@1.2.3', plan], ['npm:@bees/todo@2.0.0', todo], house, ['./../copy', null]]);
    // An entry of the project that cannot be served takes its place too: the project asked for another version.
    assert.deepEqual(find('npm:plan@9.0.0'), [
      ['npm:@bees/todo@2.0.0', todo],
      house,
      ['./../copy', null],
      ['npm:plan@9.0.0', null],
    ]);
    assert.deepEqual(findPackages({ harness: 'opencode', piPackages: [] }, copy, log, image), []);
  });

  it('A78 leaves out the packages of settings that cannot be read, and says so', () => {
    for (const value of [{ packages: 'all' }, { packages: [7] }]) {
      settings(value);
      assert.deepEqual(find('./packages/own'), [['./packages/own', join(copy, 'packages/own')]]);
    }
    assert.equal(logged.length, 2);
    assert.match(logged[0] ?? '', /packages of the image are left out/);
  });
});
