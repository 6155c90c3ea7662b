// The guard of the plug-in: which files the server may import.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Script } from 'node:vm';
import { foreignFiles, pluginSource } from './plugin-source.ts';

describe('foreignFiles', () => {
  it('FF8 lets the server import its own binary and our configuration, and nothing else from disk', () => {
    const foreign = new RegExp(foreignFiles('/opt/beeuni/config/open.code'));
    for (const path of ['/$bunfs/root/chunk-1.js', '/opt/beeuni/config/open.code/plugins/beeuni.js']) {
      assert.ok(!foreign.test(path), path);
    }
    for (const path of [
      '/workspace/.opencode/plugin/x.js',
      '/workspace/tools/x.ts',
      '/opt/beeuni/config/openXcode/plugins/x.js',
      '/opt/beeuni/config/open.code.next/x.js',
      '/home/beeuni/.cache/opencode/node_modules/evil/index.js',
      '/tmp/$bunfs/x.js',
    ]) {
      assert.ok(foreign.test(path), path);
    }
  });
});

describe('pluginSource', () => {
  it('is a module that parses and holds no token', () => {
    const source = pluginSource({
      ownTools: ['/c/o/own-tools/x.ts'],
      toolsUrl: 'http://127.0.0.1:1/beeuni/tools',
      judgeUrl: 'http://127.0.0.1:9/judge',
      tools: [{ name: 'show', description: "It's `x` ${y}\u2028", parameters: { type: 'object' } }],
      environmentUrl: 'http://127.0.0.1:1/env',
      tokenVariable: 'T',
      configDirectory: '/c/o',
    });
    assert.doesNotThrow(() => new Script(`(async () => {${source.replace('export const', 'const')}})`));
    assert.match(source, /process\.env\["T"\]/);
  });
});
