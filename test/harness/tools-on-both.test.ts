// The same calls of the same tools on both real harnesses: names, arguments, output and errors are those of the one tool host.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { DaemonProcess } from '#test/support/daemon-process.ts';
import { whyNoOpencode } from '#test/support/opencode.ts';
import { whyNoPi } from '#test/support/pi.ts';
import { CANARY, makeRig, type Rig } from './rig.ts';

const skip = whyNoOpencode() ?? whyNoPi() ?? false;

type Fields = Readonly<Record<string, unknown>>;
type Ended = Readonly<{ tool: unknown; status: unknown; output: string; show: unknown }>;

const module = (body: string): string =>
  `export default { description: 'A tool of the project.', parameters: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] }, async execute(args, context) { ${body} } };\n`;

/** Name, arguments; in this order on each harness. */
const CALLS: readonly (readonly [string, unknown])[] = [
  ['memory', { command: 'create', path: 'memory/a.md', file_text: 'one\n' }],
  ['memory', { command: 'view', path: 'memory' }],
  ['memory', { command: 'view', path: '/etc/passwd' }],
  ['memory', { command: 'rename', path: 'memory/a.md', new_path: 'memory/b.md' }],
  ['show', { title: 'T', type: 'markdown', text: '# Bees' }],
  ['show', { title: 'T', type: 'file', path: 'README.md' }],
  ['show', { title: 'T', type: 'file', path: '../README.md' }],
  ['web_search', { query: 'bees' }],
  ['image_search', { query: 'bees' }],
  ['scrape_webpage', { url: 'https://bees.example/' }],
  ['project_context', { text: 'hi' }],
  ['project_thrower', { text: 'hi' }],
  ['project_long', { text: 'hi' }],
];

const FILES = {
  'README.md': '# Shop\n',
  'tools/context.ts': module(
    'return { text: args.text, agent: context.agent, session: context.sessionId, key: context.env.SHOP_KEY, relay: process.env.BEEUNI_RELAY_TOKEN ?? null, aborted: context.signal.aborted }',
  ),
  'tools/thrower.ts': module("throw new Error('no honey today')"),
  'tools/long.ts': module("return Array.from({ length: 5000 }, (_, at) => 'line ' + at).join('\\n')"),
};

const names = (body: unknown): readonly string[] =>
  ((body as { tools?: { function: { name: string } }[] }).tools ?? []).map((tool) => tool.function.name);
const schemaOf = (body: unknown, name: string): unknown =>
  (body as { tools: { function: { name: string; parameters: unknown } }[] }).tools.find(
    (tool) => tool.function.name === name,
  )?.function.parameters;

/** What the calls came to on one harness. */
const runOn = async (harness: 'opencode' | 'pi') => {
  const rig: Rig = await makeRig({
    files: FILES,
    searchResults: [{ title: 'Bees', url: 'https://bees.example/', snippet: 'They dance.' }],
    claim: {
      env: { SHOP_KEY: CANARY.grantedSecret },
      projectTools: [
        { name: 'project_context', path: 'tools/context.ts' },
        { name: 'project_thrower', path: 'tools/thrower.ts' },
        { name: 'project_long', path: 'tools/long.ts' },
      ],
    },
  });
  try {
    const daemon: DaemonProcess = rig.start({ BEEUNI_HARNESS: harness });
    await rig.controlPlane.healthy('ready', (health) => health.runtimeReady);
    const ended: Ended[] = [];
    for (const [name, args] of CALLS) {
      const turnId = rig.controlPlane.prompt(`@@tool ${name} ${JSON.stringify(args)}\n@@say done`);
      await daemon.call('POST', '/beeuni/nudge', rig.controlPlane.daemonCredential, { reason: 'prompt' });
      const end = await rig.controlPlane.event('turn.ended', turnId);
      assert.equal(end.data['outcome'], 'Succeeded', `${harness} ${name}`);
      await rig.controlPlane.healthy('idle', (health) => health.activity.state === 'Idle');
      const part = rig.controlPlane
        .eventsOf(turnId)
        .filter(({ type }) => type === 'message.part.updated')
        .map(({ data }) => data['part'] as Fields)
        .findLast((each) => each['type'] === 'tool');
      const state = part?.['state'] as Fields;
      const text = (state['output'] ?? state['error'] ?? '') as string;
      const show = (state['metadata'] as Fields | undefined)?.['show'] ?? null;
      ended.push({
        tool: part?.['tool'],
        status: state['status'],
        output: text.replaceAll(rig.folders.root, '').replace(/output-[0-9a-f]+/, 'output'),
        show,
      });
      const asked = rig.provider.requests.at(-1)?.body as Fields | undefined;
      const told = JSON.stringify(asked?.['messages'] ?? []);
      assert.ok(told.includes(JSON.stringify(text.slice(0, 40)).slice(1, -1)), `${harness}: the model reads it too`);
    }
    const last = rig.provider.requests.at(-1)?.body;
    const offered = names(last).filter((name) => CALLS.some(([called]) => called === name));
    const schemas = offered.map((name) => [name, schemaOf(last, name)] as const);
    const memory = join(rig.folders.workspace, 'memory/b.md');
    return {
      ended,
      schemas: Object.fromEntries(schemas),
      memory: existsSync(memory) ? readFileSync(memory, 'utf8') : undefined,
    };
  } finally {
    await rig.stop();
  }
};

describe('tools on both harnesses', { skip, timeout: 600_000 }, () => {
  it('A50 have the same names, arguments, output and errors', async () => {
    const standard = await runOn('opencode');
    assert.deepEqual(
      standard.ended.map(({ tool, status }) => [tool, status]),
      CALLS.map(([name, args]) => {
        const fails = ['image_search', 'scrape_webpage', 'project_thrower'].includes(name);
        return [name, fails || JSON.stringify(args).includes('../README') ? 'error' : 'completed'];
      }),
    );
    assert.deepEqual(standard.memory, 'one\n');
    const experimental = await runOn('pi');
    assert.deepEqual(experimental, standard);
  });
});
