// The gateway's own connections to providers: TLS and its checks, connections that are used again, limits and ends.
// Source: docs/decisions/0024, faults FC2, FF10.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer as createPlainServer } from 'node:http';
import { createServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type LookupFunction } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { type Connections, makeConnections } from '#controlplane/gateway/connections.ts';
import { makeCertificates } from '#test/cluster/pki.ts';
import { until } from '#test/support/until.ts';

const lookup: LookupFunction = (_host, options, callback) => {
  if (options.all === true) callback(null, [{ address: '127.0.0.1', family: 4 }]);
  else callback(null, '127.0.0.1', 4);
};
const open: Connections[] = [];
const connectTo = (url: string, connectTimeoutMs = 2_000): Connections => {
  const made = makeConnections({ url: new URL(url), lookup, connectTimeoutMs });
  open.push(made);
  return made;
};
after(() => {
  for (const each of open) each.destroy();
});

/** One call to its end: the status and body, or the error. */
const call = (connections: Connections, body = Buffer.from('{}')): Promise<string> =>
  new Promise((resolve) => {
    let text = '';
    connections.send(
      { path: '/x', headers: 'content-type: application/json\r\n', body: [body] },
      {
        onHead: (status) => {
          text = `${status} `;
        },
        onBody: (piece) => {
          text += piece.toString('utf8');
        },
        onEnd: () => resolve(text),
        onError: (error) => resolve(`error: ${error.message}`),
      },
    );
  });

test('a provider with TLS is reached when its certificate is trusted and of its name, and not otherwise', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'beeuni-tls-'));
  await makeCertificates(
    folder,
    ['ca'],
    [
      {
        name: 'good',
        authority: 'ca',
        subject: '/CN=provider.example',
        usage: 'serverAuth',
        altNames: ['DNS:provider.example'],
      },
    ],
  );
  const read = (name: string) => readFile(join(folder, name), 'utf8');
  const server = createServer({ key: await read('good.key'), cert: await read('good.crt') }, (request, response) => {
    request
      .resume()
      .on('end', () => response.end(`sni ${String((request.socket as { servername?: unknown }).servername)}`));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const before = getCACertificates('default');
  try {
    assert.match(await call(connectTo(`https://provider.example:${port}`)), /^error: /);
    setDefaultCACertificates([...before, await read('ca.crt')]);
    assert.equal(await call(connectTo(`https://provider.example:${port}`)), '200 sni provider.example');
    assert.match(await call(connectTo(`https://other.example:${port}`)), /^error: .*(altnames|Host)/i);
  } finally {
    setDefaultCACertificates(before);
    server.closeAllConnections();
    server.close();
    await rm(folder, { recursive: true, force: true });
  }
});

test('a connection is used again one call after the other, and calls at once have one each', async () => {
  const sockets = new Set<unknown>();
  const server = createPlainServer((request, response) => {
    sockets.add(request.socket);
    request.resume().on('end', () => setTimeout(() => response.end('ok'), 20));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const connections = connectTo(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  for (let count = 0; count < 5; count += 1) assert.equal(await call(connections), '200 ok');
  assert.equal(sockets.size, 1);
  await Promise.all(Array.from({ length: 4 }, () => call(connections)));
  assert.equal(sockets.size, 4);
  assert.equal(await call(connections, Buffer.alloc(300_000, 0x20)), '200 ok');
  connections.destroy();
  server.close();
});

test('a connection that the provider closes while it lies idle is not used again', async () => {
  let count = 0;
  const server = createTcpServer((socket) => {
    count += 1;
    socket.on('error', () => undefined);
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
      setTimeout(() => socket.end(), 10);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const connections = connectTo(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  assert.equal(await call(connections), '200 ok');
  await until('the provider has closed it', async () => {
    const answer = await call(connections);
    return answer === '200 ok' && count >= 2;
  });
  connections.destroy();
  server.close();
});

test('FC2 an address that does not answer is given up at the connect limit', async () => {
  // Nothing listens there, and nothing refuses either.
  const connections = makeConnections({
    url: new URL('http://192.0.2.1:9'),
    lookup: (_host, _options, callback) => callback(null, '192.0.2.1', 4),
    connectTimeoutMs: 150,
  });
  open.push(connections);
  assert.match(await call(connections), /^error: /);
});

test('an answer that comes before the request was sent ends the connection, and an abort ends the call once', async () => {
  const server = createTcpServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => socket.write('HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n'));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  assert.equal(await call(connectTo(url), Buffer.alloc(64 * 1_024 * 1_024)), '413 ');
  const errors: string[] = [];
  const silent = createTcpServer((socket) => socket.on('error', () => undefined).resume());
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const connections = connectTo(`http://127.0.0.1:${(silent.address() as AddressInfo).port}`);
  const running = connections.send(
    { path: '/x', headers: '', body: [] },
    {
      onHead: () => {},
      onBody: () => {},
      onEnd: () => errors.push('end'),
      onError: ({ message }) => errors.push(message),
    },
  );
  running.abort(new Error('left'));
  running.abort(new Error('again'));
  await until('the call is over', () => errors.length > 0);
  assert.deepEqual(errors, ['left']);
  connections.destroy();
  server.close();
  silent.close();
});
