// What a client is told of a feature that the session's harness lacks, and of a harness that does not run.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  ConflictError,
  NotFoundError,
  UnauthenticatedError,
  UnavailableError,
  UnsupportedError,
} from '#base/errors.ts';
import type { Session } from '#schema/resources/session.ts';
import { HARNESS_CAPABILITIES } from '#schema/rules/harness-capabilities.ts';
import { readConfigRoute, readTodoRoute } from '#schema/wire/runtime.ts';
import { makeHarnessFeatures } from './harness-features.ts';

const aSession = (operatingMode?: string): Session =>
  ({ metadata: { name: 'talk', uid: 'u' }, spec: { operatingMode } }) as unknown as Session;

const world = (capabilities: readonly string[] | undefined, answer: unknown) => {
  const done: string[] = [];
  const features = makeHarnessFeatures({
    capabilities: async () => capabilities,
    ask: async (uid, route) => {
      done.push(`ask ${uid} ${route.operationId}`);
      if (answer instanceof Error) throw answer;
      return answer as never;
    },
    wake: async () => void done.push('wake'),
  });
  return { features, done };
};

describe('the features of a harness', () => {
  it('A64 answers 501 with the capability for what the experimental harness lacks, and asks nobody', async () => {
    const { features, done } = world(HARNESS_CAPABILITIES['pi'], { todos: [] });
    const lacks = (error: unknown): boolean =>
      error instanceof UnsupportedError && error.status === 501 && error.details?.['capability'] === 'session.todo';
    await assert.rejects(features.ask(aSession(), 'session.todo', readTodoRoute, {}), lacks);
    await assert.rejects(features.askIfRunning(aSession(), 'session.todo', readTodoRoute, {}), lacks);
    await assert.rejects(features.require(aSession(), 'session.todo'), lacks);
    await features.require(aSession(), 'session.compact');
    assert.deepEqual(done, []);
  });

  it('A64 answers 404 for a document that the harness lacks', async () => {
    const { features } = world(HARNESS_CAPABILITIES['pi'], {});
    await assert.rejects(
      features.ask(aSession(), 'session.config', readConfigRoute, {}),
      (error) => error instanceof NotFoundError && error.code === 'not_found',
    );
  });

  it('A35 asks a harness of which nothing is known yet', async () => {
    const { features, done } = world(undefined, { todos: [] });
    assert.deepEqual(await features.ask(aSession(), 'session.todo', readTodoRoute, {}), { todos: [] });
    assert.deepEqual(done, ['ask u readTodo']);
  });

  it('A144 answers 503 and wakes a session that sleeps, and 409 when it is suspended on request', async () => {
    const sleeping = new UnavailableError('sandbox_unreachable', 'no sandbox');
    const { features, done } = world(undefined, sleeping);
    await assert.rejects(
      features.ask(aSession(), 'session.todo', readTodoRoute, {}),
      (error) =>
        error instanceof UnavailableError && error.code === 'runtime_not_ready' && error.retryAfterMs === 2_000,
    );
    assert.deepEqual(done, ['ask u readTodo', 'wake']);
    await assert.rejects(
      features.ask(aSession('Suspended'), 'session.todo', readTodoRoute, {}),
      (error) => error instanceof ConflictError && error.code === 'session_suspended',
    );
    assert.equal(done.filter((each) => each === 'wake').length, 1);
    assert.equal(await features.askIfRunning(aSession(), 'session.todo', readTodoRoute, {}), undefined);
  });

  it('passes on what the daemon says, but never that it does not know our credential', async () => {
    const own = new ConflictError('turn_running', 'a turn runs');
    await assert.rejects(world(undefined, own).features.ask(aSession(), 'session.todo', readTodoRoute, {}), own);
    const { features } = world(undefined, new UnauthenticatedError('who?'));
    await assert.rejects(
      features.askIfRunning(aSession(), 'session.todo', readTodoRoute, {}).then((answer) => {
        assert.equal(answer, undefined);
        throw new Error('reached');
      }),
      /reached/,
    );
  });
});
