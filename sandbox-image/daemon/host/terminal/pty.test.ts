// Real pseudo terminals with small programs in them: what arrives, in which order, and who waits for whom.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { until } from '#test/support/until.ts';
import { type Pty, startPty } from './pty.ts';

describe('a pseudo terminal', { timeout: 300_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'beeuni-pty-'));
  after(() => rmSync(folder, { recursive: true, force: true }));

  /** Starts a command line; `onData` sees each piece and the terminal that it came from. */
  const start = async (line: string, onData: (pty: Pty) => void = () => {}) => {
    const chunks: Buffer[] = [];
    let exitCode: number | undefined;
    let bytesAtExit = 0;
    let drains = 0;
    const size = (): number => chunks.reduce((sum, { length }) => sum + length, 0);
    const pty: Pty = await startPty(
      {
        file: '/bin/bash',
        args: ['-c', line],
        cwd: folder,
        environment: { PATH: process.env['PATH'] ?? '' },
        cols: 80,
        rows: 24,
      },
      {
        data: (bytes) => {
          chunks.push(bytes);
          onData(pty);
        },
        drain: () => {
          drains += 1;
        },
        exit: (code) => {
          exitCode = code;
          bytesAtExit = size();
        },
      },
    );
    return {
      pty,
      size,
      drains: () => drains,
      text: () => Buffer.concat(chunks).toString(),
      exitCode: () => until('it has ended', () => exitCode, { describe: () => size() }),
      bytesAtExit: () => bytesAtExit,
    };
  };

  const isAlive = (pid: number): boolean => {
    try {
      return process.kill(pid, 0);
    } catch {
      return false;
    }
  };

  test('A201 every byte of a program that ends before a slow reader has read arrives, and then its exit', async () => {
    const bytes = 5_000_000;
    const slow = await start(`stty -opost; head -c ${bytes} /dev/zero | tr '\\0' x; exit 6`, (pty) => {
      pty.pause();
      // The reader takes its time once the program is gone, which is when output could be lost.
      const takesMs = isAlive(pty.pid) ? 0 : 500;
      void pause(takesMs).then(() => pty.resume());
    });
    assert.equal(await slow.exitCode(), 6);
    assert.deepEqual([slow.bytesAtExit(), slow.size()], [bytes, bytes]);
  });

  test('A201 a program that closes its terminal before it ends is not hung up, and ends with its own exit code', async () => {
    const closed = await start('echo said; exec <&- >&- 2>&-; until [ -e end ]; do sleep 0.05; done; exit 3');
    await until('it has written', () => closed.text().includes('said'));
    // Long enough for a reader that takes this for the end to hang up.
    for (let round = 0; round < 5; round += 1) await pause(20);
    writeFileSync(join(folder, 'end'), '');
    assert.equal(await closed.exitCode(), 3);
  });

  test('A201 the end is told although a process in the background keeps the terminal', async () => {
    const left = await start(
      'here=$(tty); (trap "" HUP; exec 3<>"$here"; touch open; exec sleep 600) & echo "left $!"; ' +
        'until [ -e open ]; do sleep 0.05; done; exit 4',
    );
    assert.equal(await left.exitCode(), 4);
    const [, pid = ''] = /left (\d+)/.exec(left.text()) ?? [];
    process.kill(Number(pid), 'SIGKILL');
  });

  test('input that the program does not read holds up nothing, is bounded by its writer, and arrives whole', async () => {
    const input = Buffer.alloc(1_000_000, 'typed\n');
    const program = await start(
      'stty raw -echo; echo ready; until [ -e go ]; do sleep 0.05; done; head -c 1000000 | md5sum',
    );
    await until('it takes input', () => program.text().includes('ready'));
    assert.equal(program.pty.write(input), false);
    assert.equal(program.drains(), 0);
    writeFileSync(join(folder, 'go'), '');
    assert.equal(await program.exitCode(), 0);
    assert.ok(program.text().includes(createHash('md5').update(input).digest('hex')), program.text());
    assert.equal(program.drains(), 1);
  });

  test('a terminal whose program has ended takes keys, sizes and its end, and does nothing', async () => {
    const over = await start('true');
    assert.equal(await over.exitCode(), 0);
    assert.equal(over.pty.write(Buffer.from('x')), true);
    over.pty.resize(100, 30);
    over.pty.pause();
    over.pty.resume();
    over.pty.end();
  });

  test('A201 a program that a signal ends has 128 and the signal as its exit code', async () => {
    const killed = await start('kill -TERM $$');
    assert.equal(await killed.exitCode(), 143);
    const hungUp = await start('echo up; read never');
    await until('it runs', () => hungUp.text().includes('up'));
    hungUp.pty.end();
    // The program is gone before anybody here hears of it; ending it again harms nobody.
    const giveUpMs = performance.now() + 30_000;
    while (isAlive(hungUp.pty.pid) && performance.now() < giveUpMs);
    hungUp.pty.end();
    assert.equal(await hungUp.exitCode(), 129);
  });
});
