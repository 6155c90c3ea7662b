// Calls through the server, its mount and the typed client on real sockets: answers, errors, callers that leave, connections.
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { ConflictError, LimitError, UnavailableError } from '#base/errors.ts';
import { dropThing, errorOf, getThing, HEAD, type HttpRig, makeThing, startHttpRig } from '#test/support/http-rig.ts';
import { until } from '#test/support/until.ts';
import { createClient } from './client.ts';

let rig: HttpRig;
before(async () => {
  rig = await startHttpRig();
});
after(() => rig.stop());

test('lets nothing leave that the route does not declare', async () => {
  const reply = await rig.send('GET', '/v1/things/abc');
  assert.deepEqual(JSON.parse(reply.text), { id: 'abc' });
});

test('answers a bug with 500 and keeps its text in the log', async () => {
  const reply = await rig.send('GET', '/v1/things/bug');
  assert.deepEqual([reply.status, errorOf(reply).code], [500, 'internal']);
  assert.doesNotMatch(reply.text, /hunter2/);
  const record = rig.logged.find((line) => line.includes(errorOf(reply).requestId));
  assert.match(record ?? '', /TypeError/);
  const undeclared = await rig.send('GET', '/v1/things/wrong');
  assert.equal(undeclared.status, 500);
});

test('ends the signal when the caller leaves', async () => {
  const before = rig.aborts.length;
  const socket = connect(rig.port, '127.0.0.1', () =>
    socket.write(`GET /v1/things/hang HTTP/1.1\r\n${HEAD}\r\n`, () => setTimeout(() => socket.destroy(), 30)),
  );
  await until('the signal has fired', () => rig.aborts.length === before + 1);
});

test('closes what is above the budget of unrecognised connections, and admits the recognised', async () => {
  const admitted = await rig.send('GET', '/v1/things/abc');
  assert.equal(admitted.status, 200);
  const sockets = Array.from({ length: 12 }, () => connect(rig.port, '127.0.0.1'));
  let closed = 0;
  for (const socket of sockets) {
    socket.on('error', () => {});
    socket.on('close', () => {
      closed += 1;
    });
  }
  await until('four of the twelve are closed', () => closed >= 4);
  assert.ok(rig.server.budget.refused() >= 4);
  assert.ok(
    sockets.some(({ destroyed }) => !destroyed),
    'those within the budget stay',
  );
  for (const socket of sockets) socket.destroy();
  await until('none waits any more', () => rig.server.budget.waiting() === 0);
});

test('a typed call goes there and back', async () => {
  const made = await rig
    .client()
    .call(makeThing, { params: { id: 'abc' }, query: { dry: 'true' }, body: { name: 'x' } });
  assert.deepEqual(made, { status: 201, body: { id: 'abc', name: 'x', size: 1, tags: [], dry: 'true' } });
  assert.deepEqual(await rig.client().call(dropThing, { params: { id: 'abc' } }), { status: 204, body: null });
});

test('errors come back as their classes', async () => {
  await assert.rejects(rig.client().call(getThing, { params: { id: 'gone' } }), (error: unknown) => {
    assert.ok(error instanceof ConflictError);
    assert.equal(error.code, 'superseded');
    return true;
  });
  await assert.rejects(rig.client().call(getThing, { params: { id: 'busy' } }), (error: unknown) => {
    assert.ok(error instanceof LimitError);
    assert.equal(error.retryAfterMs, 2_000);
    return true;
  });
  await assert.rejects(rig.client().call(getThing, { params: { id: 'bug' } }), UnavailableError);
  const nobody = createClient({ baseUrl: 'http://127.0.0.1:9', peer: 'nobody', unreachable: 'sandbox_unreachable' });
  await assert.rejects(nobody.call(getThing, { params: { id: 'a' } }), (error: unknown) => {
    assert.ok(error instanceof UnavailableError);
    assert.equal(error.code, 'sandbox_unreachable');
    return true;
  });
  await assert.rejects(rig.client().call(getThing, { params: { id: 'hang' } }, { timeoutMs: 50 }), (error: unknown) => {
    assert.ok(error instanceof UnavailableError);
    assert.equal(error.code, 'timed_out');
    return true;
  });
});
