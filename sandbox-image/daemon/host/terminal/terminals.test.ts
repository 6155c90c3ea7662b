// Terminals over a program that is played: who attaches, who is too slow, what is remembered.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { asBeeuniError } from '#base/errors.ts';
import { ABANDONED_AFTER_MS, MAX_TERMINALS } from '#schema/wire/terminals.ts';
import { manualClock } from '#test/support/manual-clock.ts';
import type { PtyCommand } from './pty.ts';
import { createTerminals, type TerminalWish, type Viewer } from './terminals.ts';

const wish = (id?: string): TerminalWish => ({ id, cols: 80, rows: 24, command: undefined, client: false });

/** A played program. */
type Played = {
  command: PtyCommand;
  written: string;
  isFull: boolean;
  size: string;
  paused: boolean;
  ended: boolean;
} & Readonly<{ data: (text: string) => void; drain: () => void; exit: (code: number) => void }>;

const scene = () => {
  const clock = manualClock();
  const programs: Played[] = [];
  const terminals = createTerminals({
    startPty: async (command, listeners) => {
      const played: Played = {
        command,
        written: '',
        isFull: false,
        size: '',
        paused: false,
        ended: false,
        data: (text) => listeners.data(Buffer.from(text)),
        drain: listeners.drain,
        exit: listeners.exit,
      };
      programs.push(played);
      return {
        pid: programs.length,
        write: (bytes) => {
          played.written += bytes.toString();
          return !played.isFull;
        },
        resize: (cols, rows) => {
          played.size = `${cols}x${rows}`;
        },
        pause: () => {
          played.paused = true;
        },
        resume: () => {
          played.paused = false;
        },
        end: () => {
          played.ended = true;
        },
      };
    },
    cwd: '/workspace',
    environment: () => ({ SHOP_KEY: 'granted' }),
    harnessClient: async () => ({ command: ['opencode', 'attach'], environment: { PASSWORD: 'secret' } }),
    newId: () => `t-${programs.length}`,
    clock,
  });
  return { clock, programs, terminals };
};

const aViewer = () => {
  const seen = { text: '', exit: undefined as number | null | undefined, dropped: false, held: false };
  const unsent: (() => void)[] = [];
  const viewer: Viewer = {
    send: (bytes, sent) => {
      seen.text += bytes.toString();
      unsent.push(sent);
    },
    hold: () => {
      seen.held = true;
    },
    goOn: () => {
      seen.held = false;
    },
    exited: (code) => {
      seen.exit = code;
    },
    drop: () => {
      seen.dropped = true;
    },
  };
  return { viewer, seen, take: () => unsent.splice(0).forEach((sent) => sent()) };
};

describe('terminals', () => {
  test('A201 one id is one terminal, also when two attach to it at once', async () => {
    const { programs, terminals } = scene();
    const [first, second] = [aViewer(), aViewer()];
    const [one, two] = await Promise.all([
      terminals.attach(wish('x'), first.viewer),
      terminals.attach(wish('x'), second.viewer),
    ]);
    assert.equal(programs.length, 1);
    programs[0]?.data('hello');
    assert.deepEqual([first.seen.text, second.seen.text], ['hello', 'hello']);
    one.input(Buffer.from('typed'));
    two.resize(100, 40);
    assert.deepEqual([programs[0]?.written, programs[0]?.size], ['typed', '100x40']);
    assert.deepEqual(programs[0]?.command.environment['SHOP_KEY'], 'granted');
  });

  test('A201 unattended for 30 minutes counts as abandoned, until somebody attaches', async () => {
    const { clock, terminals } = scene();
    const attached = await terminals.attach(wish('x'), aViewer().viewer);
    await clock.advance(ABANDONED_AFTER_MS * 2);
    assert.deepEqual([terminals.list()[0]?.abandoned, terminals.list()[0]?.idleMs], [false, 0]);
    attached.leave();
    await clock.advance(ABANDONED_AFTER_MS - 1);
    assert.equal(terminals.list()[0]?.abandoned, false);
    await clock.advance(1);
    assert.equal(terminals.list()[0]?.abandoned, true);
    await terminals.attach(wish('x'), aViewer().viewer);
    assert.equal(terminals.list()[0]?.abandoned, false);
  });

  test('A201 an ended one is reported with its output and never made again', async () => {
    const { programs, terminals } = scene();
    const first = aViewer();
    await terminals.attach(wish('x'), first.viewer);
    programs[0]?.data('bye');
    programs[0]?.exit(7);
    assert.equal(first.seen.exit, 7);
    const late = await terminals.attach(wish('x'), aViewer().viewer);
    assert.deepEqual([late.view.status, late.view.exitCode, late.scrollback.toString()], ['exited', 7, 'bye']);
    late.input(Buffer.from('x'));
    assert.deepEqual([programs.length, programs[0]?.written], [1, '']);
    assert.equal(terminals.end('x'), true);
    await terminals.attach(wish('x'), aViewer().viewer);
    assert.equal(programs.length, 2);
  });

  test('a program that writes faster than it is read waits, and goes on when the reader has caught up', async () => {
    const { programs, terminals } = scene();
    const reader = aViewer();
    await terminals.attach(wish(), reader.viewer);
    programs[0]?.data('x'.repeat(300_000));
    assert.equal(programs[0]?.paused, true);
    reader.take();
    assert.equal(programs[0]?.paused, false);
  });

  test('a reader that takes nothing for 15 s is sent away, and the others go on', async () => {
    const { clock, programs, terminals } = scene();
    const [stuck, good] = [aViewer(), aViewer()];
    await terminals.attach(wish('x'), stuck.viewer);
    await terminals.attach(wish('x'), good.viewer);
    programs[0]?.data('x'.repeat(300_000));
    good.take();
    assert.equal(programs[0]?.paused, true);
    await clock.advance(15_000);
    assert.deepEqual([stuck.seen.dropped, good.seen.dropped, programs[0]?.paused], [true, false, false]);
    programs[0]?.data('more');
    assert.ok(good.seen.text.endsWith('more') && !stuck.seen.text.endsWith('more'));
  });

  test('viewers that type faster than the program reads are held back until it has read, or has ended', async () => {
    const { programs, terminals } = scene();
    const [one, two] = [aViewer(), aViewer()];
    const typist = await terminals.attach(wish('x'), one.viewer);
    const [program] = programs;
    assert.ok(program);
    program.isFull = true;
    typist.input(Buffer.from('much'));
    await terminals.attach(wish('x'), two.viewer);
    assert.deepEqual([one.seen.held, two.seen.held], [true, true]);
    program.drain();
    assert.deepEqual([one.seen.held, two.seen.held], [false, false]);
    typist.input(Buffer.from('more'));
    assert.equal(one.seen.held, true);
    program.exit(0);
    assert.deepEqual([one.seen.held, one.seen.exit], [false, 0]);
  });

  test('running ones are bounded, ended ones are forgotten oldest first', async () => {
    const { programs, terminals } = scene();
    for (let n = 0; n < MAX_TERMINALS; n += 1) await terminals.attach(wish(`r${n}`), aViewer().viewer);
    await assert.rejects(
      async () => terminals.attach(wish('more'), aViewer().viewer),
      (error: unknown) => asBeeuniError(error)?.code === 'too_many_terminals',
    );
    for (const program of programs.splice(0)) program.exit(0);
    for (let n = 0; n < 3; n += 1) {
      await terminals.attach(wish(`s${n}`), aViewer().viewer);
      programs.at(-1)?.exit(0);
    }
    const ids = terminals.list().map(({ id }) => id);
    assert.deepEqual([ids.length, ids[0], ids.at(-1)], [MAX_TERMINALS, 'r3', 's2']);
  });

  test('A237 the client of the harness gets its own environment, which nobody is shown', async () => {
    const { programs, terminals } = scene();
    const { view } = await terminals.attach({ ...wish(), client: true }, aViewer().viewer);
    assert.deepEqual([view.command, view.args], ['opencode', ['attach']]);
    assert.equal(programs[0]?.command.environment['PASSWORD'], 'secret');
    assert.doesNotMatch(JSON.stringify(terminals.list()), /secret|granted/);
  });

  test('all end together', async () => {
    const { programs, terminals } = scene();
    await terminals.attach(wish('a'), aViewer().viewer);
    await terminals.attach(wish('b'), aViewer().viewer);
    terminals.endAll();
    assert.deepEqual(
      programs.map(({ ended }) => ended),
      [true, true],
    );
  });
});
