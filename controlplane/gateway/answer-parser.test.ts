// The reader of a provider's HTTP: whole answers cut anywhere, and everything that must not count as one.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { AnswerParser } from './answer-parser.ts';

type Read = { status: number; x: string | undefined; body: string; ended: boolean[] };

const readAll = (parts: readonly Buffer[], closes = false): Read => {
  const read: Read = { status: 0, x: undefined, body: '', ended: [] };
  const pieces: Buffer[] = [];
  const parser = new AnswerParser({
    onHead: (status, headers) => {
      read.status = status;
      read.x = headers.get('x');
    },
    onBody: (piece) => pieces.push(Buffer.from(piece)),
    onEnd: (isReusable) => read.ended.push(isReusable),
  });
  for (const part of parts) parser.push(part);
  if (closes) parser.close();
  read.body = Buffer.concat(pieces).toString('utf8');
  return read;
};
const cut = (text: string, places: readonly number[]): Buffer[] => {
  const bytes = Buffer.from(text);
  const at = [0, ...[...places].map((place) => place % bytes.length).sort((a, b) => a - b), bytes.length];
  return at.slice(1).map((end, index) => bytes.subarray(at[index], end));
};
const one = (text: string, closes = false): Read => readAll([Buffer.from(text)], closes);

const LENGTH = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{"é":1}'.replace(
  '7',
  '8',
);
const CHUNKED =
  'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200\r\ntransfer-encoding: Chunked\r\nx: \t a b \r\n\r\n5;ext=1\r\nhello\r\n1\r\n\n\r\n0\r\ntrailer: x\r\n\r\n';

test('FC6 answers with a length and in chunks, cut at any bytes, are read as the whole ones', () => {
  for (const [text, body] of [
    [LENGTH, '{"é":1}'],
    [CHUNKED, 'hello\n'],
  ] as const) {
    const whole = one(text);
    assert.deepEqual([whole.status, whole.body, whole.ended], [200, body, [true]]);
    fc.assert(
      fc.property(fc.array(fc.nat(), { maxLength: 20 }), (places) => {
        assert.deepEqual(readAll(cut(text, places)), whole);
      }),
      { numRuns: 300 },
    );
    assert.deepEqual(readAll([...Buffer.from(text)].map((byte) => Buffer.of(byte))), whole);
  }
  assert.equal(one(CHUNKED).x, 'a b');
});

test('an answer without a length ends with its connection, which is not used again', () => {
  const read = one('HTTP/1.1 200 OK\r\n\r\nall of it', true);
  assert.deepEqual([read.body, read.ended], ['all of it', [false]]);
  for (const text of [LENGTH.slice(0, -1), CHUNKED.slice(0, -2), 'HTTP/1.1 200 OK\r\n', '']) {
    assert.throws(() => one(text, true), /before the answer was complete/, text);
  }
});

test('a connection is used again only when the provider keeps it and nothing lies behind the answer', () => {
  const reusable = (text: string): boolean[] => one(text).ended;
  assert.deepEqual(reusable('HTTP/1.1 204 No\r\n\r\n'), [true]);
  assert.deepEqual(reusable('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'), [true]);
  assert.deepEqual(reusable('HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n'), [false]);
  assert.deepEqual(reusable('HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n'), [false]);
  const ended: boolean[] = [];
  const parser = new AnswerParser({ onHead: () => {}, onBody: () => {}, onEnd: (again) => ended.push(again) });
  assert.throws(() => parser.push(Buffer.from(`${LENGTH}HTTP/1.1 200 OK\r\n\r\n`)), /behind the answer/);
  assert.deepEqual(ended, [false]);
});

test('FC10 answers that two readers could understand differently are refused', () => {
  for (const head of [
    'HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 3',
    'HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked',
    'HTTP/1.1 200 OK\r\ncontent-length: +3',
    'HTTP/1.1 200 OK\r\ncontent-length: 0x3',
    'HTTP/1.1 200 OK\r\ncontent-length : 3',
    'HTTP/1.1 200 OK\r\n content-length: 3',
    'HTTP/1.1 200 OK\r\nx: a\nb: c',
    'HTTP/1.1 200 OK\r\nx: a\u0000b',
    'HTTP/1.1 101 Switching',
    'HTTP/2 200',
    'HTTP/1.1 20 OK',
    'ICY 200 OK',
  ]) {
    assert.throws(() => one(`${head}\r\n\r\nabc`), /valid HTTP/, head);
  }
  const chunked = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
  for (const body of [
    'x\r\n',
    '3\nabc\r\n',
    '3\r\nabcd\r\n',
    '-1\r\n',
    'ffffffffffffffff\r\n',
    `1${';'.repeat(5_000)}`,
  ]) {
    assert.throws(() => one(chunked + body), /valid HTTP/, body.slice(0, 20));
  }
});

test('FC9 a head and trailers without end are given up', () => {
  const parser = new AnswerParser({ onHead: () => {}, onBody: () => {}, onEnd: () => {} });
  parser.push(Buffer.from('HTTP/1.1 200 OK\r\n'));
  assert.throws(() => {
    for (let count = 0; count < 100; count += 1) parser.push(Buffer.from(`x${count}: ${'y'.repeat(1_000)}\r\n`));
  }, /too large/);
  assert.throws(
    () => one(`HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n${`t: ${'z'.repeat(1_000)}\r\n`.repeat(50)}`),
    /too large/,
  );
  assert.equal(one('HTTP/1.1 200 OK\r\n__proto__: x\r\ncontent-length: 0\r\n\r\n').status, 200);
  assert.equal(({} as Record<string, unknown>)['x'], undefined);
});
