// A fuzzer that is driven by the OpenAPI document against a whole control plane: no 5xx, no answer that is not documented.
// Bounded in time and seeded. A 501 or 503 of routes behind a sandbox is a documented answer: there is no sandbox here.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { apply } from '#kube/apply.ts';
import { PROJECTS, SESSIONS } from '#kube/resource-types.ts';
import { PUBLIC_ROUTES } from '#schema/rest/index.ts';
import { createProviderRoute } from '#schema/rest/workspace.ts';
import { type ApiWorld, startApiWorld } from '#test/support/api-world.ts';
import { findFuzzer } from './schemathesis.ts';

const SEED = '20261130';
const SECONDS = Number(process.env['BEEUNI_FUZZ_SECONDS'] ?? 60);
const MANAGER = { manager: 'beeuni-test', force: true };
type Parameter = { name: string; in: string; schema: Record<string, unknown> };
type Document = { paths: Record<string, Record<string, { operationId: string; parameters: Parameter[] }>> };

const isJson = (line: string): boolean => {
  try {
    JSON.parse(line);
    return true;
  } catch {
    return false;
  }
};

const fuzzer = findFuzzer();
const missing = 'missing' in fuzzer ? fuzzer.missing : undefined;
const options = missing === undefined ? {} : { skip: missing };

let world: ApiWorld;
let folder: string;
let document: Document;

before(async () => {
  if (missing !== undefined) return;
  folder = await mkdtemp(join(tmpdir(), 'beeuni-fuzz-'));
  world = await startApiWorld();
  const at = (name: string) => ({ namespace: world.namespace, name });
  await apply(
    world.client,
    PROJECTS,
    { metadata: at('shop'), spec: { repository: { url: 'https://git.invalid/shop.git' } } },
    MANAGER,
  );
  await apply(world.client, SESSIONS, { metadata: at('talk'), spec: { projectRef: { name: 'shop' } } }, MANAGER);
  await world.alice.call(createProviderRoute, {
    body: { id: 'acme', kind: 'openai-compatible', base_url: 'http://127.0.0.1:2/v1', models: [{ id: 'large' }] },
  });
  document = (await (await fetch(`${world.publicUrl}/openapi.json`)).json()) as Document;
});
after(async () => {
  await world?.stop();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

/** Calls of event streams that would never end, end at the head of the log; what is no word for it stays as it is. */
const HOOKS = `
import schemathesis

@schemathesis.hook
def before_call(ctx, case, kwargs):
    if case.operation.definition.raw.get("operationId") != "streamEvents":
        return
    query = dict(case.query or {})
    if query.get("follow") in (None, "true", ["true"]):
        case.query = {**query, "follow": "false"}
`;

/** The document with names of objects that are there, so that calls get past the first question. */
const withKnownNames = (from: Document): Document => {
  const known = (path: string, name: string): readonly string[] | undefined => {
    if (name === 'namespace') return [world.namespace];
    if (name === 'name') return path.includes('/sessions/') ? ['talk', 'none'] : ['shop', 'none'];
    if (name === 'id' && path.includes('/providers/')) return ['acme', 'none'];
    return undefined;
  };
  const copy = structuredClone(from);
  for (const [path, operations] of Object.entries(copy.paths)) {
    for (const { parameters } of Object.values(operations)) {
      for (const parameter of parameters.filter(({ in: place }) => place === 'path')) {
        const names = known(path, parameter.name);
        if (names !== undefined) parameter.schema = { type: 'string', enum: names };
      }
    }
  }
  return copy;
};

test('the document is valid OpenAPI 3.1', options, async () => {
  assert.ok(!('missing' in fuzzer));
  const file = join(folder, 'openapi.json');
  await writeFile(file, JSON.stringify(document));
  const checked = spawnSync(fuzzer.validator, ['--schema', '3.1', '--errors', 'all', file], { encoding: 'utf8' });
  assert.equal(checked.status, 0, checked.stdout + checked.stderr);
});

test(
  'no call that the document allows, and none near it, gets a 5xx or an answer that is not documented',
  options,
  async (t) => {
    assert.ok(!('missing' in fuzzer));
    const file = join(folder, 'known.json');
    await writeFile(file, JSON.stringify(withKnownNames(document)));
    await writeFile(join(folder, 'hooks.py'), HOOKS);
    const sandboxed = PUBLIC_ROUTES.filter(({ path }) => path.includes('/sessions/:name/')).map(
      ({ operationId }) => operationId,
    );
    const expected = '["2xx", "3xx", "4xx", "501", "502", "503", "504"]';
    await writeFile(
      join(folder, 'schemathesis.toml'),
      sandboxed
        .map(
          (id) =>
            `[[operations]]\ninclude-operation-id = "${id}"\nchecks.not_a_server_error.expected-statuses = ${expected}\n`,
        )
        .join('\n'),
    );
    const checks = [
      'not_a_server_error',
      'status_code_conformance',
      'content_type_conformance',
      'response_schema_conformance',
      'ignored_auth',
      'unsupported_method',
      'allow_header_conformance',
      'response_headers_conformance',
    ];
    const args = [
      ['--config-file', join(folder, 'schemathesis.toml'), '--no-color', 'run', file],
      ['--url', world.publicUrl, '--header', `Authorization: Bearer ${world.aliceToken}`],
      ['--checks', checks.join(','), '--phases', 'examples,coverage,fuzzing', '--mode', 'all', '--seed', SEED],
      ['--max-time', String(SECONDS), '--workers', '1', '--request-timeout', '20', '--continue-on-failure'],
      ['--suppress-health-check', 'all', '--warnings', 'off'],
    ].flat();
    const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1', SCHEMATHESIS_HOOKS: join(folder, 'hooks.py') };
    const child = spawn(fuzzer.schemathesis, args, { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
    const output: string[] = [];
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (text: Buffer) => output.push(text.toString('utf8')));
    const code = await new Promise((resolve) => child.once('exit', resolve));
    const text = output.join('');
    if (code !== 0) await writeFile(join(tmpdir(), 'beeuni-fuzz.txt'), text);
    assert.equal(code, 0, text.slice(-20_000));
    t.diagnostic(/\d+ generated.*|Test cases:[^]*?(?=\n\n)/.exec(text)?.[0] ?? text.slice(-300));
    assert.equal(world.process.child.exitCode, null, 'the control plane lives');
    const bugs = world.process.lines.filter((line) => line.includes('a request failed on a fault of ours'));
    assert.deepEqual(bugs, []);
    // FF13: whatever was sent, a record is one line.
    const forged = world.process.lines.filter((line) => !/^\{.*\}$/.test(line) || !isJson(line));
    assert.deepEqual(forged, []);
    assert.ok(!world.process.lines.some((line) => line.includes(world.aliceToken)), 'a token was printed');
  },
);
