// The one path of every call: who may, what comes out, and that it ends exactly once.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { z } from 'zod';
import { UnavailableError } from '#base/errors.ts';
import { createLogger } from '#base/log.ts';
import type { CompiledAgent } from '#schema/wire/claim.ts';
import { defineTool, type Tool, ToolError, type ToolResult } from './define-tool.ts';
import { createToolHost } from './registry.ts';

const log = createLogger({ level: 'error', write: () => {} });
const anAgent = (agent: Partial<CompiledAgent>): CompiledAgent => ({
  name: 'dev',
  mode: 'primary',
  prompt: '',
  tools: 'all',
  skills: 'all',
  ...agent,
});
const aTool = (name: string, run: () => Promise<ToolResult> = async () => ({ title: name, output: 'done' })): Tool =>
  defineTool({ name, description: name, input: z.strictObject({ text: z.string().optional() }), run });
const NAMES = ['web_search', 'image_search', 'scrape_webpage', 'memory', 'show', 'deploy'];

const hostOf = (agents: readonly CompiledAgent[], tools = NAMES.map((name) => aTool(name))) =>
  createToolHost({ tools, agents, sessionAgent: 'dev', cutOutput: async (text) => text, log });
const call = (name: string, agent: string | null = 'dev', args: unknown = {}) => ({
  name,
  arguments: args,
  threadId: 'root',
  callId: 'c1',
  agent,
});
const open = (): AbortSignal => new AbortController().signal;

describe('who may use a tool', () => {
  const visible = (agent: Partial<CompiledAgent>) => [...hostOf([anAgent(agent)]).visibleTo('dev')];

  it('A40 follows all, none and a list', () => {
    assert.deepEqual(visible({ tools: 'all' }), NAMES);
    assert.deepEqual(visible({ tools: 'none' }), []);
    assert.deepEqual(visible({ tools: ['deploy', 'memory', 'unknown'] }), ['memory', 'deploy']);
  });

  it('A52 hides a web tool that websearch or webfetch denies, unless a rule under its own name says otherwise', () => {
    assert.deepEqual(visible({ permission: { websearch: 'deny', image_search: 'allow' } }), [
      'image_search',
      'scrape_webpage',
      'memory',
      'show',
      'deploy',
    ]);
    assert.ok(!visible({ permission: { webfetch: 'deny' } }).includes('scrape_webpage'));
    assert.deepEqual(visible({ permission: 'deny' }), []);
  });

  it('A52 leaves a tool to ask about to the harness', () => {
    assert.deepEqual(visible({ permission: { websearch: 'ask', memory: 'ask' } }), NAMES);
  });

  it('A111 gives an agent of the harness itself what the agent of the session has', () => {
    const host = hostOf([anAgent({ tools: ['memory'] }), anAgent({ name: 'wide', tools: 'all' })]);
    for (const agent of [null, 'general', 'dev'])
      assert.deepEqual([...host.visibleTo(agent)], ['memory'], String(agent));
    assert.equal(host.visibleTo('wide').size, NAMES.length);
  });

  it('A111 gives a subagent what both it and the agent of the session are granted', () => {
    const host = hostOf([
      anAgent({ tools: ['memory', 'show'] }),
      anAgent({ name: 'helper', mode: 'subagent', tools: ['show', 'deploy'] }),
      anAgent({ name: 'both', mode: 'all', tools: ['deploy'] }),
    ]);
    assert.deepEqual([...host.visibleTo('helper')], ['show']);
    assert.deepEqual([...host.visibleTo('both')], ['deploy']);
  });

  it('A111 refuses a hidden tool when it is called, and A110 knows it from one that is not loaded', async () => {
    let ran = false;
    const tool = aTool('memory', async () => {
      ran = true;
      return { title: '', output: '' };
    });
    const host = hostOf([anAgent({ tools: 'none' })], [tool]);
    assert.deepEqual([host.access('memory', 'dev'), host.access('nothing', 'dev')], ['forbidden', 'unknown']);
    assert.equal((await host.call(call('memory'), open())).kind, 'failed');
    assert.equal((await host.call(call('nothing'), open())).kind, 'failed');
    assert.ok(!ran);
  });
});

describe('a call', () => {
  it('gives back title, output and metadata', async () => {
    const tool = aTool('show', async () => ({ title: 't', output: 'o', metadata: { a: 1 } }));
    assert.deepEqual(await hostOf([anAgent({})], [tool]).call(call('show'), open()), {
      kind: 'completed',
      title: 't',
      output: 'o',
      metadata: { a: 1 },
      attachments: [],
    });
  });

  it('fails with the place of an argument that does not fit', async () => {
    const outcome = await hostOf([anAgent({})]).call(call('show', 'dev', { text: 1, more: true }), open());
    assert.ok(outcome.kind === 'failed');
    assert.match(outcome.message, /^the arguments of show do not fit: text: .*; the arguments: /);
  });

  it('passes on what a tool or the control plane says, and no word of a bug', async () => {
    const messageOf = async (error: Error): Promise<string> => {
      const outcome = await hostOf([anAgent({})], [aTool('show', async () => Promise.reject(error))]).call(
        call('show'),
        open(),
      );
      return outcome.kind === 'failed' ? outcome.message : '';
    };
    assert.equal(await messageOf(new ToolError('no honey')), 'no honey');
    assert.equal(await messageOf(new UnavailableError('web_failed', 'the page is gone')), 'the page is gone');
    assert.equal(await messageOf(new TypeError('secret internals')), 'the tool "show" broke');
  });

  it('ends at once when it is aborted, also for a tool that heeds nothing, and drops the late answer', async () => {
    const late = Promise.withResolvers<ToolResult>();
    const host = hostOf([anAgent({})], [aTool('show', () => late.promise)]);
    const abort = new AbortController();
    const running = host.call(call('show'), abort.signal);
    abort.abort();
    assert.deepEqual(await running, { kind: 'failed', message: 'the call was aborted' });
    late.resolve({ title: '', output: 'late' });
    assert.deepEqual(await running, { kind: 'failed', message: 'the call was aborted' });
    assert.equal((await host.call(call('show'), abort.signal)).kind, 'failed');
  });

  it('drops metadata that no event could carry', async () => {
    const tool = aTool('show', async () => ({ title: '', output: '', metadata: { big: 'x'.repeat(70_000) } }));
    const outcome = await hostOf([anAgent({})], [tool]).call(call('show'), open());
    assert.deepEqual(outcome.kind === 'completed' && outcome.metadata, {});
  });

  it('A94 keeps the first of two tools of one name', async () => {
    const host = hostOf([anAgent({})], [aTool('x'), aTool('x', async () => ({ title: '', output: 'second' }))]);
    assert.equal(host.specs.length, 1);
    const outcome = await host.call(call('x'), open());
    assert.equal(outcome.kind === 'completed' && outcome.output, 'done');
  });
});
