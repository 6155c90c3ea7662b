// What a server refuses, on real sockets: heads, bodies, params, origins; each with its status, code and a sentence.
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { errorOf, HEAD, type HttpRig, JSON_HEADERS, type SendOptions, startHttpRig } from '#test/support/http-rig.ts';

let rig: HttpRig;
before(async () => {
  rig = await startHttpRig();
});
after(() => rig.stop());

const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;
const refused: readonly [name: string, options: SendOptions, status: number, code: string, message: RegExp][] = [
  [
    'a body that is not JSON',
    { headers: JSON_HEADERS, body: '{' },
    400,
    'invalid_json',
    /^the body is not valid JSON$/,
  ],
  [
    'a body that is not UTF-8',
    { headers: JSON_HEADERS, body: Buffer.from([0x22, 0xff, 0x22]) },
    400,
    'invalid_json',
    /^the body is not valid UTF-8$/,
  ],
  [
    'nesting above 64',
    { headers: JSON_HEADERS, body: nested(65) },
    400,
    'invalid_json',
    /^the body is nested deeper than 64$/,
  ],
  ['nesting of 100,000', { headers: JSON_HEADERS, body: nested(100_000) }, 400, 'invalid_json', /deeper than 64/],
  [
    'the key __proto__',
    { headers: JSON_HEADERS, body: '{"name":"a","__proto__":{"size":3}}' },
    400,
    'invalid_json',
    /__proto__/,
  ],
  [
    'an escaped __proto__',
    { headers: JSON_HEADERS, body: '{"name":"a","\\u005f_proto__":{}}' },
    400,
    'invalid_json',
    /__proto__/,
  ],
  ['a key twice', { headers: JSON_HEADERS, body: '{"name":"a","name":"b"}' }, 400, 'invalid_json', /same key twice/],
  ['a missing field', { headers: JSON_HEADERS, body: '{}' }, 400, 'invalid_request', /^body\.name is required$/],
  ['no body at all', {}, 400, 'invalid_request', /^body\.name is required$/],
  [
    'a wrong type',
    { headers: JSON_HEADERS, body: '{"name":7}' },
    400,
    'invalid_request',
    /^body\.name must be a string$/,
  ],
  [
    'a long text',
    { headers: JSON_HEADERS, body: '{"name":"123456789"}' },
    400,
    'invalid_request',
    /^body\.name must be at most 8 characters$/,
  ],
  [
    'a wrong entry',
    { headers: JSON_HEADERS, body: '{"name":"a","tags":["b",1]}' },
    400,
    'invalid_request',
    /^body\.tags\[1\] must be a string$/,
  ],
  [
    'two wrong fields',
    { headers: JSON_HEADERS, body: '{"name":7,"size":"1"}' },
    400,
    'invalid_request',
    /\(and 1 more\)$/,
  ],
  [
    'an unknown field',
    { headers: JSON_HEADERS, body: '{"name":"a","colour":"red"}' },
    400,
    'unknown_field',
    /^body\.colour is not a field/,
  ],
  ['a list for an object', { headers: JSON_HEADERS, body: '[]' }, 400, 'invalid_request', /^body must be an object$/],
  [
    'a body above 1 MiB',
    { headers: JSON_HEADERS, body: `{"name":"${'x'.repeat(1_048_577)}"}` },
    413,
    'body_too_large',
    /above the limit/,
  ],
  [
    'a text type',
    { headers: { 'content-type': 'text/plain' }, body: '{}' },
    415,
    'unsupported_media_type',
    /must be application\/json/,
  ],
  [
    'a type with more behind it',
    { headers: { 'content-type': 'application/json;x=1' }, body: '{}' },
    415,
    'unsupported_media_type',
    /./,
  ],
  [
    'a form',
    { headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: 'a=b' },
    415,
    'unsupported_media_type',
    /./,
  ],
  ['no type with a body', { body: '{"name":"a"}' }, 415, 'unsupported_media_type', /./],
  [
    'a compressed body',
    { headers: { ...JSON_HEADERS, 'content-encoding': 'gzip' }, body: 'x' },
    415,
    'unsupported_media_type',
    /compressed/,
  ],
];
for (const [name, options, status, code, message] of refused) {
  test(`refuses ${name} with ${status} ${code}`, async () => {
    const reply = await rig.send('POST', '/v1/things/abc', options);
    const error = errorOf(reply);
    assert.equal(reply.status, status, reply.text);
    assert.equal(error.code, code);
    assert.match(error.message, message);
    assert.equal(reply.headers['x-request-id'], error.requestId);
    assert.equal(({} as Record<string, unknown>)['size'], undefined);
  });
}

const hostile: readonly [name: string, bytes: string, answer: RegExp][] = [
  [
    'a second content-length',
    `POST /v1/things/abc HTTP/1.1\r\n${HEAD}content-type: application/json\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}`,
    /^HTTP\/1.1 400 /,
  ],
  [
    'content-length with chunks',
    `POST /v1/things/abc HTTP/1.1\r\n${HEAD}content-type: application/json\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
    /^HTTP\/1.1 400 /,
  ],
  [
    'a second content-type',
    `POST /v1/things/abc HTTP/1.1\r\n${HEAD}content-type: application/json\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\n{}`,
    /^HTTP\/1.1 415 [^]*content-type was sent more than once/,
  ],
  [
    'a second authorization',
    `GET /v1/things/abc HTTP/1.1\r\n${HEAD}authorization: Bearer bad\r\n\r\n`,
    /^HTTP\/1.1 400 [^]*authorization was sent more than once/,
  ],
  [
    'a tab inside the content-type',
    `POST /v1/things/abc HTTP/1.1\r\n${HEAD}content-type: application/json\t;a\r\ncontent-length: 2\r\n\r\n{}`,
    /^HTTP\/1.1 415 /,
  ],
  [
    'a bare line feed in a header',
    `GET /v1/things/abc HTTP/1.1\r\nhost: x\r\nx-a: b\nx-c\r\n\r\n`,
    /^HTTP\/1.1 400 [^]*not valid HTTP/,
  ],
  [
    'a head above 16 KiB',
    `GET /v1/things/abc HTTP/1.1\r\n${HEAD}x-long: ${'a'.repeat(17_000)}\r\n\r\n`,
    /^HTTP\/1.1 431 [^]*"code":"head_too_large"[^]*16384/,
  ],
  ['a tunnel', 'CONNECT db:5432 HTTP/1.1\r\nhost: db:5432\r\n\r\n', /^HTTP\/1.1 405 [^]*"code":"method_not_allowed"/],
  ['no host', `GET /v1/things/abc HTTP/1.1\r\nauthorization: Bearer good\r\n\r\n`, /^HTTP\/1.1 400 /],
  ['another protocol', 'SSH-2.0-x\r\n\r\n', /^HTTP\/1.1 400 [^]*not valid HTTP/],
];
for (const [name, bytes, answer] of hostile) {
  test(`FC10 refuses ${name}`, async () => {
    assert.match(await rig.sendBytes(bytes), answer);
  });
}

test('FC10 validates the body behind a content type with blanks around it', async () => {
  const text = await rig.sendBytes(
    `POST /v1/things/abc HTTP/1.1\r\n${HEAD}content-type:   application/json\t\r\ncontent-length: 2\r\n\r\n{}`,
  );
  assert.match(text, /^HTTP\/1.1 4(00|15) /);
});

test('answers an upgrade as a plain request', async () => {
  const text = await rig.sendBytes(
    `GET /v1/open HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n`,
  );
  assert.match(text, /^HTTP\/1.1 200 /);
});

test('asks who calls before it reads a body', async () => {
  const reply = await rig.sendBytes(
    `POST /v1/things/abc HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 900000\r\n\r\n`,
  );
  assert.match(reply, /^HTTP\/1.1 401 [^]*send a bearer token/);
  assert.match(reply, /www-authenticate: Bearer/i);
});

test('refuses a param, a query and an unknown route with a sentence each', async () => {
  const param = await rig.send('POST', '/v1/things/ABC', { headers: JSON_HEADERS, body: '{"name":"a"}' });
  assert.equal(errorOf(param).message, 'path.id does not have the form that is asked for');
  const query = await rig.send('POST', '/v1/things/abc?dry=maybe', { headers: JSON_HEADERS, body: '{"name":"a"}' });
  assert.equal(errorOf(query).message, 'query.dry must be one of true, false');
  const more = await rig.send('POST', '/v1/things/abc?dri=true', { headers: JSON_HEADERS, body: '{"name":"a"}' });
  assert.equal(errorOf(more).code, 'unknown_field');
  const route = await rig.send('GET', '/v1/nothing');
  assert.deepEqual([route.status, errorOf(route).code], [404, 'not_found']);
  const slash = await rig.send('POST', '/v1/things/abc/?dry=true', { headers: JSON_HEADERS, body: '{"name":"a"}' });
  assert.deepEqual([slash.status, errorOf(slash).code], [404, 'not_found']);
  assert.match(errorOf(slash).message, /without the slash at its end/);
  const broken = await rig.send('GET', '/v1/things/%zz');
  assert.deepEqual([broken.status, errorOf(broken).code], [400, 'invalid_request']);
});

test('FF12 refuses a change that a page of another site asks for', async () => {
  const body = '{"name":"a"}';
  for (const origin of ['https://evil.example', 'null', `http://127.0.0.1:${rig.port + 1}`]) {
    const reply = await rig.send('POST', '/v1/things/abc', { headers: { ...JSON_HEADERS, origin }, body });
    assert.deepEqual([reply.status, errorOf(reply).code], [403, 'forbidden'], origin);
    assert.equal(reply.headers['access-control-allow-origin'], undefined);
  }
  const own = `http://127.0.0.1:${rig.port}`;
  assert.equal(
    (await rig.send('POST', '/v1/things/abc', { headers: { ...JSON_HEADERS, origin: own }, body })).status,
    201,
  );
});

test('FC9 refuses 100 MB in chunks early, and ends the connection', async () => {
  const socket = connect(rig.port, '127.0.0.1');
  let text = '';
  let sent = 0;
  const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`;
  const ended = new Promise<void>((resolve) => socket.on('close', () => resolve()));
  socket.on('error', () => {});
  socket.on('data', (part) => {
    text += part.toString();
  });
  socket.write(
    `POST /v1/things/abc HTTP/1.1\r\n${HEAD}content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`,
  );
  while (sent < 1_600 && !socket.destroyed && text === '') {
    socket.write(chunk);
    sent += 1;
    await new Promise((resolve) => setImmediate(resolve));
  }
  await ended;
  assert.match(text, /^HTTP\/1.1 413 [^]*body_too_large/);
  assert.ok(sent < 400, `sent ${sent} chunks of 64 KiB`);
});

test('refuses a body on a route that takes none', async () => {
  const reply = await rig.send('DELETE', '/v1/things/abc', {
    headers: { ...JSON_HEADERS, 'content-length': '2' },
    body: '{}',
  });
  assert.deepEqual([reply.status, errorOf(reply).message], [400, 'this route takes no body']);
});
