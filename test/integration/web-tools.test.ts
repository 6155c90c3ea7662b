// The web tools of the control plane over real sockets: routes, rules, the search engine, pages, and every way in which an
// address could lead to where nobody may go.
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { createGzip } from 'node:zlib';
import { createClient } from '#base/http/client.ts';
import { type Listening, listen } from '#base/http/listen.ts';
import { mount } from '#base/http/mount.ts';
import { createHttpServer } from '#base/http/server.ts';
import { createLogger } from '#base/log.ts';
import type { Caller } from '#controlplane/app/caller.ts';
import type { ProjectConfig } from '#controlplane/app/project-ports.ts';
import { makeRateLimit } from '#controlplane/app/rate-limit.ts';
import { makeWeb, type WebPorts } from '#controlplane/app/web.ts';
import { makeWebHandlers } from '#controlplane/http/web.ts';
import { makePublicFetch, type PublicFetch } from '#controlplane/web/public-fetch.ts';
import { makeScrape } from '#controlplane/web/scrape.ts';
import { makeSearxng } from '#controlplane/web/searxng.ts';
import { wireWeb } from '#controlplane/wiring/web.ts';
import { webImagesRoute, webScrapeRoute, webSearchRoute } from '#schema/wire/web.ts';
import { manualClock } from '#test/support/manual-clock.ts';
import { startWebWorld, type WebWorld } from '#test/support/web-world.ts';

const SESSION: Caller = {
  kind: 'sandbox',
  sessionUid: 'session-1',
  generation: 1,
  podUid: 'pod-1',
  namespace: 'team',
  projectUid: 'project-1',
};

const aConfig = (config: Partial<ProjectConfig> = {}): ProjectConfig => ({
  commit: 'a'.repeat(40),
  defaultAgent: 'dev',
  agents: [{ name: 'dev', mode: 'primary', prompt: '', tools: 'all', skills: 'all' }],
  secrets: {},
  models: [],
  ...config,
});

/** Names of the test's own resolver. */
const NAMES: Readonly<Record<string, readonly string[]>> = {
  'pages.test': ['127.0.0.1'],
  'hidden.test': ['127.0.0.1'],
  'metadata.test': ['169.254.169.254'],
  'mapped.test': ['::ffff:10.0.0.1'],
};

const html = (response: ServerResponse, body: string): void => {
  response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' });
  response.end(body);
};
const redirect = (to: string) => (_request: unknown, response: ServerResponse) => {
  response.writeHead(302, { location: to }).end();
};

describe('the web routes of the sandbox listener', { timeout: 120_000 }, () => {
  let web: WebWorld;
  let connections: PublicFetch;
  let listening: Listening;
  let call: ReturnType<typeof createClient>['call'];
  let config: ProjectConfig | undefined = aConfig();
  let ports: WebPorts;
  const clock = manualClock();
  const seen: string[] = [];

  before(async () => {
    web = await startWebWorld({
      results: {
        general: [
          { title: 'Bees\n dance', url: 'https://bees.example/a', content: 'They dance.' },
          { title: 'Evil', url: 'javascript:alert(1)', content: 'x' },
          { title: 'No address' },
          { title: 'More bees', url: 'https://bees.example/b' },
        ],
        images: [
          { title: 'A bee', url: 'https://bees.example/a', img_src: '//img.example/bee.png' },
          { title: 'Not an image', url: 'https://bees.example/b', img_src: 'data:image/png;base64,xx' },
        ],
      },
      pages: {
        '/page': (_request, response) => html(response, '<title>Bees</title><p>They dance.</p>'),
        '/latin': (_request, response) => {
          response.writeHead(200, { 'content-type': 'text/plain; charset=iso-8859-1' });
          response.end(Buffer.from([0x42, 0xe4, 0x72]));
        },
        '/image': (_request, response) => response.writeHead(200, { 'content-type': 'image/png' }).end('x'),
        '/gone': (_request, response) => response.writeHead(410).end('gone'),
        '/hop': redirect('/page'),
        '/loop': redirect('/loop'),
        '/to-loopback': (_request, response) =>
          response.writeHead(302, { location: `http://127.0.0.1:${web.port}/secret` }).end(),
        '/to-name': (_request, response) =>
          response.writeHead(302, { location: `http://hidden.test:${web.port}/secret` }).end(),
        '/to-metadata': redirect('http://169.254.169.254/latest/meta-data/'),
        '/to-file': redirect('file:///etc/passwd'),
        '/secret': (_request, response) => html(response, '<p>the secret</p>'),
        '/bomb': (_request, response) => {
          response.writeHead(200, { 'content-type': 'text/plain', 'content-encoding': 'gzip' });
          const gzip = createGzip();
          gzip.on('error', () => {});
          response.on('close', () => gzip.destroy());
          gzip.pipe(response);
          const block = Buffer.alloc(1_048_576, 'a');
          let left = 200;
          const write = (): void => {
            while (left > 0 && !gzip.destroyed) {
              left -= 1;
              if (!gzip.write(block)) {
                gzip.once('drain', write);
                return;
              }
            }
            gzip.end();
          };
          write();
        },
      },
    });
    connections = makePublicFetch({
      allowedAddresses: ['pages.test'],
      maxConnections: 8,
      lookupAll: async (host) => {
        const addresses = NAMES[host];
        if (addresses === undefined) throw new Error(`no such name: ${host}`);
        return addresses.map((address) => ({ address, family: address.includes(':') ? (6 as const) : (4 as const) }));
      },
    });
    const { fetchFor } = connections;
    const engine = makeSearxng({ baseUrl: `http://pages.test:${web.port}/`, fetchFor });
    ports = {
      ...engine,
      scrape: makeScrape({ userAgent: 'Beeuni/test', fetchFor }).scrape,
      findConfig: async () => config,
      takeCall: makeRateLimit({ clock, perSecond: 1, burst: 40 }),
      observe: (tool, result) => seen.push(`${tool} ${result}`),
    };
    const handlers = makeWebHandlers(
      makeWeb({
        ...ports,
        search: (...args) => ports.search?.(...args) ?? Promise.reject(new Error('not configured')),
      }),
    );
    const server = createHttpServer({ listener: 'sandbox', log: createLogger({ level: 'error', write: () => {} }) });
    const guard = { authenticate: async () => SESSION, authorize: async () => {} };
    mount(server, webSearchRoute, handlers.searchWeb, guard);
    mount(server, webImagesRoute, handlers.searchWebImages, guard);
    mount(server, webScrapeRoute, handlers.scrapeWebPage, guard);
    listening = await listen(server, { port: 0, host: '127.0.0.1' });
    const client = createClient({ baseUrl: listening.url, peer: 'it', unreachable: 'control_plane_unavailable' });
    call = client.call;
  });
  after(async () => {
    await listening?.stop(0);
    await connections?.close();
    await web?.stop();
  });

  const scrape = (url: string) => call(webScrapeRoute, { body: { url } });
  const page = (path: string) => scrape(`http://pages.test:${web.port}${path}`);

  it('A44 searches by SearXNG and drops results that are no web addresses', async () => {
    const { body } = await call(webSearchRoute, { body: { query: 'bees & flowers', limit: 2 } });
    assert.deepEqual(body.results, [
      { title: 'Bees dance', url: 'https://bees.example/a', snippet: 'They dance.' },
      { title: 'More bees', url: 'https://bees.example/b', snippet: '' },
    ]);
    assert.equal(web.requests.at(-1), 'GET /search?q=bees+%26+flowers&format=json&categories=general');
  });

  it('A44 searches for images with an address of their own', async () => {
    const { body } = await call(webImagesRoute, { body: { query: 'bee', limit: 5 } });
    assert.deepEqual(body.results, [
      { title: 'A bee', imageUrl: 'https://img.example/bee.png', pageUrl: 'https://bees.example/a' },
    ]);
  });

  it('A44 reads a page as text, behind a redirect too, in its own character set', async () => {
    const { body } = await page('/hop');
    assert.deepEqual(body, {
      url: `http://pages.test:${web.port}/page`,
      title: 'Bees',
      text: 'They dance.',
      isCut: false,
    });
    assert.equal((await page('/latin')).body.text, 'Bär');
  });

  it('says what is wrong with a page that is no text, is gone, or redirects for ever', async () => {
    await assert.rejects(page('/image'), { code: 'web_failed', message: /image\/png, which is no text/ });
    await assert.rejects(page('/gone'), { code: 'web_failed', message: /HTTP 410/ });
    await assert.rejects(page('/loop'), { code: 'web_failed', message: /redirects more than 5 times/ });
  });

  it('FC9 reads a compressed bomb no further than its limit', async () => {
    const before = process.memoryUsage().rss;
    const { body } = await page('/bomb');
    assert.ok(body.isCut && body.text.length === 524_288);
    assert.ok(process.memoryUsage().rss - before < 150_000_000);
  });

  for (const address of [
    'http://localhost/',
    'http://LOCALHOST./',
    'http://127.0.0.1/',
    'http://127.1/',
    'http://2130706433/',
    'http://0x7f000001/',
    'http://0177.0.0.1/',
    'http://0.0.0.0/',
    'http://[::1]/',
    'http://[::ffff:127.0.0.1]/',
    'http://[::ffff:7f00:1]/',
    'http://169.254.169.254/latest/meta-data/',
    'http://10.0.0.1/',
    'http://192.168.1.1/',
    'http://[fd00::1]/',
    'http://[fe80::1]/',
    'http://user:password@pages.test/',
    'http://hidden.test/secret',
    'http://metadata.test/',
    'http://mapped.test/',
  ]) {
    it(`FF10 refuses to read ${address}`, async () => {
      const withPort = address.replace('hidden.test', `hidden.test:${web.port}`);
      await assert.rejects(scrape(withPort), { code: 'address_not_allowed' });
    });
  }

  it('FF10 refuses what is no web address at all, before anything is called', async () => {
    for (const address of ['file:///etc/passwd', 'ftp://pages.test/', 'gopher://pages.test/', '//pages.test', '']) {
      await assert.rejects(scrape(address), { code: 'invalid_request' });
    }
  });

  it('FF10 follows no redirect to an address that is not public', async () => {
    for (const path of ['/to-loopback', '/to-name', '/to-metadata', '/to-file']) {
      await assert.rejects(page(path), { code: 'address_not_allowed' }, path);
    }
    assert.ok(!web.requests.some((request) => request.includes('/secret')), 'the secret page was never asked for');
  });

  it('A52 refuses a tool that no agent of the project is granted', async () => {
    for (const changed of [
      aConfig({ beeuniTools: ['memory'] }),
      aConfig({ agents: [{ name: 'dev', mode: 'primary', prompt: '', tools: ['memory'], skills: 'none' }] }),
      undefined,
    ]) {
      config = changed;
      await assert.rejects(page('/page'), { code: 'forbidden' });
    }
    config = aConfig();
  });

  it('A115 says so when nothing is configured', async () => {
    const { search } = ports;
    ports = { ...ports, search: undefined };
    const bare = makeWeb({ ...ports });
    await assert.rejects(bare.search({ sessionUid: 's', projectUid: 'p' }, 'bees', 1, new AbortController().signal), {
      code: 'web_not_configured',
      message: /web_search has no back end in this installation/,
    });
    ports = { ...ports, search };
  });

  it('says that the search engine fails, without its words', async () => {
    const broken = makeSearxng({
      baseUrl: `http://pages.test:${web.port}/nothing`,
      fetchFor: connections.fetchFor,
    });
    await assert.rejects(broken.search('bees', 1, new AbortController().signal), {
      code: 'web_failed',
      message: 'the search engine answered HTTP 404',
    });
  });

  it('FF10 lets searches reach the engine of the installation, and pages not', async () => {
    const project = {
      uid: 'p',
      namespace: 'n',
      name: 'p',
      request: {},
      fact: null,
      config: aConfig(),
      secrets_revision: 0,
    };
    const counted: unknown[] = [];
    const engineUrl = `http://127.0.0.1:${web.port}`;
    const { handlers, background } = wireWeb({
      version: '1',
      clock,
      database: { query: async () => [project] },
      instruments: { webCallsTotal: { inc: (labels: unknown) => counted.push(labels) } },
      config: {
        settings: {
          BEEUNI_WEB_SEARCH_URL: engineUrl,
          BEEUNI_WEB_SCRAPE: true,
          BEEUNI_WEB_ALLOWED_PRIVATE_HOSTS: [],
        },
      },
    } as unknown as Parameters<typeof wireWeb>[0]);
    const given = { caller: SESSION, signal: new AbortController().signal };
    type Call = Parameters<typeof handlers.searchWeb>[0];
    const found = await handlers.searchWeb({ ...given, body: { query: 'bees', limit: 1 } } as Call);
    assert.equal(found.body.results.length, 1);
    const body = { url: `${engineUrl}/page` };
    await assert.rejects(
      async () => handlers.scrapeWebPage({ ...given, body } as Parameters<typeof handlers.scrapeWebPage>[0]),
      { code: 'address_not_allowed' },
    );
    assert.deepEqual(counted, [
      { tool: 'web_search', result: 'ok' },
      { tool: 'scrape_webpage', result: 'failed' },
    ]);
    await background.stop();
  });

  it('limits the calls of one session', async () => {
    const results = await Promise.allSettled(
      Array.from({ length: 45 }, () => call(webSearchRoute, { body: { query: 'bees', limit: 1 } })),
    );
    const refused = results.filter((result) => result.status === 'rejected');
    assert.ok(refused.length >= 5);
    assert.ok(refused.every((result) => (result.reason as { code?: string }).code === 'rate_limited'));
    assert.ok(seen.includes('web_search ok') && seen.includes('scrape_webpage failed'));
  });
});
