// What of a project's folder for Pi loads, and what is reported instead.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { findProjectFiles } from './project-files.ts';

describe('findProjectFiles', () => {
  let folder: string;
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  const names = (paths: readonly string[]): readonly string[] => paths.map((path) => relative(folder, path));

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'beeuni-pi-folder-'));
    for (const path of ['extensions/b.ts', 'extensions/a.mjs', 'extensions/notes.md', 'extensions/deep/c.ts'])
      write(path, '');
    for (const path of ['prompts/hello.md', 'prompts/deep/no.md', 'skills/one/SKILL.md', 'pack/prompts/packed.md'])
      write(path, '');
    mkdirSync(join(folder, 'skills/empty'), { recursive: true });
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  it('A70 A80 finds extensions and prompts of the folder itself, not of those below, and skills', () => {
    const found = findProjectFiles(folder, []);
    assert.deepEqual(names(found.extensions), ['extensions/a.mjs', 'extensions/b.ts']);
    assert.deepEqual(names(found.prompts), ['prompts/hello.md']);
    assert.deepEqual(names(found.skills), ['skills/one/SKILL.md']);
    assert.deepEqual(found.failed, []);
  });

  it('A79 takes only compaction and local packages from settings.json', () => {
    const settings = {
      compaction: { enabled: false, reserveTokens: 5, keepRecentTokens: -1, other: 1 },
      retry: { enabled: true },
      packages: ['./pack', '../out', './none', 'npm:x@1.0.0'],
    };
    write('settings.json', JSON.stringify(settings));
    const found = findProjectFiles(folder, []);
    assert.deepEqual(found.compaction, { enabled: false, reserveTokens: 5 });
    assert.deepEqual(names(found.prompts), ['prompts/hello.md', 'pack/prompts/packed.md']);
    assert.deepEqual(
      found.failed.map(({ source }) => source),
      ['../out', './none', 'npm:x@1.0.0'],
    );
  });

  it('A77 reports settings that cannot be read, and loads the rest', () => {
    write('settings.json', '{half');
    const found = findProjectFiles(folder, []);
    assert.deepEqual(found.failed, [{ source: 'settings.json', reason: 'it is not JSON' }]);
    assert.equal(found.extensions.length, 2);
    assert.deepEqual(findProjectFiles(null, []).extensions, []);
  });

  it('A72 A75 A77 loads of a package what the entry lists, else what it declares, else the usual folders', () => {
    write('pi-tools/package.json', '{"pi":{"extensions":["./src/*.ts"],"prompts":["./texts"]}}');
    for (const path of [
      'src/one.ts',
      'src/two.ts',
      'src/notes.md',
      'texts/a.md',
      'skills/deep/SKILL.md',
      'extensions/no.ts',
    ])
      write(`pi-tools/${path}`, '');
    const directory = join(folder, 'pi-tools');
    const whole = findProjectFiles(null, [{ source: './pi-tools', directory }]);
    assert.deepEqual(names(whole.extensions), ['pi-tools/src/one.ts', 'pi-tools/src/two.ts']);
    assert.deepEqual(names(whole.prompts), ['pi-tools/texts/a.md']);
    assert.deepEqual(names(whole.skills), ['pi-tools/skills/deep/SKILL.md']);
    const part = findProjectFiles(null, [
      { source: './pi-tools', directory, extensions: ['src/two.ts', '../../*'], prompts: [] },
    ]);
    assert.deepEqual([names(part.extensions), part.prompts], [['pi-tools/src/two.ts'], []]);
    const none = findProjectFiles(null, [{ source: 'npm:left-pad@1.0.0', directory: null }]);
    assert.match(none.failed[0]?.reason ?? '', /nothing is installed/);
  });
});
