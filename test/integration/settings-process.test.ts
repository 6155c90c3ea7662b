// Workspace settings through a whole control plane: who may, what survives kill -9, what a wrong environment does, and a
// session's title from its first prompt.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { apply } from '#kube/apply.ts';
import { PROJECTS } from '#kube/resource-types.ts';
import { type ControlPlaneProcess, startControlPlane } from '#test/support/control-plane.ts';
import { type DatabaseLine, openDatabaseLine } from '#test/support/database-line.ts';
import { applyFile, startTestApi, type TestApi } from '#test/support/kube.ts';
import { createAccount, grant, grantPaths, tokenOf } from '#test/support/kube-accounts.ts';
import { freshDatabase, type TestDatabase } from '#test/support/postgres.ts';
import { type ScriptedProvider, startScriptedProvider } from '#test/support/scripted-provider.ts';
import { until } from '#test/support/until.ts';

const CANARY = 'sk-canary-settings-4f1d2c7b9a';
type Reply = Readonly<{ status: number; etag: string; body: Record<string, unknown> }>;

describe('settings of a control plane process', () => {
  let api: TestApi;
  let database: TestDatabase;
  /** Between the process and its database, so that a test can take it away. */
  let line: DatabaseLine;
  let provider: ScriptedProvider;
  let process_: ControlPlaneProcess;
  let namespace: string;
  const tokens: Record<string, string> = {};

  const start = async (): Promise<void> => {
    process_ = await startControlPlane({
      kubeconfigPath: api.kubeconfigPath,
      databaseUrl: line.databaseUrl,
      environment: {
        BEEUNI_PROVIDER_ALLOWED_PRIVATE_HOSTS: '127.0.0.0/8',
        BEEUNI_CONTINUE_AS_NEW_BYTES: 'lots',
        TEMPORALITY_IMAGE_MAX_SIDE: '800',
        BEEUNI_RATE_LIMIT_PER_SECOND: '100000',
        BEEUNI_RATE_LIMIT_BURST: '1000000',
      },
    });
    await process_.ready();
  };
  const send = async (who: string, method: string, path: string, body?: unknown): Promise<Reply> => {
    const response = await fetch(`${await process_.url('public')}/v1/${path}`, {
      method,
      headers: {
        ...(tokens[who] === undefined ? {} : { authorization: `Bearer ${tokens[who]}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return {
      status: response.status,
      etag: response.headers.get('etag') ?? '',
      body: text === '' ? {} : (JSON.parse(text) as Record<string, unknown>),
    };
  };
  const errorOf = ({ body }: Reply) => body['error'] as { code: string; message: string };

  before(async () => {
    api = await startTestApi();
    database = await freshDatabase();
    line = await openDatabaseLine(database.databaseUrl);
    const { client } = api.admin;
    await applyFile(client, 'crds/projects.yaml');
    await applyFile(client, 'crds/sessions.yaml');
    namespace = await api.namespace();
    for (const name of ['alice', 'bob']) {
      await createAccount(client, namespace, name);
      await grant(client, namespace, name, name, "[{apiGroups: [beeuni.dev], resources: ['*'], verbs: ['*']}]");
      tokens[name] = await tokenOf(client, { namespace, account: name });
    }
    await grantPaths(client, namespace, 'alice', `${namespace}-alice`, ['/v1/workspace/*']);
    const spec = { repository: { url: 'https://git.example.com/team/shop.git' } };
    await apply(client, PROJECTS, { metadata: { namespace, name: 'shop' }, spec }, { manager: 'test', force: true });
    provider = await startScriptedProvider({ key: CANARY, models: ['large', 'small'] });
    await start();
    const made = await send('alice', 'PUT', 'workspace/providers/demo', {
      kind: 'openai-compatible',
      base_url: provider.url,
      api_key: CANARY,
      models: [{ id: 'large' }, { id: 'small' }],
    });
    assert.equal(made.status, 201, JSON.stringify(made.body));
  });
  after(async () => {
    await process_?.stop();
    await provider?.close();
    await line?.close();
    await api?.stop();
  });

  test('D5 only who may use the path of the workspace reads or changes settings', async () => {
    assert.equal((await send('nobody', 'GET', 'workspace/supervisor')).status, 401);
    for (const [method, path, body] of [
      ['GET', 'workspace/supervisor', undefined],
      ['PUT', 'workspace/supervisor', {}],
      ['GET', 'workspace/effective', undefined],
    ] as const) {
      assert.equal((await send('bob', method, path, body)).status, 403, `${method} ${path}`);
      assert.equal((await send('alice', method, path, body)).status, 200, `${method} ${path}`);
    }
  });

  test('B12 a wrong variable is logged once and reported, and the process runs with the default', async () => {
    const told = process_.lines.filter((line) => line.includes('a setting of the environment does not count'));
    assert.equal(told.length, 1);
    assert.match(told[0] ?? '', /BEEUNI_CONTINUE_AS_NEW_BYTES/);
    const { body } = await send('alice', 'GET', 'workspace/supervisor');
    assert.equal((body['harness'] as Record<string, number>)['continue_as_new_bytes'], 134_217_728);
    assert.deepEqual(
      (body['problems'] as { name: string }[]).map(({ name }) => name),
      ['BEEUNI_CONTINUE_AS_NEW_BYTES'],
    );
  });

  test('B29 B46 limits come from the environment of the process, under both prefixes, and no route changes them', async () => {
    const { body } = await send('alice', 'GET', 'workspace/effective');
    const side = (body['limits'] as { name: string; value: number; source: string }[]).find(
      ({ name }) => name === 'image_max_side',
    );
    assert.deepEqual([side?.value, side?.source], [800, 'environment']);
    for (const name of [
      'image_max_side',
      'image_encoded_max_bytes',
      'model_activity_timeout',
      'tool_activity_timeout',
    ]) {
      const refused = await send('alice', 'PUT', 'workspace/supervisor', { harness: { [name]: 1 } });
      assert.deepEqual([refused.status, errorOf(refused).code], [400, 'unknown_setting']);
    }
  });

  test('20-control-plane §4 a provider that a role names is not deleted without force', async () => {
    await send('alice', 'PUT', 'workspace/supervisor', { extraction_model: 'demo/large', judge_model: 'demo/small' });
    const refused = await send('alice', 'DELETE', 'workspace/providers/demo');
    assert.deepEqual([refused.status, errorOf(refused).code], [409, 'provider_referenced']);
    assert.match(errorOf(refused).message, /workspace setting eval\.judge\.model \(demo\/small\)/);
  });

  test('B2 B4 a session gets the title that the title role makes of its first prompt, and its view shows it', async () => {
    const saved = await send('alice', 'PUT', 'workspace/supervisor', { title_model: 'demo/small' });
    assert.equal(saved.status, 200, JSON.stringify(saved.body));
    const sessions = `namespaces/${namespace}/sessions`;
    const made = await send('alice', 'POST', sessions, { name: 'named', spec: { projectRef: { name: 'shop' } } });
    assert.deepEqual([made.status, made.body['title']], [201, null]);
    const prompt = { parts: [{ type: 'text', text: 'Name the fruits of the garden' }] };
    const began = performance.now();
    const stored = await send('alice', 'POST', `${sessions}/named/prompts`, prompt);
    assert.equal(stored.status, 202, JSON.stringify(stored.body));
    const promptMs = performance.now() - began;
    const title = await until('the title is there', async () => {
      const { body } = await send('alice', 'GET', `${sessions}/named`);
      return typeof body['title'] === 'string' && body['title'];
    });
    assert.ok(title.length > 0 && title.length <= 80);
    assert.ok(promptMs < 5_000);
    const list = await send('alice', 'GET', sessions);
    assert.equal((list.body['items'] as { title: string }[])[0]?.title, title);
    assert.ok(provider.requests.length > 0);
    const object = await api.admin.client.get((await import('#kube/resource-types.ts')).SESSIONS, {
      namespace,
      name: 'named',
    });
    assert.equal(JSON.stringify(object).includes(title), false, 'nothing of it is in the custom resource');
  });

  test('a control plane that is killed amid changes leaves whole settings, and one audit row per key that changed', async () => {
    const put = (n: number) =>
      send('alice', 'PUT', 'workspace/supervisor', { harness: { keep_groups_min: n, keep_groups_max: n } });
    const acknowledged: number[] = [];
    let stopped = false;
    const writers = Array.from({ length: 4 }, async (_, writer) => {
      for (let n = 0; !stopped && n < 400; n += 1) {
        const value = 2 + ((writer * 17 + n) % 60);
        const reply = await put(value).catch(() => undefined);
        if (reply === undefined) return;
        if (reply.status === 200) acknowledged.push(value);
      }
    });
    await until('some changes are through', () => acknowledged.length > 20);
    process_.child.kill('SIGKILL');
    stopped = true;
    await Promise.all(writers);
    await process_.exited;
    await process_.stop();
    await start();
    const { body } = await send('alice', 'GET', 'workspace/supervisor');
    const harness = body['harness'] as Record<string, number>;
    assert.equal(harness['keep_groups_min'], harness['keep_groups_max']);
    const audit = await database.pool.query<{ name: string; before: number | null; after: number | null }>({
      text: `select name, before, after from audit where name like 'harness.budgets.keep_groups_%' order by id`,
      values: [],
    });
    for (const name of ['harness.budgets.keep_groups_min', 'harness.budgets.keep_groups_max']) {
      const rows = audit.filter((row) => row.name === name);
      let at: number | null = null;
      for (const row of rows) {
        assert.equal(row.before, at, 'each change begins where the last one ended');
        at = row.after;
      }
      assert.equal(at, harness[name.slice('harness.budgets.'.length)]);
      assert.ok(rows.length >= 10, `${rows.length}`);
    }
    const next = await put(33);
    assert.equal(next.status, 200, 'and the next change goes through');
  });

  test('B4 roles whose provider was removed by force are off at once, and the answer says why', async () => {
    const removed = await send('alice', 'DELETE', 'workspace/providers/demo?force=true');
    assert.equal(removed.status, 204);
    const { body } = await send('alice', 'GET', 'workspace/effective');
    const roles = body['roles'] as { role: string; assigned: string; model: string | null; reason: string }[];
    const title = roles.find(({ role }) => role === 'title');
    assert.deepEqual([title?.assigned, title?.model], ['demo/small', null]);
    assert.match(title?.reason ?? '', /no provider demo is registered/);
    const again = await send('alice', 'PUT', 'workspace/supervisor', { title_model: 'demo/small' });
    assert.deepEqual([again.status, errorOf(again).code], [400, 'unknown_model']);
  });

  test('20-control-plane §12 while the database is away a model name is judged by nobody: 503, nothing is saved, and it heals', async () => {
    const specs = `namespaces/${namespace}`;
    const session = { name: 'away', spec: { projectRef: { name: 'shop' }, model: 'demo/large' } };
    const before = (await send('alice', 'GET', 'workspace/supervisor')).body['title_model'];
    line.cut();
    try {
      for (const [method, path, body, code] of [
        ['GET', 'workspace/models', undefined, 'registry_unavailable'],
        ['POST', 'workspace/models/validate', { names: ['demo/large', 'demo/none'] }, 'database_unavailable'],
        ['PUT', 'workspace/supervisor', { title_model: 'demo/large' }, 'database_unavailable'],
        ['POST', `${specs}/sessions`, session, 'database_unavailable'],
        ['PATCH', `${specs}/projects/shop`, { spec: { models: { default: 'demo/none' } } }, 'database_unavailable'],
        ['GET', 'workspace/supervisor', undefined, 'database_unavailable'],
        ['GET', 'workspace/providers', undefined, 'database_unavailable'],
      ] as const) {
        const reply = await send('alice', method, path, body);
        assert.deepEqual([reply.status, errorOf(reply)?.code], [503, code], `${method} ${path}`);
      }
      assert.equal((await send('nobody', 'GET', 'workspace/models')).status, 401);
      assert.equal((await send('bob', 'GET', 'workspace/models')).status, 403);
    } finally {
      line.mend();
    }
    await until('it is judged again', async () => (await send('alice', 'GET', 'workspace/models')).status === 200);
    assert.equal((await send('alice', 'GET', 'workspace/supervisor')).body['title_model'], before);
    assert.equal((await send('alice', 'GET', `${specs}/sessions/away`)).status, 404);
    const project = await send('alice', 'GET', `${specs}/projects/shop`);
    assert.equal(JSON.stringify(project.body).includes('demo/none'), false);
  });

  test('FF11 no key is in any line of the log', () => {
    for (const line of process_.lines) assert.ok(!line.includes(CANARY), line);
  });
});
