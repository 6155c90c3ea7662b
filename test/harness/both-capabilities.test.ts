// What each real harness says that it offers, and that it offers it: every optional verb is asked of both. The table of
// docs/reference/harness-matrix.md is what they answered; `node --test --test-update-snapshots` writes it anew.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { CAPABILITIES, type Capability } from '#schema/wire/runtime.ts';
import { whyNoOpencode } from '#test/support/opencode.ts';
import { whyNoPi } from '#test/support/pi.ts';
import { until } from '#test/support/until.ts';
import { makeRig } from './rig.ts';

const skip = whyNoOpencode() ?? whyNoPi() ?? false;
const PAGE = fileURLToPath(new URL('../../docs/reference/harness-matrix.md', import.meta.url));

type Id = 'opencode' | 'pi';
/** How a verb is asked: a route of port 8000, or a turn that is no prompt. */
type Verb =
  | Readonly<{ method: 'GET' | 'POST'; path: string; body?: unknown }>
  | Readonly<{ turn: { type: 'compact' } | { type: 'shell'; command: string } }>;

const VERBS: Readonly<Record<Capability, Readonly<{ what: string; verb: Verb }>>> = {
  'session.subagents': { what: 'conversations of subagents', verb: { method: 'GET', path: 'children' } },
  'session.compact': { what: 'compaction on demand', verb: { turn: { type: 'compact' } } },
  'session.commands': { what: 'slash commands', verb: { method: 'GET', path: 'commands' } },
  'session.rewind': { what: 'rewind to a message, and back', verb: { method: 'POST', path: 'unrevert', body: {} } },
  'session.mcp': { what: 'MCP servers of the harness', verb: { method: 'GET', path: 'mcp' } },
  'session.todo': { what: 'the plan', verb: { method: 'GET', path: 'todo' } },
  'session.attach': { what: "the harness's own terminal client", verb: { method: 'GET', path: 'attach' } },
  'session.config': { what: 'the configuration document', verb: { method: 'GET', path: 'config' } },
  'session.fork': { what: 'a fork at a message', verb: { method: 'POST', path: 'fork', body: {} } },
  'session.shell': { what: 'a shell command as a turn', verb: { turn: { type: 'shell', command: 'true' } } },
  'session.steer': {
    what: 'a prompt for the running turn',
    verb: {
      method: 'POST',
      path: 'steer',
      body: { promptId: 'p', messageId: 'm', parts: [{ type: 'text', text: 'x' }] },
    },
  },
};

/** Answers that say "this harness has no such thing". A document that is missing is not found. Source: A64. */
const isLacking = (capability: Capability, status: number, code: unknown): boolean =>
  code === 'feature_not_supported' || (capability === 'session.config' && status === 404);

type Offer = Readonly<{ listed: boolean; answer: string; lacks: boolean }>;

const ask = async (id: Id): Promise<Readonly<Record<string, Offer>>> => {
  const rig = await makeRig();
  try {
    const daemon = rig.start({ BEEUNI_HARNESS: id });
    await until(`${id} is ready`, async () => (await daemon.health()).runtimeReady, { deadlineMs: 120_000 });
    const { capabilities } = await daemon.health();
    const offers: Record<string, Offer> = {};
    for (const capability of CAPABILITIES) {
      const { verb } = VERBS[capability];
      let status = 200;
      let code: unknown;
      if ('turn' in verb) {
        const turnId = rig.controlPlane.prompt('', { parts: [verb.turn] });
        await daemon.call('POST', '/beeuni/nudge', rig.controlPlane.daemonCredential, { reason: 'prompt' });
        code = (await rig.controlPlane.event('turn.ended', turnId)).data['code'];
        await until('the daemon is idle', async () => (await daemon.health()).activity.state === 'Idle');
      } else {
        const path = `/beeuni/runtime/${verb.path}`;
        const answer = await daemon.call(verb.method, path, rig.controlPlane.daemonCredential, verb.body);
        status = answer.status;
        code = (answer.body as { error?: { code?: unknown } } | undefined)?.error?.code;
      }
      const lacks = isLacking(capability, status, code);
      const missing = capability === 'session.config' ? '404' : '501';
      offers[capability] = { listed: capabilities.includes(capability), answer: lacks ? missing : 'yes', lacks };
    }
    return offers;
  } finally {
    await rig.stop();
  }
};

const pageOf = (opencode: Readonly<Record<string, Offer>>, pi: Readonly<Record<string, Offer>>): string =>
  [
    '# What each harness offers',
    '',
    'Made from a run of both harnesses by test/harness/both-capabilities.test.ts. `yes`: the capability is in the list of',
    "`GET /beeuni/health`, and the daemon serves it. A number is the daemon's answer where the harness has no such thing:",
    '501 `feature_not_supported`, or 404 for a document.',
    '',
    '| capability | what | opencode | pi |',
    '| --- | --- | --- | --- |',
    ...CAPABILITIES.map(
      (id) => `| \`${id}\` | ${VERBS[id].what} | ${opencode[id]?.answer ?? ''} | ${pi[id]?.answer ?? ''} |`,
    ),
    '',
  ].join('\n');

describe('both harnesses', { skip, timeout: 600_000 }, () => {
  it('A30 A34 A64 offer exactly what they list, and answer everything else as not supported', async (t) => {
    const [opencode, pi] = [await ask('opencode'), await ask('pi')];
    for (const [id, offers] of Object.entries({ opencode, pi })) {
      for (const [capability, { listed, lacks }] of Object.entries(offers)) {
        assert.equal(lacks, !listed, `${id} ${capability}`);
      }
    }
    const listed = Object.entries(pi).flatMap(([capability, offer]) => (offer.listed ? [capability] : []));
    assert.deepEqual(listed, ['session.subagents', 'session.compact', 'session.commands']);
    t.assert.fileSnapshot(pageOf(opencode, pi), PAGE, { serializers: [String] });
  });
});
