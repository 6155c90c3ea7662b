// The control plane as a whole: one process against a real API server, with its own Postgres.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { ConflictError, ForbiddenError, InvalidError, NotFoundError, UnavailableError } from '#base/errors.ts';
import { type Client, createClient } from '#base/http/client.ts';
import { apply } from '#kube/apply.ts';
import { PROJECTS, SESSIONS } from '#kube/resource-types.ts';
import { getProjectHarnessRoute, getProjectRoute, listProjectsRoute, syncNowRoute } from '#schema/rest/projects.ts';
import { createPromptRoute, getPromptRoute, listPromptsRoute, streamEventsRoute } from '#schema/rest/prompts.ts';
import * as sessions from '#schema/rest/sessions.ts';
import { listProvidersRoute } from '#schema/rest/workspace.ts';
import { claimRoute } from '#schema/wire/claim.ts';
import { factsRoute, syncProjectRoute } from '#schema/wire/sync.ts';
import { type ControlPlaneProcess, startControlPlane } from '#test/support/control-plane.ts';
import { applyFile, startTestApi, type TestApi } from '#test/support/kube.ts';
import { createAccount, createIdlePod, grant, grantPaths, tokenOf } from '#test/support/kube-accounts.ts';
import { until } from '#test/support/until.ts';

const AUDIENCE = 'beeuni-control-plane';
const MANAGER = { manager: 'beeuni-test', force: true };
type Managed = Readonly<{ managedFields: readonly { manager: string; operation: string }[] }>;
const CANARY = 'canary-7f3a9c-prompt-text';

describe('a control plane process', () => {
  let api: TestApi;
  let process_: ControlPlaneProcess;
  let namespace: string;
  let alice: Client;
  let bob: Client;
  let operator: Client;
  let aliceToken: string;

  before(async () => {
    api = await startTestApi();
    const { client } = api.admin;
    await applyFile(client, 'crds/projects.yaml');
    await applyFile(client, 'crds/sessions.yaml');
    namespace = await api.namespace();
    await createAccount(client, namespace, 'alice');
    await createAccount(client, namespace, 'bob');
    await grant(client, namespace, 'alice', 'alice', "[{apiGroups: [beeuni.dev], resources: ['*'], verbs: ['*']}]");
    await grant(client, namespace, 'bob', 'bob', '[{apiGroups: [beeuni.dev], resources: [sessions], verbs: [get]}]');
    await grantPaths(client, namespace, 'alice', `${namespace}-alice`, ['/v1/workspace/*']);
    const spec = { repository: { url: 'https://git.example.com/team/shop.git' } };
    await apply(client, PROJECTS, { metadata: { namespace, name: 'shop' }, spec }, MANAGER);
    await createAccount(client, namespace, 'operator');
    const operatorToken = await tokenOf(client, { namespace, account: 'operator', audience: AUDIENCE });
    process_ = await startControlPlane({
      kubeconfigPath: api.kubeconfigPath,
      environment: {
        BEEUNI_OPERATOR_NAMESPACE: namespace,
        BEEUNI_OPERATOR_SERVICE_ACCOUNT: 'operator',
        BEEUNI_GIT_ALLOWED_HOSTS: 'git.elsewhere.example',
      },
    });
    await process_.ready();
    const baseUrl = await process_.url('public');
    aliceToken = await tokenOf(client, { namespace, account: 'alice' });
    const bobToken = await tokenOf(client, { namespace, account: 'bob' });
    const of = (token: string): Client =>
      createClient({
        baseUrl,
        token: () => token,
        peer: 'the control plane',
        unreachable: 'control_plane_unavailable',
      });
    operator = createClient({
      baseUrl: await process_.url('internal'),
      token: () => operatorToken,
      peer: 'the control plane',
      unreachable: 'control_plane_unavailable',
    });
    alice = of(aliceToken);
    bob = of(bobToken);
  });
  after(async () => {
    await process_?.stop();
    await api?.stop();
  });

  const at = (name: string) => ({ namespace, name });

  test('answers probes and metrics, and describes its API', async () => {
    const metrics = await process_.url('metrics');
    assert.deepEqual(await (await fetch(`${metrics}/healthz`)).json(), { status: 'ok' });
    await until('nothing is impaired', async () => {
      const body = (await (await fetch(`${metrics}/readyz`)).json()) as { ready: boolean; waitingFor: string[] };
      return body.ready && body.waitingFor.length === 0;
    });
    const page = await (await fetch(`${metrics}/metrics`)).text();
    assert.match(page, /beeuni_watch_connected\{kind="Session"\} 1/);
    assert.match(page, /beeuni_db_pool_connections\{state="idle"\}/);
    const document = (await (await fetch(`${await process_.url('public')}/openapi.json`)).json()) as {
      openapi: string;
    };
    assert.equal(document.openapi, '3.1.0');
  });

  test('shows a project, what it would run, and asks for a sync', async () => {
    const { body: project } = await alice.call(getProjectRoute, { params: at('shop') });
    assert.equal(project.repositoryUrl, 'https://git.example.com/team/shop.git');
    const { body: list } = await alice.call(listProjectsRoute, { params: { namespace } });
    assert.deepEqual(
      list.items.map(({ name }) => name),
      ['shop'],
    );
    const { body: harness } = await alice.call(getProjectHarnessRoute, { params: at('shop') });
    assert.deepEqual([harness.id, harness.reason], ['opencode', 'default']);
    const { body: synced } = await alice.call(syncNowRoute, { params: at('shop'), body: {} });
    const stored = await api.admin.client.get(PROJECTS, at('shop'));
    assert.equal((stored?.['spec'] as { syncToken?: string } | undefined)?.syncToken, synced.spec['syncToken']);
  });

  test('creates a session, reads it, changes one field at a time, and deletes it', async () => {
    const spec = { projectRef: { name: 'shop' } };
    const { status, body: made } = await alice.call(sessions.createSessionRoute, {
      params: { namespace },
      body: { name: 'fix-login', spec },
    });
    assert.equal(status, 201);
    const { body: read } = await alice.call(sessions.getSessionRoute, { params: at('fix-login') });
    assert.equal(read.uid, made.uid);
    const stored = await api.admin.client.get(SESSIONS, at('fix-login'));
    const metadata = stored?.metadata as unknown as Managed | undefined;
    assert.ok(
      metadata?.managedFields.some(({ manager, operation }) => manager === 'beeuni-api' && operation === 'Apply'),
    );
    await assert.rejects(
      alice.call(sessions.createSessionRoute, { params: { namespace }, body: { name: 'fix-login', spec } }),
      (error: unknown) => error instanceof ConflictError && error.code === 'already_exists',
    );
    const { body: suspended } = await alice.call(sessions.suspendSessionRoute, { params: at('fix-login'), body: {} });
    assert.equal(suspended.spec['operatingMode'], 'Suspended');
    const { body: running } = await alice.call(sessions.startSessionRoute, { params: at('fix-login'), body: {} });
    assert.equal(running.spec['operatingMode'], 'Running');
    const { body: restarted } = await alice.call(sessions.restartSessionRoute, { params: at('fix-login'), body: {} });
    assert.notEqual(restarted.spec['restartToken'], undefined);
    const { body: list } = await until('the list shows it', async () => {
      const page = await alice.call(sessions.listSessionsRoute, { params: { namespace }, query: { project: 'shop' } });
      return page.body.items.length === 1 && page;
    });
    assert.equal(list.cursor, null);
    await assert.rejects(alice.call(sessions.sessionHealthRoute, { params: at('fix-login') }), /has not reported yet/);
    const deleted = await alice.call(sessions.deleteSessionRoute, { params: at('fix-login') });
    assert.deepEqual(deleted, { status: 202, body: { uid: made.uid } });
    await until('it is gone', async () => (await api.admin.client.get(SESSIONS, at('fix-login'))) === undefined);
  });

  test('pages a list without repeating or losing a session', async () => {
    const names = Array.from({ length: 5 }, (_, n) => `page-${n}`);
    for (const name of names) {
      const body = { name, spec: { projectRef: { name: 'shop' } } };
      await alice.call(sessions.createSessionRoute, { params: { namespace }, body });
    }
    await until('the cache has them', async () => {
      const { body } = await alice.call(sessions.listSessionsRoute, { params: { namespace } });
      return body.items.length === 5;
    });
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await alice.call(sessions.listSessionsRoute, { params: { namespace }, query: { limit: 2, cursor } });
      seen.push(...page.body.items.map(({ name }) => name));
      cursor = page.body.cursor ?? undefined;
    } while (cursor !== undefined);
    assert.deepEqual(seen, names);
    await assert.rejects(
      alice.call(sessions.listSessionsRoute, { params: { namespace }, query: { cursor: 'made-up' } }),
      (error: unknown) => error instanceof InvalidError && error.code === 'invalid_cursor',
    );
  });

  test('keeps a prompt of a session that has no sandbox yet, once per message id, and streams its log', async () => {
    await alice.call(sessions.createSessionRoute, {
      params: { namespace },
      body: { name: 'talk', spec: { projectRef: { name: 'shop' } } },
    });
    const body = { messageId: 'm1', parts: [{ type: 'text' as const, text: CANARY }] };
    const first = await alice.call(createPromptRoute, { params: at('talk'), body });
    assert.deepEqual([first.status, first.body.state, first.body.deduplicated], [202, 'queued', false]);
    const again = await alice.call(createPromptRoute, { params: at('talk'), body });
    assert.deepEqual([again.status, again.body.id, again.body.deduplicated], [200, first.body.id, true]);
    const { body: prompt } = await alice.call(getPromptRoute, { params: { ...at('talk'), id: first.body.id } });
    assert.deepEqual([prompt.messageId, prompt.note], ['m1', null]);
    await alice.call(sessions.suspendSessionRoute, { params: at('talk'), body: {} });
    const waits = async () =>
      (await alice.call(getPromptRoute, { params: { ...at('talk'), id: first.body.id } })).body.note;
    const note = await until('the suspension is seen', async () => (await waits()) ?? undefined);
    assert.match(
      note,
      /suspended on request; prompts run once it is started again; start it: beeuni sessions start talk/,
    );
    const events = [];
    for await (const event of await alice.sse(streamEventsRoute, { params: at('talk'), query: { follow: 'false' } })) {
      events.push(event.event);
    }
    assert.deepEqual(events, ['hello']);
  });

  test('one idempotency key makes one session', async () => {
    const make = (name: string) =>
      alice.call(
        sessions.createSessionRoute,
        { params: { namespace }, body: { name, spec: { projectRef: { name: 'shop' } } } },
        { headers: { 'idempotency-key': 'make-once' } },
      );
    const first = await make('once');
    assert.deepEqual(await make('once'), first);
    await assert.rejects(make('twice'), (error: unknown) => error instanceof InvalidError && error.status === 422);
  });

  type Refusal = readonly [name: string, call: () => Promise<unknown>, kind: Function, code: string, message: RegExp];
  const create = (name: string, spec: Record<string, unknown>) =>
    alice.call(sessions.createSessionRoute, { params: { namespace }, body: { name, spec } });
  const refusals: readonly Refusal[] = [
    [
      'a session of a project that is not there',
      () => create('s1', { projectRef: { name: 'ghost' } }),
      NotFoundError,
      'project_not_found',
      /^there is no project ghost in namespace test-/,
    ],
    [
      'a session without a project',
      () => create('s1', {}),
      InvalidError,
      'invalid_request',
      /projectRef\.name is required/,
    ],
    [
      'a name over the limit',
      () => create('x'.repeat(47), { projectRef: { name: 'shop' } }),
      InvalidError,
      'invalid_request',
      /^body\.name must be a lower-case DNS label of at most 46 characters/,
    ],
    [
      'an unknown field of the spec',
      () => create('s1', { projectRef: { name: 'shop' }, harness: 'pi' }),
      InvalidError,
      'resource_rejected',
      /unknown field "spec\.harness"/,
    ],
    [
      'a task without a prompt',
      () => create('s1', { projectRef: { name: 'shop' }, mode: 'Task' }),
      InvalidError,
      'resource_rejected',
      /spec\.prompt is required when spec\.mode is Task/,
    ],
    [
      'a model that nobody registered',
      () => create('s1', { projectRef: { name: 'shop' }, model: 'acme/none' }),
      InvalidError,
      'unknown_model',
      /acme/,
    ],
    [
      'a prompt to a session that is not there',
      () => alice.call(createPromptRoute, { params: at('ghost'), body: { parts: [{ type: 'text', text: 'hi' }] } }),
      NotFoundError,
      'session_not_found',
      /^there is no session ghost in namespace test-/,
    ],
    [
      'an empty prompt',
      () => alice.call(createPromptRoute, { params: at('talk'), body: { parts: [] } }),
      InvalidError,
      'invalid_request',
      /^body\.parts must be at least 1 entry$/,
    ],
    [
      'a session that is not there',
      () => alice.call(sessions.getSessionRoute, { params: at('ghost') }),
      NotFoundError,
      'session_not_found',
      /ghost/,
    ],
    [
      'a prompt without the permission for prompts',
      () => bob.call(createPromptRoute, { params: at('talk'), body: { parts: [{ type: 'text', text: 'hi' }] } }),
      ForbiddenError,
      'forbidden',
      /bob may not create sessions\/prompts\.beeuni\.dev/,
    ],
    ['the workspace without permission', () => bob.call(listProvidersRoute, {}), ForbiddenError, 'forbidden', /RBAC/],
  ];
  for (const [name, call, kind, code, message] of refusals) {
    test(`refuses ${name} as ${code}`, async () => {
      await assert.rejects(call(), (error: unknown) => {
        assert.ok(error instanceof kind, String(error));
        const { code: actual, message: text } = error as InvalidError;
        assert.equal(actual, code, text);
        assert.match(text, message);
        return true;
      });
    });
  }

  test('a prompt of a spec is in the inbox without anybody asking', async () => {
    const spec = { projectRef: { name: 'shop' }, prompt: 'do it' };
    const stored = await apply(api.admin.client, SESSIONS, { metadata: at('by-kubectl'), spec }, MANAGER);
    await until('the prompt is stored', async () => {
      const { body } = await alice.call(listPromptsRoute, { params: at('by-kubectl') });
      return body.items.some(({ messageId }) => messageId === `spec:${stored.metadata.uid}`);
    });
  });

  test('the operator syncs a project and hears of every session, also of one that comes later', async () => {
    const project = await api.admin.client.get(PROJECTS, at('shop'));
    const uid = project?.metadata.uid ?? '';
    const { body: fact } = await operator.call(syncProjectRoute, {
      params: at('shop'),
      body: {
        uid,
        generation: 1,
        syncToken: null,
        repository: {
          url: 'https://git.example.com/team/shop.git',
          defaultBranch: null,
          credentialsSecretName: null,
          forcePush: 'Forbidden',
          pollIntervalSeconds: 0,
        },
        manifestPath: 'beeuni.yaml',
        features: {},
        defaults: { agent: null, model: null },
        allowedModels: null,
        secrets: [],
      },
    });
    assert.deepEqual([fact.state, fact.repository.reason], ['done', 'HostNotAllowed']);

    const frames = await operator.ndjson(factsRoute, {});
    const known = new Set<string>();
    let later: string | undefined;
    for await (const frame of frames) {
      if (frame.type === 'fact') known.add(frame.fact.uid);
      if (frame.type === 'snapshot-end') {
        assert.ok(known.has(uid), 'the project is in the snapshot');
        assert.ok(known.size > 5, 'so are the sessions');
        const spec = { projectRef: { name: 'shop' } };
        const made = await apply(api.admin.client, SESSIONS, { metadata: at('later'), spec }, MANAGER);
        later = made.metadata.uid;
      }
      if (later !== undefined && known.has(later)) break;
    }
    assert.notEqual(later, undefined);
  });

  test('a database that crashes gives 503 until it is back, and takes nothing away', async () => {
    const postmaster = async () =>
      Number((await readFile(join(process_.folder, 'pg', 'data', 'postmaster.pid'), 'utf8')).split('\n')[0]);
    const before = await postmaster();
    process.kill(before, 'SIGQUIT');
    const send = (n: number) =>
      alice.call(createPromptRoute, {
        params: at('talk'),
        body: { messageId: `crash-${n}`, parts: [{ type: 'text', text: 'hi' }] },
      });
    let acknowledged = 0;
    let refused = 0;
    await until('prompts are stored by the new server', async () => {
      try {
        await send(acknowledged);
        acknowledged += 1;
      } catch (error) {
        assert.ok(error instanceof UnavailableError, String(error));
        assert.equal(error.code, 'database_unavailable');
        refused += 1;
      }
      const now = await postmaster().catch(() => before);
      return now !== before && acknowledged > 3;
    });
    assert.ok(refused > 0, 'no call met the crash');
    const { body } = await alice.call(listPromptsRoute, { params: at('talk'), query: { limit: 200 } });
    const stored = body.items.filter(({ messageId }) => messageId.startsWith('crash-')).length;
    assert.ok(stored >= acknowledged, `${acknowledged} were acknowledged, ${stored} are there`);
    const metrics = await process_.url('metrics');
    assert.equal((await fetch(`${metrics}/readyz`)).status, 200);
  });

  test('FF11 prints no token and no prompt, and one line per record', () => {
    assert.ok(process_.lines.length > 5);
    for (const line of process_.lines) {
      assert.doesNotMatch(line, new RegExp(CANARY));
      assert.ok(!line.includes(aliceToken), 'a token was printed');
      assert.doesNotThrow(() => JSON.parse(line), `not one JSON record: ${line}`);
    }
  });

  test('SIGTERM ends streams and held claims, stops the database and exits with 0', async () => {
    const { client } = api.admin;
    await createAccount(client, namespace, 'beeuni-sandbox');
    const uid = await createIdlePod(client, namespace, 'waiting', 'beeuni-sandbox');
    const pod = { name: 'waiting', uid };
    const podToken = await tokenOf(client, { namespace, account: 'beeuni-sandbox', audience: AUDIENCE, pod });
    const sandbox = createClient({
      baseUrl: await process_.url('sandbox'),
      token: () => podToken,
      peer: 'the control plane',
      unreachable: 'control_plane_unavailable',
    });
    const claim = sandbox.call(claimRoute, { body: { daemonVersion: '0', adapters: [] } });
    const events = await alice.sse(streamEventsRoute, { params: at('talk') });
    const first = await events.next();
    assert.equal(first.value?.event, 'hello');
    process_.child.kill('SIGTERM');
    for await (const event of events) assert.fail(`nothing should follow, but ${event.event} did`);
    assert.deepEqual(await claim, { status: 202, body: { state: 'wait', reason: 'not_assigned' } });
    assert.equal(await process_.exited, 0);
    assert.match(process_.lines.at(-1) ?? '', /"stopped"/);
  });
});

test('a wrong environment is told in full before a port opens', async () => {
  const started = await startControlPlane({
    kubeconfigPath: '/nowhere',
    environment: { BEEUNI_COLOUR: 'red', BEEUNI_PUBLIC_PORT: 'x' },
  });
  assert.equal(await started.exited, 78);
  assert.deepEqual(started.lines, [
    'the environment is wrong:',
    '  BEEUNI_COLOUR: unknown name',
    '  BEEUNI_PUBLIC_PORT: must be a port number',
  ]);
  await started.stop();
});
