// The one program of the daemon: it starts as the image starts it, and has nothing loaded that it does not need to listen.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';

const folder = mkdtempSync(join(tmpdir(), 'beeuni-bundle-'));
const main = join(folder, 'beeunid.mjs');
const env = { PATH: `${dirname(process.execPath)}:${process.env['PATH']}` };
const start = join(import.meta.dirname, 'daemon/start.sh');

before(() => void execFileSync(process.execPath, [join(import.meta.dirname, 'bundle.ts'), folder]));
after(() => rmSync(folder, { recursive: true, force: true }));

for (const harness of ['opencode', 'pi']) {
  test(`the program starts by the flags for ${harness} and says what its environment lacks`, () => {
    const { status, stderr } = spawnSync('sh', [start, main], {
      env: { ...env, BEEUNI_HARNESS: harness },
      encoding: 'utf8',
    });
    assert.equal(status, 2);
    assert.match(stderr, /BEEUNI_CONTROL_PLANE_URL: is required/);
  });
}

test('G24 before it listens, neither TLS nor what packages seldom use is loaded', () => {
  const listing = `process.on('exit', () => console.log(process.moduleLoadList.join('\\n'))); await import(process.argv[1])`;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', listing, main], {
    env,
    encoding: 'utf8',
  });
  assert.match(stdout, /^NativeModule http$/m);
  assert.doesNotMatch(stdout, /^NativeModule (https|http2|tls|zlib|internal\/deps\/undici\/undici)$/m);
});
