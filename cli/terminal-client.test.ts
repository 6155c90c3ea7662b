// This terminal against a played one: who waits for whom, and how it ends.
import assert from 'node:assert/strict';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { type WebSocket, WebSocketServer } from 'ws';
import { until } from '#test/support/until.ts';
import type { Io } from './io.ts';
import { joinTerminal } from './terminal-client.ts';

const terminal = {
  id: 't-1',
  title: 'yes',
  command: '/bin/bash',
  args: [],
  cwd: '/workspace',
  status: 'running',
  pid: 7,
  exitCode: null,
  attachedViewers: 1,
  idleMs: 0,
  abandoned: false,
};

describe('a terminal that is joined', { timeout: 120_000 }, () => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false });
  const arrived: WebSocket[] = [];
  let url: string;
  before(async () => {
    server.on('connection', (socket) => {
      socket.send(JSON.stringify({ type: 'attached', terminal }));
      arrived.push(socket);
    });
    if (server.address() === null) await new Promise((resolve) => server.once('listening', resolve));
    url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    for (const socket of arrived) socket.terminate();
    server.close();
  });

  const join = async () => {
    const streams = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() };
    const io = {
      ...streams,
      isTerminal: { stdin: false, stdout: false },
      size: () => ({ columns: 80, rows: 24 }),
      onResize: () => () => {},
      setRaw: () => {},
    } as unknown as Io;
    const count = arrived.length;
    const done = joinTerminal(url, {}, io, () => {});
    const socket = await until('it is attached', () => arrived[count]);
    return { ...streams, done, socket };
  };

  test('output that nobody reads is taken up to a bound, and every byte of it arrives later, then the exit code', async () => {
    const { stdout, socket, done } = await join();
    const chunk = Buffer.alloc(65_536, 'x');
    let sent = 0;
    while (socket.bufferedAmount < 1_048_576 && sent < 200_000_000) {
      socket.send(chunk);
      sent += chunk.length;
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.ok(sent < 200_000_000, 'it took everything');
    let read = 0;
    stdout.on('data', (bytes: Buffer) => {
      read += bytes.length;
    });
    socket.send(JSON.stringify({ type: 'exit', exitCode: 3 }), () => socket.close(1_000));
    assert.deepEqual(await done, { kind: 'exited', exitCode: 3 });
    await until('all is read', () => read === sent, { describe: () => [read, sent] });
  });

  test('input that the server does not take is read no further, and every byte arrives later', async () => {
    const { stdin, socket, done } = await join();
    socket.pause();
    const chunk = Buffer.alloc(65_536, 'y');
    let written = 0;
    while (stdin.writableLength < 1_048_576 && written < 200_000_000) {
      stdin.write(chunk);
      written += chunk.length;
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.ok(written < 200_000_000, 'it took everything');
    let received = 0;
    socket.on('message', (data: Buffer, isBinary) => {
      if (isBinary) received += data.length;
    });
    socket.resume();
    stdin.end();
    // The line is not complete, so its end takes Ctrl-D twice.
    await until('all has arrived', () => received === written + 2, { describe: () => [received, written] });
    socket.send(JSON.stringify({ type: 'exit', exitCode: 0 }), () => socket.close(1_000));
    assert.deepEqual(await done, { kind: 'exited', exitCode: 0 });
  });

  test('A201 a connection that breaks says which terminal may still run, and why', async () => {
    const { socket, done } = await join();
    socket.close(1013, 'the reader is too slow');
    await assert.rejects(done, /terminal t-1 broke: the reader is too slow/);
  });
});
