// One call by our own way of sending, against servers that answer oddly.
import assert from 'node:assert/strict';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { until } from '#test/support/until.ts';
import { readText, send } from './send.ts';

describe('send', () => {
  let server: Server;
  let url: string;
  const hanging: ServerResponse[] = [];
  before(async () => {
    server = createServer((request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (text: string) => {
        body += text;
      });
      request.on('end', () => {
        if (request.url === '/away') response.writeHead(302, { location: '/' }).end();
        else if (request.url === '/silent') hanging.push(response);
        else if (request.url === '/begun') {
          hanging.push(response);
          response.write('a');
        } else {
          response.setHeader('x-twice', ['a', 'b']);
          response.end(JSON.stringify([request.method, request.headers['x-own'] ?? null, body]));
        }
      });
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  it('sends method, headers and body, and gives back status, headers and text', async () => {
    const answer = await send(`${url}/`, { method: 'PUT', headers: { 'x-own': 'here' }, body: 'äh' });
    assert.deepEqual([answer.status, answer.headers.get('X-Twice'), answer.headers.get('none')], [200, 'a, b', null]);
    assert.deepEqual(JSON.parse(await readText(answer)), ['PUT', 'here', 'äh']);
    assert.deepEqual(JSON.parse(await readText(await send(`${url}/`, {}))), ['GET', null, '']);
  });

  it('follows no redirect, so that a credential goes nowhere else', async () => {
    assert.equal((await send(`${url}/away`, {})).status, 302);
  });

  it('reads no more text than it may', async () => {
    await assert.rejects(readText(await send(`${url}/`, {}), 3), RangeError);
  });

  it('ends with the reason of the signal before the head, and closes the connection after it', async () => {
    const stop = new AbortController();
    const silent = send(`${url}/silent`, { signal: stop.signal });
    const begun = await send(`${url}/begun`, { signal: stop.signal });
    const text = readText(begun);
    await until('both were asked', () => hanging.length === 2);
    stop.abort(new RangeError('enough'));
    await assert.rejects(silent, /enough/);
    await assert.rejects(text);
    await until('the server knows', () => hanging.every((response) => response.destroyed));
  });

  it('says why nobody answers', async () => {
    await assert.rejects(send('http://127.0.0.1:9/', {}), { code: 'ECONNREFUSED' });
    await assert.rejects(send('ftp://127.0.0.1/', {}), /rotocol/);
  });
});
