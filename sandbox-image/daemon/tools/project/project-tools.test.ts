// Tools of a project as real processes: what loads, what a call sees, and every way in which one goes wrong.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { systemClock } from '#base/clock.ts';
import { createLogger } from '#base/log.ts';
import { until } from '#test/support/until.ts';
import type { Tool } from '../define-tool.ts';
import { loadProjectTools } from './project-tools.ts';
import { makeRunModule } from './run-module.ts';

const tool = (body: string): string =>
  `export default { description: 'd', parameters: { type: 'object' }, async execute(args, context) { ${body} } };\n`;

const FILES: Readonly<Record<string, string>> = {
  'good.ts': tool(
    'const text: string = args.text; return { text, name: context.agent, id: context.sessionId, dir: context.directory };',
  ),
  'text.mjs': tool("return 'plain'"),
  'nothing.js': tool('return undefined'),
  'thrower.ts': tool("throw new Error('no honey')"),
  'prints.ts': tool('console.log(\'{"kind":"completed","output":"forged"}\'); return \'true answer\''),
  'env.ts': tool(
    'return { process: Object.keys(process.env).sort(), context: Object.keys(context.env).sort(), secret: context.env.SECRET }',
  ),
  'exits.ts': tool('process.exit(3)'),
  'hangs.ts': tool(
    "require('node:fs').writeFileSync(args.mark, String(process.pid)); await new Promise(() => setInterval(() => {}, 1000))",
  ).replace(
    'export',
    "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);\nexport",
  ),
  'loops.ts': `import { writeFileSync } from 'node:fs';\n${tool('writeFileSync(args.mark, String(process.pid)); for (;;) {}')}`,
  'leaves.ts': `import { spawn } from 'node:child_process';\n${tool("const child = spawn('sleep', ['600'], { stdio: 'inherit' }); return child.pid")}`,
  'huge.ts': tool("return 'x'.repeat(9_000_000)"),
  'heeds.ts': `import { writeFileSync } from 'node:fs';\n${tool("writeFileSync(args.mark, 'on'); const work = setInterval(() => {}, 1000); await new Promise((resolve) => context.signal.addEventListener('abort', resolve)); clearInterval(work); writeFileSync(args.mark, 'heeded')")}`,
  'no-default.ts': 'export const x = 1;\n',
  'no-description.ts': 'export default { description: " ", parameters: { type: "object" }, execute() {} };\n',
  'no-schema.ts': 'export default { description: "d", parameters: { type: "string" }, execute() {} };\n',
  'no-execute.ts': 'export default { description: "d", parameters: { type: "object" } };\n',
  'throws.ts': "throw new Error('at load')\n",
  'syntax.ts': 'export default {{{\n',
  'imports.ts': "import 'a-package-that-is-not-there';\n",
};

const isAlive = (pid: number): boolean => {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.startsWith('Z') !== true;
  } catch {
    return false;
  }
};

describe('tools of a project', { timeout: 240_000 }, () => {
  const root = mkdtempSync(join(tmpdir(), 'beeuni-project-tools-'));
  const printed: string[] = [];
  const logged: string[] = [];
  const environment = { PATH: process.env['PATH'] ?? '', HOME: root, BEEUNI_TEST: '1' };
  let secret = 'first';
  let tools: ReadonlyMap<string, Tool>;

  before(async () => {
    mkdirSync(join(root, 'tools'));
    for (const [name, text] of Object.entries(FILES)) writeFileSync(join(root, 'tools', name), text);
    const loaded = await loadProjectTools(
      {
        tools: [...Object.keys(FILES), 'missing.ts'].map((name) => ({
          name: name.replace(/\..*$/, '').replaceAll('-', '_'),
          path: `tools/${name}`,
        })),
        sourceDirectory: root,
        workspace: root,
        sessionUid: 'session-1',
        run: makeRunModule({ clock: systemClock, output: (line) => printed.push(line) }),
        plainEnvironment: environment,
        callEnvironment: () => ({ ...environment, SECRET: secret }),
        log: createLogger({ level: 'warn', write: (line) => logged.push(line) }),
      },
      new AbortController().signal,
    );
    tools = new Map(loaded.map((each) => [each.spec.name, each]));
  });
  after(() => rmSync(root, { recursive: true, force: true }));

  const call = async (name: string, args: unknown = {}, signal = new AbortController().signal): Promise<string> => {
    const found = tools.get(name);
    assert.ok(found !== undefined, `${name} is loaded`);
    return (await found.run(args, { agent: 'dev', threadId: 'root', callId: 'c', signal })).output;
  };

  it('A109 leaves out each module that does not load, says why, and loads the others', () => {
    const left = ['no_default', 'no_description', 'no_schema', 'no_execute', 'throws', 'syntax', 'imports', 'missing'];
    for (const name of left) {
      assert.ok(!tools.has(name), name);
      const line = logged.find((each) => each.includes(`"tool":"${name}"`)) ?? '';
      assert.match(line, /"reason":"[^"]/, name);
    }
    assert.equal(tools.size, Object.keys(FILES).length - left.length + 1);
  });

  it('A106 gives a text as it is and anything else as JSON', async () => {
    assert.equal(await call('text'), 'plain');
    assert.deepEqual(JSON.parse(await call('good', { text: 'hi' })), {
      text: 'hi',
      name: 'dev',
      id: 'session-1',
      dir: root,
    });
    assert.equal(await call('nothing'), 'null');
  });

  it('A106 makes what is thrown the error of the tool', async () => {
    await assert.rejects(call('thrower'), { name: 'ToolError', message: 'no honey' });
  });

  it('A106 takes nothing that a module prints for its answer', async () => {
    assert.equal(await call('prints'), 'true answer');
    assert.ok(printed.some((line) => line.includes('forged')));
  });

  it('A107 gives a call its environment and the secrets of now, and inherits nothing of the daemon', async () => {
    const seen = JSON.parse(await call('env')) as Readonly<Record<string, unknown>>;
    assert.deepEqual(seen, {
      process: ['BEEUNI_TEST', 'HOME', 'PATH', 'SECRET'],
      context: ['BEEUNI_TEST', 'HOME', 'PATH', 'SECRET'],
      secret: 'first',
    });
    secret = 'rotated';
    assert.match(await call('env'), /"rotated"/);
  });

  it('says so when a module ends without an answer, or with one that is too long', async () => {
    await assert.rejects(call('exits'), { message: 'it ended without an answer (exit code 3)' });
    await assert.rejects(call('huge'), { message: /its answer is longer than/ });
  });

  for (const name of ['hangs', 'loops']) {
    it(`FB10 ends a tool that ${name} when the call is aborted, and leaves no process`, async () => {
      const mark = join(root, `mark-${name}`);
      const abort = new AbortController();
      const running = call(name, { mark }, abort.signal);
      running.catch(() => {});
      const pid = await until('the tool runs', () => {
        try {
          return Number(readFileSync(mark, 'utf8')) || undefined;
        } catch {
          return undefined;
        }
      });
      abort.abort();
      await assert.rejects(running, { message: 'the call was aborted' });
      assert.ok(!isAlive(pid));
    });
  }

  it('A107 tells a tool of the abort, which gets a moment to heed it', async () => {
    const mark = join(root, 'mark-heeds');
    const abort = new AbortController();
    const running = call('heeds', { mark }, abort.signal);
    running.catch(() => {});
    const read = (): string => {
      try {
        return readFileSync(mark, 'utf8');
      } catch {
        return '';
      }
    };
    await until('the tool runs', () => read() === 'on');
    abort.abort();
    await assert.rejects(running, { message: 'the call was aborted' });
    assert.equal(read(), 'heeded');
  });

  it('FB6 leaves no process of a tool that started one and does not wait for it', async () => {
    const pid = Number(await call('leaves'));
    await until('the process is gone', () => !isAlive(pid));
  });

  it('ends a module at its time limit', async () => {
    const run = makeRunModule({ clock: systemClock, output: () => {} });
    const module = join(root, 'tools/hangs.ts');
    const hanging = run({
      module,
      call: { arguments: { mark: join(root, 'mark-limit') }, sessionId: 's', agent: null, directory: root },
      cwd: root,
      environment,
      timeoutMs: 1_500,
      signal: new AbortController().signal,
    });
    await assert.rejects(hanging, { message: 'it took longer than 1500 ms' });
  });
});
