// The words of the web tools, and what they hand on.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { imageSearchTool, scrapeWebpageTool, type WebAccess, webSearchTool } from './web.ts';

const context = { agent: 'dev', threadId: 'root', callId: 'c', signal: new AbortController().signal };
const asked: unknown[] = [];
const web: WebAccess = {
  search: async (query, limit) => {
    asked.push([query, limit]);
    return query === 'nothing' ? [] : [{ title: 'Bees', url: 'https://b.example/', snippet: '' }];
  },
  searchImages: async () => [{ title: 'A bee', imageUrl: 'https://i.example/b.png', pageUrl: 'https://b.example/' }],
  scrape: async (url) => ({ url, title: 'Bees', text: 'They dance.', isCut: true }),
};

describe('the web tools', () => {
  it('A44 number what a search found, eight at most unless the call says so', async () => {
    const result = await webSearchTool(web).run({ query: 'bees' }, context);
    assert.equal(result.output, '1. Bees\nhttps://b.example/');
    assert.equal(
      (await webSearchTool(web).run({ query: 'nothing', limit: 3 }, context)).output,
      'Nothing was found for: nothing',
    );
    assert.deepEqual(asked, [
      ['bees', 8],
      ['nothing', 3],
    ]);
  });

  it('A44 give an image with its own address and that of its page', async () => {
    const result = await imageSearchTool(web).run({ query: 'bee' }, context);
    assert.equal(result.output, '1. A bee\nimage: https://i.example/b.png\npage: https://b.example/');
  });

  it('A44 say where a page is cut', async () => {
    const result = await scrapeWebpageTool(web).run({ url: 'https://b.example/' }, context);
    assert.equal(
      result.output,
      'Bees\nhttps://b.example/\n\nThey dance.\n\n[The page is longer; the rest was not read.]',
    );
  });

  it('refuse arguments that the control plane would refuse', async () => {
    for (const args of [{ query: '' }, { query: 'x', limit: 21 }, { query: 'x'.repeat(513) }]) {
      await assert.rejects(async () => webSearchTool(web).run(args, context), { name: 'ToolError' });
    }
    await assert.rejects(async () => scrapeWebpageTool(web).run({ url: 'file:///etc/passwd' }, context), {
      name: 'ToolError',
    });
  });
});
