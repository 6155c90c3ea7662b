// Image policies of agents on a real Postgres over HTTP: what is saved, refused, audited, and what a claim delivers.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { systemClock } from '#base/clock.ts';
import { listen } from '#base/http/listen.ts';
import { mount } from '#base/http/mount.ts';
import { createHttpServer } from '#base/http/server.ts';
import { createLogger } from '#base/log.ts';
import { makeAgentPolicies, policyOf } from '#controlplane/app/agent-policies.ts';
import { projectEffective } from '#controlplane/app/project-effective.ts';
import type { ProjectConfig } from '#controlplane/app/project-ports.ts';
import { makeRecordWrite } from '#controlplane/app/writes.ts';
import { makeAgentPolicyHandlers } from '#controlplane/http/agent-policies.ts';
import { makeGuard } from '#controlplane/http/guard.ts';
import { makeAgentPolicyStore } from '#controlplane/store/agent-policies.ts';
import { makeProjectStore } from '#controlplane/store/projects.ts';
import { makeWriteRecords } from '#controlplane/store/write-records.ts';
import * as routes from '#schema/rest/agent-policies.ts';
import { DEFAULT_PLATFORM_FLAGS } from '#schema/rules/effective-flags.ts';
import { agentVisionOf, DEFAULT_AGENT_POLICY } from '#schema/settings/agent-policy.ts';
import { compiledAgent } from '#schema/wire/claim.ts';
import { freshDatabase, type TestDatabase } from '#test/support/postgres.ts';
import { aProject } from '#test/support/session-fixtures.ts';
import { SETTINGS_REGISTRY } from '#test/support/settings-api.ts';

let database: TestDatabase;
let url: string;
let stop: () => Promise<unknown>;
const project = aProject({ defaults: { model: 'closed/large', agent: 'designer' } });
const { uid } = project.metadata;
const anAgent = (name: string, model?: string) =>
  compiledAgent.parse({ name, mode: 'primary', prompt: 'p', tools: 'all', skills: 'all', ...(model && { model }) });
const config = {
  commit: 'c'.repeat(40),
  defaultAgent: 'dev',
  agents: [anAgent('dev'), anAgent('designer', 'acme/small')],
  secrets: {},
  models: [],
} as unknown as ProjectConfig;

before(async () => {
  database = await freshDatabase();
  const { pool } = database;
  const store = makeAgentPolicyStore(pool);
  const projects = makeProjectStore(pool);
  const policies = makeAgentPolicies({ store, projects });
  const guard = makeGuard({
    authenticate: async () => ({ kind: 'user', username: 'ann', uid: 'u', groups: [], extra: {} }),
    authorize: async () => undefined,
    takeCall: () => undefined,
    recordWrite: makeRecordWrite({ records: makeWriteRecords(pool), onLost: () => undefined }),
    readState: async () => undefined,
    observe: { authenticated: () => undefined, denied: () => undefined },
  });
  const log = createLogger({ level: 'error', write: () => undefined });
  const server = createHttpServer({ listener: 'public', log, clock: systemClock, observe: () => undefined });
  const handlers = makeAgentPolicyHandlers({
    fetchProject: async (_namespace, name) => (name === project.metadata.name ? project : undefined),
    policies,
    explain: async () =>
      projectEffective({
        project,
        platformFlags: DEFAULT_PLATFORM_FLAGS,
        config: (await projects.find(uid))?.config,
        runtime: 'pi',
        registry: SETTINGS_REGISTRY,
        defaultModel: 'env/main',
        policies: await store.list(uid),
      }),
  });
  mount(server, routes.getAgentPolicyRoute, handlers.getAgentPolicy, guard);
  mount(server, routes.putAgentPolicyRoute, handlers.putAgentPolicy, guard);
  mount(server, routes.getProjectEffectiveRoute, handlers.getProjectEffective, guard);
  const listening = await listen(server, { port: 0, host: '127.0.0.1' });
  url = listening.url;
  stop = () => listening.stop(1_000);
});
after(() => stop());
beforeEach(async () => {
  for (const text of ['delete from projects', 'delete from audit']) await database.pool.query({ text, values: [] });
  await database.pool.query({
    text: 'insert into projects (uid, namespace, name, request, config) values ($1, $2, $3, $4, $5)',
    values: [uid, project.metadata.namespace, project.metadata.name, '{}', JSON.stringify(config)],
  });
});

type Reply = Readonly<{ status: number; etag: string | null; body: Record<string, unknown> }>;
const call = async (path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Reply> => {
  const { namespace, name } = project.metadata;
  const response = await fetch(`${url}/v1/namespaces/${namespace}/projects/${name}/${path}`, {
    method: body === undefined ? 'GET' : 'PUT',
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return {
    status: response.status,
    etag: response.headers.get('etag'),
    body: (await response.json()) as Record<string, unknown>,
  };
};
const get = (agent = 'designer') => call(`agents/${agent}/policy`);
const put = (body: unknown, headers?: Record<string, string>) => call('agents/designer/policy', body, headers);
const errorOf = ({ body }: Reply) =>
  body['error'] as { code: string; message: string; details: Record<string, unknown> };

test('B7 B10 an agent for which nothing is saved has pixels without limit', async () => {
  const { status, body, etag } = await get();
  assert.deepEqual([status, etag], [200, '"0"']);
  assert.deepEqual(body, { ...DEFAULT_AGENT_POLICY, agent: 'designer', revision: 0, mode: 'pixels', saved: [] });
});

test('B7 the three modes are pixels, descriptions with vision_describe, and off with vision false, which wins', async () => {
  assert.equal((await put({ vision_describe: true })).body['mode'], 'descriptions');
  assert.equal((await put({ vision: false })).body['mode'], 'off');
  const back = await put({ vision: null });
  assert.deepEqual([back.body['mode'], back.body['saved']], ['descriptions', ['vision_describe']]);
  assert.equal((await put({ vision_describe: false })).body['mode'], 'pixels');
});

test('B10 the limit of screenshots is refused unless pixels are on, with field and limit, and nothing is saved', async () => {
  for (const body of [
    { vision: false, vision_keep_images: 3 },
    { vision_describe: true, vision_keep_images: 1 },
  ]) {
    const refused = await put(body);
    const error = errorOf(refused);
    assert.deepEqual([refused.status, error.code], [400, 'invalid_setting']);
    assert.match(error.message, /^body\.vision_keep_images must be 0, because vision/);
  }
  assert.deepEqual((await get()).body['saved'], []);
  assert.equal((await put({ vision_keep_images: 3 })).status, 200);
  const later = await put({ vision: false });
  assert.equal(errorOf(later).code, 'invalid_setting', 'the saved limit would be left without pixels');
  assert.equal((await put({ vision: false, vision_keep_images: 0 })).body['mode'], 'off');
});

test('B10 bounds and types of a policy are refused by name', async () => {
  for (const [body, code] of [
    [{ vision_keep_images: 101 }, 'invalid_request'],
    [{ vision_keep_images: -1 }, 'invalid_request'],
    [{ vision_keep_images: 1.5 }, 'invalid_request'],
    [{ vision_keep_images: '3' }, 'invalid_request'],
    [{ vision: 'no' }, 'invalid_request'],
    [{ vision_mode: 'off' }, 'unknown_field'],
    [[], 'invalid_request'],
  ] as const) {
    const { status, body: answer } = await put(body);
    const { code: given } = answer['error'] as { code: string };
    assert.deepEqual([JSON.stringify(body), status, given], [JSON.stringify(body), 400, code]);
  }
});

test('an agent that the manifest does not declare, or of a project without one, is refused', async () => {
  const unknown = await get('designr');
  assert.deepEqual([unknown.status, errorOf(unknown).code], [400, 'unknown_agent']);
  assert.match(errorOf(unknown).message, /did you mean "designer"\?$/);
  await database.pool.query({ text: 'update projects set config = null', values: [] });
  assert.match(errorOf(await put({ vision: false })).message, /has no valid manifest yet/);
  await database.pool.query({ text: 'delete from projects', values: [] });
  assert.equal((await put({ vision: false })).status, 400);
});

test('20-control-plane §2 two writers of one policy never mix, and the late one is given the last state', async () => {
  const { etag } = await get();
  const replies = await Promise.all(
    Array.from({ length: 8 }, (_, n) => put({ vision_keep_images: n + 1 }, { 'if-match': etag ?? '' })),
  );
  const won = replies.filter(({ status }) => status === 200);
  assert.equal(won.length, 1);
  const lost = replies.find(({ status }) => status === 412);
  assert.ok(lost !== undefined);
  assert.deepEqual(errorOf(lost).details['current'], won[0]?.body);
});

test('each changed field has an audit row with before and after', async () => {
  await put({ vision_describe: true, vision_keep_images: 0 });
  await put({ vision_describe: true, vision_keep_images: null });
  const rows = await database.pool.query({
    text: `select name, before, after, subject from audit where operation = 'saveAgentPolicy' order by id`,
    values: [],
  });
  const name = (field: string) => `${project.metadata.name}/agents/designer/${field}`;
  assert.deepEqual(rows, [
    { name: name('vision_describe'), before: null, after: true, subject: 'user:ann' },
    { name: name('vision_keep_images'), before: null, after: 0, subject: 'user:ann' },
    { name: name('vision_keep_images'), before: 0, after: null, subject: 'user:ann' },
  ]);
});

test('a policy ends with its project', async () => {
  await put({ vision: false });
  await database.pool.query({ text: 'delete from projects', values: [] });
  assert.deepEqual(await database.pool.query({ text: 'select 1 from agent_policies', values: [] }), []);
});

test('B7 B10 what a daemon is told has one mode, and a limit in pixel mode alone', () => {
  const told = (saved: Partial<typeof DEFAULT_AGENT_POLICY>) => agentVisionOf({ ...DEFAULT_AGENT_POLICY, ...saved });
  assert.deepEqual(told({ vision_keep_images: 3 }), { mode: 'pixels', keepImages: 3 });
  assert.deepEqual(told({ vision: false, vision_keep_images: 3 }), { mode: 'off', keepImages: 0 });
  assert.deepEqual(told({ vision_describe: true }), { mode: 'descriptions', keepImages: 0 });
  const saved = { vision: null, vision_describe: null, vision_keep_images: 4 };
  assert.deepEqual(policyOf(saved), { ...DEFAULT_AGENT_POLICY, vision_keep_images: 4 });
});

test('D19 effective says value, layer and what was overridden, of flags, harness, agent, model and policies', async () => {
  await put({ vision_keep_images: 4 });
  const { status, body } = await call('effective');
  assert.equal(status, 200, JSON.stringify(body));
  assert.deepEqual(body['harness'], {
    value: 'pi',
    layer: 'manifest-runtime',
    overrode: [{ layer: 'default', value: 'opencode' }],
  });
  assert.deepEqual(body['agent'], { value: 'designer', layer: 'Project', overrode: [] });
  assert.deepEqual(body['model'], {
    value: 'acme/small',
    layer: 'Agent',
    overrode: [{ layer: 'Platform', value: 'env/main' }],
  });
  const flags = body['flags'] as { name: string }[];
  assert.deepEqual(
    flags.find(({ name }) => name === 'config_releases'),
    {
      name: 'config_releases',
      value: false,
      layer: 'Unavailable',
      available: false,
      overrode: [{ layer: 'Platform', value: true }],
    },
  );
  const policies = body['policies'] as Record<string, unknown>[];
  assert.equal(policies.length, 6);
  assert.deepEqual(policies.at(-1), {
    agent: 'designer',
    name: 'vision_keep_images',
    value: 4,
    layer: 'Saved',
    overrode: [{ layer: 'Default', value: 0 }],
  });
  await database.pool.query({ text: 'update projects set config = null', values: [] });
  const unsynced = await call('effective');
  assert.deepEqual([unsynced.body['agent'], unsynced.body['policies']], [null, []]);
});
