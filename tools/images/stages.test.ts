// How our Dockerfiles part, and that both real ones can be built without Docker.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { copiedSources } from './inputs.ts';
import { splitStages } from './stages.ts';

const SMALL = `ARG BASE=x

FROM \${BASE} AS dependencies
RUN 1

FROM \${DEPENDENCIES} AS sources
COPY s /s

FROM sources AS compiled
USER 1
RUN cd /s \\
 && node s

FROM sources
COPY --from=compiled /c /c
CMD ["s"]
`;

test('a Dockerfile parts into dependencies, sources with what the last stage sets, and the command that compiles', () => {
  const { dependencies, sources, compile } = splitStages(SMALL);
  assert.equal(dependencies, 'ARG BASE=x\n\nFROM ${BASE} AS dependencies\nRUN 1\n\n');
  assert.match(sources, /^ARG BASE=x\n\nFROM \$\{DEPENDENCIES\}\nCOPY s \/s\n+CMD \["s"\]\n$/);
  assert.equal(compile, 'cd /s && node s');
});

test('a missing stage, and a program in a stage that is built on nothing, are refused', () => {
  assert.throws(() => splitStages('FROM a\n'), /has no stages `sources`, `compiled`/);
  assert.throws(() => splitStages(SMALL.replace('COPY s /s', 'RUN rm /s')), /built on nothing runs a program/);
});

for (const path of ['Dockerfile', 'sandbox-image/Dockerfile']) {
  test(`the sources of ${path} only copy and configure, and are compiled`, () => {
    const { sources, compile } = splitStages(readFileSync(join(import.meta.dirname, '../..', path), 'utf8'));
    const instructions = sources.slice(sources.indexOf('FROM ')).match(/^[A-Z]+(?= )/gm) ?? [];
    const harmless = ['FROM', 'COPY', 'ENV', 'USER', 'WORKDIR', 'ENTRYPOINT', 'CMD'];
    assert.deepEqual(
      instructions.filter((instruction) => !harmless.includes(instruction)),
      [],
    );
    assert.ok(copiedSources(sources).length > 3);
    assert.match(compile, /main\.ts/);
  });
}
