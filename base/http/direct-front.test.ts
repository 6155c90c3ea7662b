// The front before Node's HTTP: what it serves itself, what it gives away, and what ends a connection. Over real sockets.
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { after, afterEach, test } from 'node:test';
import { type Clock, systemClock } from '#base/clock.ts';
import { manualClock } from '#test/support/manual-clock.ts';
import { until } from '#test/support/until.ts';
import { type DirectFront, makeDirectFront, type ServeDirect } from './direct-front.ts';

const LIMITS = { headMs: 10_000, requestMs: 60_000, idleMs: 72_000 };
const servers: Server[] = [];
const sockets: Socket[] = [];
after(() => {
  for (const server of servers) server.close();
});
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const server of servers) server.closeAllConnections();
});

type Rig = Readonly<{ front: DirectFront; open: () => Client; seen: string[] }>;
type Client = Readonly<{ socket: Socket; text: () => string; isClosed: () => boolean }>;

/** A server whose Node side answers `node <method> <url>`, and whose front serves `POST /direct`. */
const startRig = async (serve: ServeDirect, clock: Clock = systemClock): Promise<Rig> => {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      seen.push(`${request.method} ${request.url} ${Buffer.concat(parts).toString('utf8')}`);
      response.end(`node ${request.method} ${request.url}`);
    });
  });
  server.on('clientError', (_error, socket) => socket.end('HTTP/1.1 408 Late\r\nconnection: close\r\n\r\n'));
  const front = makeDirectFront(server, { clock, maxHeadBytes: 1_024, limits: LIMITS });
  front.routes.set('POST /direct', serve);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  servers.push(server);
  const { port } = server.address() as AddressInfo;
  const open = (): Client => {
    const socket = connect(port, '127.0.0.1');
    sockets.push(socket);
    let text = '';
    let isClosed = false;
    socket.on('data', (bytes: Buffer) => {
      text += bytes.toString('latin1');
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      isClosed = true;
    });
    return { socket, text: () => text, isClosed: () => isClosed };
  };
  return { front, open, seen };
};

/** Answers with the body that came, in upper case. */
const echo: ServeDirect = ({ request, response }) => {
  void (async () => {
    const body = await request.readBody(1_000_000);
    const text = Buffer.from((body ?? Buffer.from('too large')).toString('utf8').toUpperCase());
    response.writeHead(200, { 'content-length': text.length });
    response.end(text);
  })().catch(() => undefined);
};
const head = (length: number, more = ''): string =>
  `POST /direct HTTP/1.1\r\nHost: x\r\ncontent-length: ${length}\r\n${more}\r\n`;
const count = (text: string, part: string): number => text.split(part).length - 1;

test('plain requests are served one after the other on one connection, also when they come together or in pieces', async () => {
  const { open, seen, front } = await startRig(echo);
  const { socket, text } = open();
  socket.write(`${head(3)}one`);
  await until('the first answer', () => text().endsWith('ONE'));
  socket.write(head(3));
  await until('the server has the head', () => front.inFlight() === 1);
  socket.write('t');
  socket.write('wo');
  await until('the second answer', () => text().endsWith('TWO'));
  socket.write(`${head(5)}three${head(4)}four${head(0)}`);
  await until('three more answers', () => count(text(), 'HTTP/1.1 200 OK') === 5);
  assert.match(text(), /THREE[^]*FOUR/);
  const large = 'x'.repeat(900_000);
  socket.write(`${head(large.length)}${large}`);
  await until('the large answer', () => text().endsWith(large.toUpperCase()));
  assert.deepEqual(seen, [], 'Node has seen none of them');
  assert.equal(count(text(), 'connection: keep-alive'), 6);
});

test('the first request that is not plain gives the connection to Node, which serves all that follows', async () => {
  const { open, seen } = await startRig(echo);
  const { socket, text } = open();
  socket.write(`${head(3)}oneGET /other HTTP/1.1\r\nhost: x\r\n\r\n`);
  await until('both answers', () => text().endsWith('node GET /other'));
  socket.write(`${head(3)}two`);
  await until('the third answer', () => text().endsWith('node POST /direct'));
  assert.deepEqual(seen, ['GET /other ', 'POST /direct two']);
  const slow = open();
  slow.socket.write('POST /direct HTTP/1.1\r\nho');
  await until('it was given away', () => slow.socket.bytesWritten > 0);
  slow.socket.write('st: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n');
  await until('the answer of Node', () => slow.text().endsWith('node POST /direct'));
  assert.equal(seen.at(-1), 'POST /direct abc');
});

test('FC10 what two readers could understand differently is not served here, and Node refuses it', async () => {
  const { open, seen } = await startRig(echo);
  for (const more of [
    'content-length: 4\r\n',
    'transfer-encoding: chunked\r\n',
    'Transfer-Encoding : chunked\r\n',
    ' folded: x\r\n',
    'x: a\nb: c\r\n',
    'x: a\u0000b\r\n',
    `x: ${'y'.repeat(20_000)}\r\n`,
  ]) {
    const { socket, text } = open();
    socket.write(`${head(3, more)}abc`);
    await until(`an answer to ${more.slice(0, 30)}`, () => text() !== '');
    assert.match(text(), /^HTTP\/1.1 4\d\d /, more.slice(0, 30));
  }
  assert.deepEqual(seen, []);
});

test('an answer before the whole request, the wish of the client and a stop end the connection', async () => {
  const { open, front } = await startRig(({ request, response }) => {
    response.writeHead(200, {});
    response.write(Buffer.from('a'));
    response.end(request.header('X-Y'.toLowerCase()) ?? 'none');
  });
  const early = open();
  early.socket.write(`${head(30, 'x-y: b\r\nX-Y: c\r\n')}abc`);
  await until('it was closed', () => early.isClosed());
  assert.match(early.text(), /connection: close\r\n\r\n1\r\na\r\n4\r\nb, c\r\n0\r\n\r\n$/);
  const wished = open();
  wished.socket.write(head(0, 'Connection: Close\r\n'));
  await until('it was closed', () => wished.isClosed());
  assert.match(wished.text(), /connection: close/);
  const idle = open();
  idle.socket.write(head(0));
  await until('the answer', () => idle.text().endsWith('0\r\n\r\n'));
  front.stop();
  await until('it was closed', () => idle.isClosed());
});

test('FC5 a handler learns that the client has left, while it reads and while it answers', async () => {
  const left: string[] = [];
  const { open, front } = await startRig(({ request, response }) => {
    response.on('close', () => left.push(`close ${response.writableFinished} ${response.destroyed}`));
    void (async () => {
      await request.readBody(1_000);
      response.writeHead(200, {});
      response.write('first');
    })().catch((error: Error) => left.push(error.message));
  });
  const reading = open();
  reading.socket.write(`${head(30)}abc`);
  await until('it runs', () => front.inFlight() === 1);
  reading.socket.destroy();
  await until('the handler knows', () => left.length === 2);
  assert.deepEqual(left.splice(0), ['close false true', 'the request ended before its body was complete']);
  const answering = open();
  answering.socket.write(head(0));
  await until('the first bytes', () => answering.text().includes('first'));
  answering.socket.end();
  await until('the handler knows', () => left.length === 1);
  assert.deepEqual(left, ['close false true']);
  assert.equal(front.inFlight(), 0);
});

test('FC9 a connection that says nothing, one that sends no end, and an idle one are closed at their limits', async () => {
  const clock = manualClock();
  const { open, front } = await startRig(echo, clock);
  const silent = open();
  const slow = open();
  slow.socket.write(`${head(30)}abc`);
  const idle = open();
  idle.socket.write(`${head(1)}a`);
  await until('both are there', () => front.inFlight() === 1 && idle.text().endsWith('A'));
  await clock.advance(12_000);
  await until('the silent one is closed', () => silent.isClosed());
  assert.deepEqual([slow.isClosed(), idle.isClosed()], [false, false]);
  await clock.advance(50_000);
  await until('the slow one is told', () => slow.text() !== '');
  assert.match(slow.text(), /^HTTP\/1.1 4\d\d /);
  assert.equal(idle.isClosed(), false);
  await clock.advance(15_000);
  await until('the idle one is closed', () => idle.isClosed());
});
