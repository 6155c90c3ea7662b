// Command lines of the agent: output, exit codes, time limits, and an end that leaves nothing behind.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { commandsNamed } from '#test/support/processes.ts';
import { until } from '#test/support/until.ts';
import { runCommand } from './run-command.ts';

const start = (command: string, timeoutMs: number | null = null) => {
  let output = '';
  const running = runCommand({ command, cwd: '/tmp', timeoutMs }, { PATH: process.env['PATH'] ?? '' }, (data) => {
    output += Buffer.from(data).toString();
    queueMicrotask(() => running.taken(data.byteLength));
  });
  return { ...running, output: () => output };
};

const countOf = (name: string): number => commandsNamed(name).length;

describe('runCommand', () => {
  it('gives output and exit code, also of a signal', async () => {
    const good = start('echo out; echo err >&2; exit 3');
    assert.deepEqual(await good.done, { kind: 'exited', code: 3 });
    assert.match(good.output(), /out\n/);
    assert.match(good.output(), /err\n/);
    assert.deepEqual(await start('kill -TERM $$').done, { kind: 'exited', code: 143 });
  });

  it('says when there is no such folder', async () => {
    const running = runCommand({ command: 'true', cwd: '/nowhere/at/all', timeoutMs: null }, {}, () => {});
    assert.equal((await running.done).kind, 'failed');
  });

  it('fails a command that the system cannot start, and throws nothing', async () => {
    const hostile = { nul: 'echo a\0b', long: `: ${'x'.repeat(200_000)}` };
    for (const [what, command] of Object.entries(hostile)) {
      const running = runCommand({ command, cwd: '/tmp', timeoutMs: null }, {}, () => {});
      running.abort();
      assert.equal((await running.done).kind, 'failed', what);
    }
    const through = runCommand({ command: 'true', cwd: '/dev/null/folder', timeoutMs: null }, {}, () => {});
    assert.equal((await through.done).kind, 'failed');
  });

  it('ends a command at its time limit', async () => {
    assert.deepEqual(await start('sleep 30', 200).done, { kind: 'timeout' });
  });

  it('FB6 an abort ends the group, what left it and what left its session', async () => {
    const name = `beeuni-abort-${process.pid}`;
    const running = start(
      `(exec -a ${name} setsid sleep 60) & (exec -a ${name} sleep 60) & (setsid bash -c "exec -a ${name} sleep 60" &) ; exec -a ${name} sleep 60`,
    );
    await until('all run', () => countOf(name) >= 3);
    running.abort();
    assert.deepEqual(await running.done, { kind: 'aborted' });
    await until('none is left', () => countOf(name) === 0);
  });

  it('does not wait for what runs on in the background', async () => {
    const begin = performance.now();
    const running = start('sleep 60 & echo started');
    assert.deepEqual(await running.done, { kind: 'exited', code: 0 });
    assert.equal(running.output(), 'started\n');
    assert.ok(performance.now() - begin < 50_000);
  });
});
