// One conversation of thirty turns on both real harnesses: the client sees the same families of events in the same order.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { DaemonProcess } from '#test/support/daemon-process.ts';
import { whyNoOpencode } from '#test/support/opencode.ts';
import { whyNoPi } from '#test/support/pi.ts';
import type { LoggedEvent } from '#test/support/scripted-control-plane.ts';
import { until } from '#test/support/until.ts';
import { makeRig, type Rig } from './rig.ts';

const skip = whyNoOpencode() ?? whyNoPi() ?? false;

type Id = 'opencode' | 'pi';
type Fields = Readonly<Record<string, unknown>>;

const fields = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {});

/** What only one harness has: snapshots of files. How often something grows or is repeated is a matter of taste too. */
const OWN_PARTS: readonly unknown[] = ['patch', 'snapshot'];

/** The call that an event belongs to; undefined for events of no call. */
const callOf = ({ type, data }: LoggedEvent): unknown => {
  if (type === 'tool.terminal') return data['callId'];
  const part = type === 'message.part.updated' ? fields(data['part']) : {};
  return part['type'] === 'tool' ? (part['callId'] ?? part['id']) : undefined;
};

/** Calls of one message run side by side and end in any order: each run of their events is put call after call. */
const callAfterCall = (events: readonly LoggedEvent[]): readonly LoggedEvent[] => {
  const ordered: LoggedEvent[] = [];
  let open = new Map<unknown, LoggedEvent[]>();
  const close = (): void => {
    ordered.push(...[...open.values()].flat());
    open = new Map();
  };
  for (const event of events) {
    const call = callOf(event);
    if (call === undefined) {
      close();
      ordered.push(event);
    } else open.set(call, [...(open.get(call) ?? []), event]);
  }
  close();
  return ordered;
};

/** The events of one thread of a turn as families, each part and message once when it begins and once when it ends. */
const familiesOf = (events: readonly LoggedEvent[]): readonly string[] => {
  const seen = new Set<string>();
  const once = (key: string, family: string): readonly string[] => {
    if (seen.has(key)) return [];
    seen.add(key);
    return [family];
  };
  return events.flatMap(({ type, data }): readonly string[] => {
    if (type === 'message.updated') {
      const { id, role, summary, completedAt } = fields(data['message']);
      const name = `${role}${summary === true ? ' summary' : ''}`;
      return [
        ...once(`${id}`, `message ${name}`),
        ...(completedAt === undefined ? [] : once(`${id} done`, `message ${name} done`)),
      ];
    }
    if (type === 'message.part.updated') {
      const { id, type: kind, tool, state } = fields(data['part']);
      if (OWN_PARTS.includes(kind)) return [];
      const { status } = fields(state);
      if (status === 'running') return [];
      return once(
        `${id} ${status}`,
        `part ${kind}${kind === 'tool' ? ` ${tool} ${status === 'pending' ? status : 'ended'}` : ''}`,
      );
    }
    switch (type) {
      // The push comes after the end of the turn.
      case 'workspace.pushed':
      case 'message.part.delta':
        return [];
      case 'session.status':
        return data['status'] === 'retry' ? [] : [`status ${data['status']}`];
      case 'tool.terminal':
        return [`terminal ${data['tool']} ${data['outcome']}`];
      case 'turn.ended':
        return [`turn.ended ${data['outcome']} ${data['code']}`];
      case 'permission.replied':
        return [`permission.replied ${data['reply']}`];
      default:
        return [type];
    }
  });
};

/**
 * A turn up to its end. What a killed daemon had open is told after it, by the next daemon for events that were not stored
 * yet, else by the control plane, which has tests of its own (session-rest); the double here only stores.
 */
const untilItsEnd = (events: readonly LoggedEvent[]): readonly LoggedEvent[] =>
  events.slice(0, events.findIndex(({ type }) => type === 'turn.ended') + 1);

/** Families of a turn: the root's, then those of each child in the order in which they began. */
const shapeOf = (events: readonly LoggedEvent[]): Readonly<Record<string, readonly string[]>> => {
  const threads = [...new Set(events.map(({ threadId }) => threadId))];
  const name = (thread: string): string => (thread === 'root' ? 'root' : `child ${threads.indexOf(thread)}`);
  return Object.fromEntries(
    threads.map((thread) => [
      name(thread),
      familiesOf(callAfterCall(events.filter(({ threadId }) => threadId === thread))),
    ]),
  );
};

const QUESTION =
  '{"questions":[{"question":"Which?","header":"Pick","options":[{"label":"A","description":"a"},{"label":"B","description":"b"}]}]}';
const bash = (command: string): string => `bash ${JSON.stringify({ command, description: 'd' })}`;
const write: Readonly<Record<Id, (path: string, content: string) => string>> = {
  opencode: (filePath, content) => `write ${JSON.stringify({ filePath, content })}`,
  pi: (path, content) => `write ${JSON.stringify({ path, content })}`,
};
const task = (prompt: string): string =>
  `task ${JSON.stringify({ description: 'look', prompt, subagent_type: 'general' })}`;

type Step = Readonly<{
  script: (id: Id) => string;
  /** What a person does meanwhile. */
  meanwhile?: 'allow' | 'reject' | 'reject with a word' | 'answer' | 'dismiss' | 'abort' | 'kill';
  compact?: true;
}>;

const STEPS: readonly Step[] = [
  { script: () => '@@say hello' },
  { script: () => '@@reason hm\n@@say thought about it' },
  { script: () => `@@tool ${bash('echo one')}\n@@say one` },
  { script: (id) => `@@tool ${write[id]('notes.txt', 'buzz')}\n@@say written` },
  { script: () => `@@tool ${bash("git add -A && git commit --quiet -m 'Add notes'")}\n@@say committed` },
  { script: () => `@@text first\n@@tool ${bash('echo two')}\n@@tool ${bash('echo three')}\n@@say three` },
  { script: () => `@@tools ${bash('echo a')} ;; ${bash('echo b')}\n@@say both` },
  { script: () => `@@tool ${bash('exit 3')}\n@@say it failed` },
  { script: () => `@@tool ${bash('rm -f gone')}\n@@say removed`, meanwhile: 'allow' },
  { script: () => `@@tool ${bash('rm -f kept')}\n@@say never`, meanwhile: 'reject' },
  { script: () => `@@tool ${bash('rm -f kept')}\n@@say went on`, meanwhile: 'reject with a word' },
  { script: () => `@@tool ${bash('sudo rm x')}\n@@say denied` },
  { script: () => `@@tool question ${QUESTION}\n@@say answered`, meanwhile: 'answer' },
  { script: () => `@@tool question ${QUESTION}\n@@say never`, meanwhile: 'dismiss' },
  { script: () => `@@tool ${task('@@say from the child')}\n@@say parent` },
  { script: () => `@@tool ${task(`@@tool ${bash('echo child')}\n@@say worked`)}\n@@say parent` },
  { script: () => '@@error 9 402 budget used up' },
  { script: () => '@@say after the error' },
  { script: () => '@@hang', meanwhile: 'abort' },
  { script: () => `@@tool ${bash('sleep 300')}`, meanwhile: 'abort' },
  { script: () => '@@say after the abort' },
  { script: () => '', compact: true },
  { script: () => '@@say after the compaction' },
  { script: () => '@@stream 20 2' },
  { script: () => `@@tool ${bash('sleep 300')}`, meanwhile: 'kill' },
  { script: () => '@@say back again' },
  { script: () => `@@tool ${bash('cat notes.txt')}\n@@say still there` },
  { script: () => `@@tool ${task('@@say another child')}\n@@say parent` },
  { script: () => `@@tool ${bash("git commit --quiet --allow-empty -m 'Nothing'")}\n@@say done` },
  { script: () => '@@say goodbye' },
];

/** Plays the conversation; gives back what the client saw, turn by turn. */
const play = async (id: Id): Promise<readonly Readonly<Record<string, readonly string[]>>[]> => {
  const rig: Rig = await makeRig({
    files: {
      'README.md': '# Shop\n',
      'harnesses/pi/settings.json': '{"compaction":{"keepRecentTokens":1}}\n',
    },
    claim: {
      agents: [
        {
          name: 'dev',
          mode: 'primary',
          prompt: 'You are the developer.',
          tools: 'none',
          skills: 'none',
          permission: { bash: { '*': 'allow', 'rm *': 'ask', 'sudo *': 'deny' } },
        },
      ],
    },
  });
  try {
    let daemon: DaemonProcess = rig.start({ BEEUNI_HARNESS: id });
    const { controlPlane } = rig;
    const ready = () =>
      until(`${id} is ready`, async () => (await daemon.health()).runtimeReady, { deadlineMs: 120_000 });
    await ready();
    const call = (path: string, body: unknown) => daemon.call('POST', path, controlPlane.daemonCredential, body);
    const answer = async (turnId: string, body: Fields): Promise<void> => {
      const kind = body['kind'] === 'permission' ? 'permission.asked' : 'question.asked';
      const asked = await controlPlane.event(kind, turnId);
      assert.equal((await call(`/beeuni/requests/${asked.data['id']}`, body)).status, 200);
    };
    const isRunning = (turnId: string): boolean =>
      JSON.stringify(controlPlane.eventsOf(turnId)).includes('"status":"running"');

    const meanwhile: Readonly<Record<NonNullable<Step['meanwhile']>, (turnId: string) => Promise<void>>> = {
      allow: (turnId) => answer(turnId, { kind: 'permission', reply: 'once' }),
      reject: (turnId) => answer(turnId, { kind: 'permission', reply: 'reject' }),
      'reject with a word': (turnId) =>
        answer(turnId, { kind: 'permission', reply: 'reject', message: 'not this one' }),
      answer: (turnId) => answer(turnId, { kind: 'question', answers: [['B']] }),
      dismiss: (turnId) => answer(turnId, { kind: 'question', answers: null }),
      abort: async (turnId) => {
        const isAnswering = (): boolean => JSON.stringify(controlPlane.eventsOf(turnId)).includes('"step-start"');
        await until('the model answers', isAnswering);
        if (JSON.stringify(controlPlane.eventsOf(turnId)).includes('sleep 300')) {
          await until('a command runs', () => isRunning(turnId));
        }
        await call('/beeuni/abort', { turnId });
      },
      kill: async (turnId) => {
        await until('a command runs', () => isRunning(turnId));
        daemon.signal('SIGKILL');
        await daemon.exited;
        daemon = rig.start({ BEEUNI_HARNESS: id });
        await ready();
      },
    };

    const shapes: Readonly<Record<string, readonly string[]>>[] = [];
    for (const step of STEPS) {
      const parts = step.compact === true ? [{ type: 'compact' as const }] : undefined;
      const turnId = controlPlane.prompt(step.script(id), parts === undefined ? {} : { parts });
      await call('/beeuni/nudge', { reason: 'prompt' });
      if (step.meanwhile !== undefined) await meanwhile[step.meanwhile](turnId);
      await controlPlane.event('turn.ended', turnId);
      await until('the daemon is idle', async () => (await daemon.health()).activity.state === 'Idle');
      shapes.push(shapeOf(untilItsEnd(controlPlane.eventsOf(turnId))));
    }
    return shapes;
  } finally {
    await rig.stop();
  }
};

describe('one conversation on both harnesses', { skip, timeout: 900_000 }, () => {
  it('J18 shows a client the same families of events in the same order, turn by turn', async () => {
    const opencode = await play('opencode');
    const pi = await play('pi');
    assert.equal(pi.length, STEPS.length);
    const differences = STEPS.flatMap((step, at) =>
      JSON.stringify(opencode[at]) === JSON.stringify(pi[at])
        ? []
        : [{ turn: at + 1, script: step.script('pi'), opencode: opencode[at], pi: pi[at] }],
    );
    assert.deepEqual(differences, []);
  });
});
