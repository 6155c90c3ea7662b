// What the thread that Pi runs in keeps apart from the daemon, and what happens when it misbehaves.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  closeSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { TurnEnd } from '#daemon/harness/contract/adapter.ts';
import { makePiRig, type PiRig, whyNoPi } from '#test/support/pi.ts';
import { commandsNamed } from '#test/support/processes.ts';
import { until } from '#test/support/until.ts';

const skip = whyNoPi() ?? false;

/** An extension of the project whose tool does what it is told. */
const MISBEHAVE = `import { execSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
const acts: Record<string, (input: any) => unknown> = {
  env: () => JSON.stringify(process.env),
  chdir: () => process.chdir('/'),
  throw: () => { setTimeout(() => { throw new Error('thrown later'); }, 1); return new Promise(() => {}); },
  reject: () => { Promise.reject(new Error('nobody cares')); return new Promise(() => {}); },
  exit: () => process.exit(0),
  loop: () => { for (;;); },
  heap: () => { const all: unknown[] = []; for (;;) all.push(new Array(100_000).fill(Math.random())); },
  exec: () => execSync('sleep 2'),
  fifo: (input) => readFileSync(input.path),
};
export default (pi: any) => pi.registerTool({
  name: 'misbehave', label: 'm', description: 'm',
  parameters: { type: 'object', properties: { how: { type: 'string' }, path: { type: 'string' } } },
  execute: async (_id: string, input: any) => ({ content: [{ type: 'text', text: String(await acts[input.how]!(input)) }] }),
});
`;

const LIMITS = { probeIntervalMs: 1_500, missedProbes: 4, terminateMs: 3_000, abortLimitMs: 2_000, heapMb: 192 };

describe('the thread that Pi runs in', { skip, timeout: 300_000 }, () => {
  let rig: PiRig;
  const mainFetch = globalThis.fetch;
  const signals = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR1', 'exit', 'uncaughtException'] as const;
  const listeners = () => signals.map((name) => process.listenerCount(name));
  let listenersBefore: readonly number[];

  const text = (): string =>
    JSON.stringify((rig.provider.requests.at(-1)?.body['messages'] as unknown[] | undefined)?.at(-1));
  const misbehave = (how: string, more = ''): Promise<TurnEnd> =>
    rig.submit(`@@tool misbehave {"how":"${how}"${more}}\n@@say unharmed`);

  /** Runs something and gives back the longest time that this event loop stood still meanwhile. */
  const lagDuring = async <T>(run: Promise<T>): Promise<readonly [T, number]> => {
    let longest = 0;
    let last = performance.now();
    const timer = setInterval(() => {
      const now = performance.now();
      longest = Math.max(longest, now - last - 20);
      last = now;
      rig.harness().health();
    }, 20);
    const result = await run;
    clearInterval(timer);
    return [result, longest];
  };

  before(async () => {
    process.env['BEEUNI_TEST_CANARY'] = 'canary-of-the-daemon';
    listenersBefore = listeners();
    rig = await makePiRig({ project: { 'extensions/misbehave.ts': MISBEHAVE }, limits: LIMITS });
    await rig.ready();
  });
  after(async () => {
    delete process.env['BEEUNI_TEST_CANARY'];
    await rig?.stop();
  });

  it('D13 sees an environment of named entries only', async () => {
    assert.deepEqual(await misbehave('env'), { kind: 'completed' });
    const content =
      (rig.provider.requests.at(-1)?.body['messages'] as { content: string }[] | undefined)?.at(-1)?.content ?? '{}';
    const names = Object.keys(JSON.parse(content) as object)
      .filter((name) => !name.startsWith('NODE_COMPILE_CACHE'))
      .sort();
    assert.deepEqual(names, [
      'BEEUNI_RUN',
      'HOME',
      'LANG',
      'PATH',
      'PI_CODING_AGENT_DIR',
      'PI_OFFLINE',
      'PI_TELEMETRY',
      'TMPDIR',
    ]);
  });

  it('D13 leaves signal listeners and fetch of the main thread alone', () => {
    assert.deepEqual(listeners(), listenersBefore);
    assert.equal(globalThis.fetch, mainFetch);
  });

  it('D13 fails visibly where an extension changes the folder of the process', async () => {
    const before = process.cwd();
    assert.deepEqual(await misbehave('chdir'), { kind: 'completed' });
    assert.match(text(), /chdir/);
    assert.equal(process.cwd(), before);
  });

  for (const how of ['throw', 'reject', 'exit', 'loop', 'heap']) {
    it(`FB10 ends the turn once and goes on with a new thread when an extension does "${how}"`, async () => {
      const { restarts } = rig.harness().health().details as { restarts: number };
      const [end, lag] = await lagDuring(misbehave(how));
      assert.deepEqual([end.kind, end.kind === 'failed' && end.code], ['failed', 'harness_died']);
      assert.ok(lag < 1_500, `the main thread stood still for ${lag} ms`);
      await until('a new thread is ready', () => rig.harness().health().state === 'ok', { deadlineMs: 60_000 });
      assert.equal((rig.harness().health().details as { restarts: number }).restarts, restarts + 1);
      assert.deepEqual(await rig.submit('@@say fine'), { kind: 'completed' });
    });
  }

  it('FB10 ends the thread when an endless loop takes no abort, and calls the turn aborted', async () => {
    const controller = new AbortController();
    const before = rig.events.length;
    const turn = rig.submit('@@tool misbehave {"how":"loop"}', { signal: controller.signal });
    const isLoop = ({ data }: (typeof rig.events)[number]) => JSON.stringify(data).includes('"how":"loop"');
    await until('it loops', () => rig.events.slice(before).some(isLoop));
    controller.abort();
    assert.deepEqual(await turn, { kind: 'aborted' });
    await rig.ready();
  });

  it('FB10 waits for a system call that ends by itself', async () => {
    const [end] = await lagDuring(misbehave('exec'));
    assert.ok(end.kind === 'completed' || (end.kind === 'failed' && end.code === 'harness_died'));
    await rig.ready();
    assert.deepEqual(await rig.submit('@@say fine'), { kind: 'completed' });
  });

  it('FB6 leaves no process behind when the thread ends while a command runs', async () => {
    const turn = rig.submit(
      `@@tools bash {"command":"(exec -a beeuni-pi-left setsid sleep 300) & exec -a beeuni-pi-left sleep 300"} ;; misbehave {"how":"exit"}`,
    );
    const end = await turn;
    assert.equal(end.kind === 'failed' && end.code, 'harness_died');
    await until('no process is left', () => commandsNamed('beeuni-pi-left').length === 0);
    await rig.ready();
  });

  it('FB5 holds a command that floods, and the daemon answers meanwhile', async () => {
    const before = process.memoryUsage().rss;
    const [end, lag] = await lagDuring(rig.submit('@@tool bash {"command":"yes | head -c 60000000"}\n@@say ok'));
    assert.deepEqual(end, { kind: 'completed' });
    assert.ok(lag < 1_500, `the main thread stood still for ${lag} ms`);
    assert.ok(process.memoryUsage().rss - before < 200_000_000, 'memory stays bounded');
  });

  it('FB7 ends a turn with the cause when the disk is full, and answers again once it is not', async () => {
    await rig.submit('@@say before');
    const file = join(rig.data, readdirSync(rig.data).find((name) => name.endsWith('.jsonl')) ?? '');
    renameSync(file, `${file}.kept`);
    symlinkSync('/dev/full', file);
    const end = await rig.submit('@@say lost');
    assert.equal(end.kind, 'failed');
    assert.match(end.kind === 'failed' ? end.message : '', /ENOSPC/);
    unlinkSync(file);
    renameSync(`${file}.kept`, file);
    assert.deepEqual(await rig.submit('@@say after'), { kind: 'completed' });
    assert.match(JSON.stringify(rig.provider.requests.at(-1)?.body), /before/);
  });

  it('FB8 goes on with a conversation that was cut in the middle of a line', async () => {
    await rig.submit('@@say the word is clover');
    const file = join(rig.data, readdirSync(rig.data).find((name) => name.endsWith('.jsonl')) ?? '');
    appendFileSync(file, '{"type":"message","id":"x');
    await rig.restart();
    await rig.submit('@@say what was it');
    assert.match(JSON.stringify(rig.provider.requests.at(-1)?.body), /the word is clover/);
    for (const line of readFileSync(file, 'utf8').trim().split('\n')) JSON.parse(line);
  });

  it('FB8 known-bugs K11 K12 puts aside a conversation that is empty, headless or of 2 GB, and says so', async () => {
    for (const spoil of ['empty', 'headless', 'huge']) {
      const name = readdirSync(rig.data).find((entry) => entry.endsWith('.jsonl')) ?? '';
      const file = join(rig.data, name);
      if (spoil === 'headless') writeFileSync(file, '{"type":"message"}\n');
      else truncateSync(file, spoil === 'empty' ? 0 : 2 * 1024 ** 3);
      await rig.restart();
      assert.ok(
        rig.logged.some((line) => line.includes('put aside')),
        spoil,
      );
      assert.deepEqual(await rig.submit('@@say fine'), { kind: 'completed' }, spoil);
      const fresh = readdirSync(rig.data).filter((entry) => entry.endsWith('.jsonl'));
      assert.equal(fresh.length, 1);
      assert.match(readFileSync(join(rig.data, fresh[0] ?? ''), 'utf8').split('\n')[0] ?? '', /"type":"session"/);
      assert.ok(
        statSync(`${join(rig.data, readdirSync(rig.data).find((entry) => entry.includes('.refused-')) ?? '')}`),
      );
    }
  });
});

describe('a thread that cannot be ended', { skip, timeout: 120_000 }, () => {
  it('FB10 ends the turn, is reported as down, and the daemon is asked to end itself', async () => {
    const rig = await makePiRig({
      project: { 'extensions/misbehave.ts': MISBEHAVE },
      limits: { ...LIMITS, terminateMs: 1_000 },
    });
    const fifo = join(rig.root, 'fifo');
    try {
      await rig.ready();
      execFileSync('mkfifo', [fifo]);
      const end = await rig.submit(`@@tool misbehave {"how":"fifo","path":"${fifo}"}`);
      assert.deepEqual([end.kind, end.kind === 'failed' && end.code], ['failed', 'harness_died']);
      assert.equal(rig.harness().health().state, 'down');
      await until('the daemon is asked', () => rig.gaveUp.length === 1);
      const again = await rig.submit('@@say no');
      assert.equal(again.kind === 'failed' && again.code, 'harness_died');
    } finally {
      closeSync(openSync(fifo, 'w'));
      await rig.stop();
    }
  });
});

describe('a hostile workspace with Pi', { skip, timeout: 120_000 }, () => {
  it('FF8 runs and reads nothing of it: extensions, settings, prompts, skills, packages, hooks', async () => {
    const evil = (name: string) =>
      `import { writeFileSync } from 'node:fs'; writeFileSync('ran-${name}', 'x'); export default () => {};\n`;
    const rig = await makePiRig({
      files: {
        'AGENTS.md': 'rules\n',
        '.pi/extensions/evil.ts': evil('extension'),
        '.pi/extensions/evil/index.ts': evil('folder'),
        '.pi/settings.json':
          '{"extensions":["./other.ts"],"packages":["npm:evil"],"shellCommandPrefix":"touch ran-prefix;"}',
        '.pi/other.ts': evil('other'),
        '.pi/SYSTEM.md': 'Marker: evil system.\n',
        '.pi/APPEND_SYSTEM.md': 'Marker: evil append.\n',
        '.pi/prompts/evil.md': 'Marker: evil prompt.\n',
        '.pi/skills/evil/SKILL.md': '---\nname: evil\ndescription: Marker evil skill.\n---\n',
        '.agents/skills/evil/SKILL.md': '---\nname: evil\ndescription: Marker evil skill.\n---\n',
        '.pi/mcp.json': '{"mcpServers":{"evil":{"command":"touch","args":["ran-mcp"]}}}',
        'harnesses/pi/extensions/evil.ts': evil('own-folder'),
        'skills/evil/SKILL.md': '---\nname: evil\ndescription: Marker evil skill.\n---\n',
      },
    });
    try {
      await rig.ready();
      assert.deepEqual(await rig.submit('@@tool bash {"command":"true"}\n@@say ok'), { kind: 'completed' });
      assert.ok(!readdirSync(rig.workspace).some((name) => name.startsWith('ran-')), readdirSync(rig.workspace).join());
      assert.doesNotMatch(JSON.stringify(rig.provider.requests.at(-1)?.body), /[Mm]arker:? evil/);
      assert.deepEqual(await rig.harness().optional.commands?.list(new AbortController().signal), []);
    } finally {
      await rig.stop();
    }
  });
});
