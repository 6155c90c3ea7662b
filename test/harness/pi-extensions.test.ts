// What code of a project finds when Pi loads it: Pi's own packages, the very ones that run, and the packages beside it.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { makePiRig, type PiRig, whyNoPi } from '#test/support/pi.ts';

describe('extensions of Pi', { skip: whyNoPi() }, () => {
  let rig: PiRig;
  before(async () => {
    rig = await makePiRig({
      project: {
        'settings.json': JSON.stringify({ packages: ['./pack'] }),
        'pack/package.json': '{"name":"pack","version":"1.0.0","type":"module","pi":{"extensions":["./main.ts"]}}\n',
        'pack/node_modules/esm/package.json':
          '{"name":"esm","version":"1.0.0","type":"module","exports":"./main.js"}\n',
        'pack/node_modules/esm/main.js':
          "import { SessionManager } from '@earendil-works/pi-coding-agent';\nexport default await Promise.resolve(SessionManager);\n",
        'pack/node_modules/cjs/package.json': '{"name":"cjs","version":"1.0.0","main":"main.js"}\n',
        'pack/node_modules/cjs/main.js': "module.exports = require('node:path').basename(__dirname);\n",
        'pack/main.ts': `import { Agent } from '@earendil-works/pi-agent-core';
import { Type as TypeOfAi } from '@earendil-works/pi-ai';
import { SessionManager, VERSION, type ExtensionAPI } from '@earendil-works/pi-coding-agent';
import { Text } from '@earendil-works/pi-tui';
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { Value } from 'typebox/value';
import cjs from 'cjs';
import esm from 'esm';
export default (pi: ExtensionAPI) => {
  pi.registerTool({ name: 'seen', label: 's', description: 'Says what it sees', parameters: Type.Object({}),
    execute: async (_id: string, _input: any, _signal: any, _update: any, ctx: any) => {
      const seen = { VERSION, own: ctx.sessionManager instanceof SessionManager, beside: esm === SessionManager, cjs, type: TypeOfAi === Type,
        valid: Compile(Type.String()).Check('a') && Value.Check(Type.String(), 'a'), classes: [typeof Agent, typeof Text] };
      return { content: [{ type: 'text', text: JSON.stringify(seen) }] };
    } });
};
`,
      },
    });
    await rig.ready();
  });
  after(async () => rig?.stop());

  it('A72 A80 get the packages of Pi that run, also through a package of their own', async () => {
    const { version, details } = rig.harness().health();
    assert.deepEqual((details['extensions'] as { failed: unknown[] }).failed, []);
    assert.deepEqual(await rig.submit('@@tool seen {}\n@@say ok'), { kind: 'completed' });
    const messages = (rig.provider.requests.at(-1)?.body['messages'] ?? []) as { content: string }[];
    assert.deepEqual(JSON.parse(messages.at(-1)?.content ?? ''), {
      VERSION: version,
      own: true,
      beside: true,
      cjs: 'cjs',
      type: true,
      valid: true,
      classes: ['function', 'function'],
    });
  });
});
