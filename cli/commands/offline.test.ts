// Commands that need no server: what they print and how they end.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { runCommand } from '#test/support/command-line.ts';

describe('commands without a server', () => {
  const folder = mkdtempSync(join(tmpdir(), 'beeuni-offline-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  const place = { cwd: folder };
  const write = (path: string, text: string): void => {
    mkdirSync(join(folder, path, '..'), { recursive: true });
    writeFileSync(join(folder, path), text);
  };

  test('A85 validate names file, line and column of a problem and ends with 1', async () => {
    write('bad/beeuni.yaml', 'beeuni_version: 2\ndefault_agent: dev\nagents:\n  dev:\n    sandbx: x\n');
    const finished = await runCommand(['validate', 'bad'], place);
    assert.equal(finished.code, 1);
    assert.match(finished.out, /^bad\/beeuni\.yaml:5:5: error: agents\.dev\.sandbx: unknown key .* \[SchemaError\]$/m);
    const json = await runCommand(['validate', 'bad', '--json'], place);
    const { valid, errors } = JSON.parse(json.out) as { valid: boolean; errors: { line: number }[] };
    assert.deepEqual([json.code, valid, errors[0]?.line], [1, false, 5]);
  });

  test('A85 validate says that there is no manifest, no folder, or that all is well', async () => {
    write('good/beeuni.yaml', 'beeuni_version: 2\ndefault_agent: dev\nagents:\n  dev: {tools: all}\n');
    write('good/agents/dev.md', 'You write code.\n');
    assert.deepEqual(await runCommand(['validate', 'good'], place), {
      code: 0,
      out: '',
      err: 'good/beeuni.yaml is valid\n',
    });
    const none = await runCommand(['validate'], place);
    assert.deepEqual([none.code, /has no file beeuni\.yaml \[Missing\]/.test(none.out)], [1, true], none.out);
    assert.equal((await runCommand(['validate', 'nowhere'], place)).code, 2);
  });

  test('A84 A85 validate says what a manifest or an agent file is that it does not read, and hangs on none', async () => {
    const manifest = 'beeuni_version: 2\ndefault_agent: dev\nagents:\n  dev: {tools: all}\n';
    for (const [at, path] of [
      ['unread-manifest', 'beeuni.yaml'],
      ['unread-agent', 'agents/dev.md'],
    ] as const) {
      write(`${at}/beeuni.yaml`, manifest);
      write(`${at}/agents/dev.md`, 'You write code.\n');
      const file = join(folder, at, path);
      const says = async (make: () => void): Promise<string> => {
        rmSync(file);
        make();
        const { code, out } = await runCommand(['validate', at], place);
        assert.deepEqual([code, out.trim().split('\n').length], [1, 1], out);
        return out;
      };
      assert.match(await says(() => execFileSync('mkfifo', [file])), /is no regular file.* \[Missing\]/);
      assert.match(await says(() => symlinkSync('/etc/hostname', file)), /is a symbolic link.* \[Missing\]/);
      const tooLarge = await says(() => writeFileSync(file, Buffer.alloc(1_048_577, '#')));
      assert.match(tooLarge, /has 1048577 bytes; at most 1048576 are read \[TooLarge\]/);
      assert.match(await says(() => writeFileSync(file, Buffer.from([0xff, 0xfe]))), /is not UTF-8 \[SyntaxError\]/);
    }
  });

  test('A85 schema prints what docs/reference holds', async () => {
    const { out, code } = await runCommand(['schema', '--version', '2']);
    assert.equal(code, 0);
    const schema = JSON.parse(out) as { title: string; required: string[] };
    assert.equal(schema.title, 'beeuni.yaml');
    assert.ok(schema.required.includes('agents'));
    assert.equal((await runCommand(['schema', '--version', '1'])).code, 2);
  });

  test('A112 A237 tools and connectors are read from the manifest, also from a folder below it and inside a sandbox', async () => {
    write(
      'repo/beeuni.yaml',
      [
        'beeuni_version: 2',
        'default_agent: dev',
        'agents:',
        '  dev: {tools: [memory, deploy], connectors: [jira]}',
        '  other: {}',
        'tools: {memory: "beeuni:memory", deploy: tools/deploy.ts}',
        'connectors: [{slug: jira}, {slug: slack}]',
      ].join('\n'),
    );
    for (const agent of ['dev', 'other']) write(`repo/agents/${agent}.md`, 'You work.\n');
    mkdirSync(join(folder, 'repo/src'));
    const env = { BEEUNI_SESSION: 'fix', BEEUNI_SESSION_UID: 'u', BEEUNI_AGENT: 'dev' };
    for (const at of [{ cwd: join(folder, 'repo') }, { cwd: join(folder, 'repo/src'), env }]) {
      const tools = await runCommand(['tools', '--json'], at);
      assert.deepEqual(
        (JSON.parse(tools.out) as { name: string; agents: string[] }[]).map(({ name, agents }) => [name, agents]),
        [
          ['memory', ['dev']],
          ['deploy', ['dev']],
        ],
      );
      const connectors = await runCommand(['connectors'], at);
      assert.match(connectors.out, /^jira +dev +yes\nslack +dev +no$/m);
    }
    const outside = await runCommand(['sessions', 'ls'], { env });
    assert.deepEqual([outside.code, /does not work inside a sandbox/.test(outside.err)], [2, true], outside.err);
    assert.equal((await runCommand(['tools'], { cwd: '/' })).code, 4);
    assert.equal((await runCommand(['tools'], { cwd: join(folder, 'bad') })).code, 1);
  });

  test('A131 system skills are listed, printed and found on disk', async () => {
    const list = await runCommand(['system-skills', 'list', '--json']);
    const names = (JSON.parse(list.out) as { name: string; description: string }[]).map(({ name }) => name);
    assert.ok(names.length > 0 && names.every((name) => name.startsWith('beeuni-')));
    assert.match((await runCommand(['system-skills', 'get', names[0] ?? ''])).out, /^---\nname: beeuni-/);
    assert.match((await runCommand(['system-skills', 'path'])).out, /\/sandbox-image\/skills\n$/);
    assert.equal((await runCommand(['system-skills', 'get', '../x'])).code, 4);
  });

  test('every call has help, and a wrong one says what is near', async () => {
    assert.equal((await runCommand([])).code, 2);
    assert.match((await runCommand(['--help'])).out, /sessions new/);
    assert.match((await runCommand(['sessions', '--help'])).out, /^ +sessions chat/m);
    assert.match((await runCommand(['help', 'sessions', 'new'])).out, /--prompt TEXT/);
    assert.match((await runCommand(['sessions', 'ls', '-h'])).out, /-n, --namespace NAME/);
    assert.match((await runCommand(['sesions'])).err, /did you mean sessions\?/);
    assert.match((await runCommand(['sessions', 'nw'])).err, /did you mean new/);
    assert.deepEqual((await runCommand(['version'])).out, 'beeuni 9.9.9\n');
  });

  test('completion scripts are valid for their shells and know commands and options', async () => {
    const { out } = await runCommand(['completion', 'bash']);
    const probe = `${out}
COMP_WORDS=(beeuni se); COMP_CWORD=1; _beeuni; echo "\${COMPREPLY[*]}"
COMP_WORDS=(beeuni sessions cha); COMP_CWORD=2; _beeuni; echo "\${COMPREPLY[*]}"
COMP_WORDS=(beeuni sessions new --pro); COMP_CWORD=3; _beeuni; echo "\${COMPREPLY[*]}"`;
    const run = spawnSync('bash', ['-c', probe], { encoding: 'utf8' });
    assert.equal(run.stderr, '');
    assert.deepEqual(run.stdout.trim().split('\n'), ['sessions', 'chat', '--project --prompt']);
    assert.match((await runCommand(['completion', 'zsh'])).out, /^#compdef beeuni/);
    assert.match((await runCommand(['completion', 'fish'])).out, /-a sessions/);
    assert.equal((await runCommand(['completion', 'tcsh'])).code, 2);
  });
});
