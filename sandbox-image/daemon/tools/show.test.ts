// The cards of `show`, and which files one may name.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { showTool } from './show.ts';

describe('show', () => {
  const workspace = mkdtempSync(join(tmpdir(), 'beeuni-show-'));
  const tool = showTool(workspace);
  const context = { agent: 'dev', threadId: 'root', callId: 'c', signal: new AbortController().signal };
  const card = async (args: Record<string, unknown>) => (await tool.run(args, context)).metadata?.['show'];

  before(() => {
    mkdirSync(join(workspace, 'out'));
    writeFileSync(join(workspace, 'out/chart.png'), 'png');
    symlinkSync('/etc/passwd', join(workspace, 'out/link'));
    symlinkSync('/etc', join(workspace, 'etc'));
  });
  after(() => rmSync(workspace, { recursive: true, force: true }));

  it('A44 makes a card of each type', async () => {
    assert.deepEqual(await card({ title: 'T', type: 'text', text: 'x' }), { title: 'T', type: 'text', text: 'x' });
    assert.deepEqual(await card({ title: 'T', type: 'code', text: 'x', language: 'ts' }), {
      title: 'T',
      type: 'code',
      text: 'x',
      language: 'ts',
    });
    assert.deepEqual(await card({ title: 'T', type: 'link', url: 'https://bees.example/' }), {
      title: 'T',
      type: 'link',
      url: 'https://bees.example/',
    });
    for (const path of ['out/chart.png', './out/chart.png', join(workspace, 'out/chart.png')]) {
      assert.deepEqual(await card({ title: 'T', type: 'file', path }), {
        title: 'T',
        type: 'file',
        path: 'out/chart.png',
        mime: 'image/png',
        bytes: 3,
      });
    }
  });

  it('FF5 names no file outside of the workspace and follows no link', async () => {
    for (const path of ['../x', '/etc/passwd', 'out/link', 'etc/passwd', 'out', 'out/none', 'none/x', '.git/config']) {
      await assert.rejects(card({ title: 'T', type: 'file', path }), { name: 'ToolError' }, path);
    }
  });

  it('FF12 takes no address that could run something', async () => {
    for (const url of ['javascript:alert(1)', 'data:text/html,x', 'file:///etc/passwd']) {
      await assert.rejects(async () => card({ title: 'T', type: 'link', url }), { name: 'ToolError' }, url);
    }
  });

  it('says what a card lacks', async () => {
    await assert.rejects(card({ title: 'T', type: 'link' }), { message: 'a card of this type needs url' });
  });
});
