// `make bench`: runs the programs of test/bench, one after the other, each beside its floor and its peers.
import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';

const root = new URL('..', import.meta.url).pathname;
const wanted = process.argv.slice(2);
if (wanted.includes('--help')) {
  console.log('Usage: node tools/bench.ts [name…]\n\nRuns the named programs of test/bench, or all of them.');
  process.exit(0);
}
const programs = globSync('test/bench/*.ts', { cwd: root }).sort();
const chosen = programs.filter((path) => wanted.length === 0 || wanted.some((name) => path.endsWith(`/${name}.ts`)));
if (chosen.length === 0) {
  console.error(`no such program; there are: ${programs.map((path) => path.replace(/^.*\/|\.ts$/g, '')).join(', ')}`);
  process.exit(2);
}
let failed = 0;
for (const path of chosen) {
  console.log(`\n== ${path}`);
  if (spawnSync(process.execPath, [path], { cwd: root, stdio: 'inherit' }).status !== 0) failed += 1;
}
process.exit(failed === 0 ? 0 : 1);
