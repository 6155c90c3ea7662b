// Syncing projects against a real git remote and a real Postgres: what each wrong input becomes, and how it heals.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { systemClock } from '#base/clock.ts';
import { BeeuniError } from '#base/errors.ts';
import { createLogger } from '#base/log.ts';
import { parseYaml } from '#base/yaml.ts';
import type { StoredPolicy } from '#controlplane/app/agent-policies.ts';
import { makeModelsApp } from '#controlplane/app/models.ts';
import { makeProjectConfig, type ProjectConfigApp } from '#controlplane/app/project-config.ts';
import type { ProjectStore } from '#controlplane/app/project-ports.ts';
import { makeProjectSync, type ProjectSync } from '#controlplane/app/project-sync.ts';
import { makeReadProviderKeys } from '#controlplane/app/provider-keys.ts';
import { makeProvidersApp, type ProvidersApp } from '#controlplane/app/providers.ts';
import { makeRegistryReader } from '#controlplane/app/registry.ts';
import { makeListProviderModels } from '#controlplane/gateway/list-models.ts';
import { makeUpstreams, type Upstreams } from '#controlplane/gateway/upstream.ts';
import { parseCredentials } from '#controlplane/git/credentials.ts';
import { makeMirrors } from '#controlplane/git/mirror.ts';
import { makeReadFiles } from '#controlplane/git/objects.ts';
import { makeRepositories } from '#controlplane/git/repositories.ts';
import { makeGit } from '#controlplane/git/run.ts';
import type { SecretAnswer } from '#controlplane/kubernetes/secrets.ts';
import { makeProjectStore } from '#controlplane/store/projects.ts';
import { makeProviderStore } from '#controlplane/store/provider-store.ts';
import { makeSeal, parseSealKeys } from '#controlplane/store/seal.ts';
import type { Project } from '#schema/resources/project.ts';
import { ProjectKind } from '#schema/resources/project.ts';
import { type Session, SessionKind } from '#schema/resources/session.ts';
import { COMPILED_BUDGETS, COMPILED_LIMITS } from '#schema/settings/budgets.ts';
import { COMPILED_HAB } from '#schema/settings/hab.ts';
import { type ProviderInput, providerInput } from '#schema/settings/providers.ts';
import { type ModelRole, NO_ROLES } from '#schema/settings/roles.ts';
import { type ProjectFact, projectFact, type SyncRequest } from '#schema/wire/sync.ts';
import { startTestRemote, type TestRemote } from '#test/support/git-server.ts';
import { freshDatabase, type TestDatabase } from '#test/support/postgres.ts';
import { type ScriptedProvider, startScriptedProvider } from '#test/support/scripted-provider.ts';

const CANARY = `sk-canary-${randomBytes(8).toString('hex')}`;
const MANIFEST = `beeuni_version: 2
default_agent: build
agents:
  build:
    secrets: [NPM, OTHER]
  review:
    secrets: none
`;
const AGENTS = {
  'agents/build.md': '---\nmode: primary\nmodel: demo/scripted-large\n---\nBuild things.\n',
  'agents/review.md': '---\nmode: primary\n---\nReview things.\n',
};

let database: TestDatabase;
let remote: TestRemote;
let locked: TestRemote;
let provider: ScriptedProvider;
let upstreams: Upstreams;
let folder: string;
let store: ProjectStore;
let sync: ProjectSync;
let providers: ProvidersApp;
let registry: ReturnType<typeof makeRegistryReader>;
const secrets = new Map<string, Record<string, string>>();
const denied = new Set<string>();
const logs: string[] = [];
let count = 0;
let uid = '';
let pollIntervalSeconds = 60;
const pushed: string[] = [];

const readSecret = async (_namespace: string, name: string): Promise<SecretAnswer> => {
  if (denied.has(name))
    return { kind: 'access-denied', message: `Secret ${name} may not be read; grant it with: kubectl x` };
  const data = secrets.get(name);
  if (data === undefined) return { kind: 'not-found', message: `Secret ${name} does not exist` };
  const decoded = Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value)]));
  return { kind: 'found', secret: { type: 'Opaque', data: decoded, resourceVersion: '1' } };
};

const demo = (more: Record<string, unknown> = {}): ProviderInput =>
  providerInput.parse({
    id: 'demo',
    kind: 'openai-compatible',
    base_url: provider.url,
    api_key: CANARY,
    models: [{ id: 'scripted-large' }, { id: 'scripted-small' }],
    ...more,
  });
const put = (more: Record<string, unknown> = {}) => {
  const { id: _id, ...rest } = demo(more);
  return providers.put('demo', rest, true);
};

before(async () => {
  database = await freshDatabase();
  remote = await startTestRemote();
  locked = await startTestRemote({ user: { username: 'bot', password: CANARY } });
  provider = await startScriptedProvider({ key: CANARY });
  folder = await mkdtemp(join(tmpdir(), 'beeuni-sync-'));
  await mkdir(join(folder, 'mirrors'));
  const log = createLogger({ level: 'debug', write: (line) => logs.push(line) });
  const git = makeGit({ home: folder, path: process.env['PATH'] ?? '' }, systemClock);
  const mirrors = makeMirrors({
    git,
    clock: systemClock,
    directory: join(folder, 'mirrors'),
    hostRule: { allowedHosts: [], insecureHosts: ['127.0.0.1'] },
    fetchTimeoutMs: 20_000,
    maxRepositoryBytes: 50_000_000,
  });
  upstreams = makeUpstreams({ allowedAddresses: ['127.0.0.0/8'], maxConnections: 8 });
  const providerStore = makeProviderStore(database.pool);
  registry = makeRegistryReader({ store: providerStore, clock: systemClock });
  store = makeProjectStore(database.pool);
  sync = makeProjectSync({
    store,
    repositories: makeRepositories(mirrors, makeReadFiles(git)),
    readSecret,
    parseGitCredentials: parseCredentials,
    readRegistry: registry.fresh,
    parseYaml,
    sha256: (text) => createHash('sha256').update(text).digest('hex'),
    pushSecrets: async (projectUid) => void pushed.push(projectUid),
    defaultModel: undefined,
    pollIntervalSeconds: 60,
    answerWithinMs: 30_000,
    clock: systemClock,
    random: () => 0.5,
    log,
  });
  const { seal, unseal } = makeSeal(parseSealKeys('11'.repeat(32)), randomBytes);
  providers = makeProvidersApp({
    store: providerStore,
    seal,
    readKeys: makeReadProviderKeys({ unseal, readSecret, namespace: 'beeuni', clock: systemClock }),
    onSync: () => {},
    resolveHost: async () => [],
    listModels: makeListProviderModels(upstreams),
    findReferences: sync.findReferences,
    onChange: sync.checkModels,
    allowedAddresses: ['127.0.0.0/8'],
    clock: systemClock,
  });
});
after(async () => {
  await sync.idle();
  await Promise.all([remote.close(), locked.close(), provider.close(), upstreams.close()]);
  await database.close();
  await rm(folder, { recursive: true, force: true });
});
beforeEach(async () => {
  count += 1;
  uid = `00000000-0000-0000-0000-${String(count).padStart(12, '0')}`;
  pollIntervalSeconds = 60;
  secrets.clear();
  denied.clear();
  pushed.length = 0;
  await put();
});

const repository = (): string => `repo-${count}.git`;
const request = (more: Partial<SyncRequest> = {}, from: Partial<SyncRequest['repository']> = {}): SyncRequest => ({
  uid,
  generation: 1,
  syncToken: null,
  repository: {
    url: remote.urlOf(repository()),
    defaultBranch: null,
    credentialsSecretName: null,
    forcePush: 'Forbidden',
    pollIntervalSeconds,
    ...from,
  },
  manifestPath: 'beeuni.yaml',
  features: { config_releases: true },
  defaults: { agent: null, model: null },
  allowedModels: null,
  secrets: [],
  ...more,
});
const ask = async (asked: SyncRequest): Promise<ProjectFact> => {
  const fact = await sync.sync({ uid, namespace: 'team', name: `shop-${count}` }, asked, new AbortController().signal);
  projectFact.parse(fact);
  assert.equal(fact.state, 'done');
  return fact;
};
const facts = async (): Promise<number> =>
  (
    await database.pool.query<{ version: number }>({ text: 'select version from facts where uid = $1', values: [uid] })
  )[0]?.version ?? 0;
const codeOf = async (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'ok',
    (error: unknown) => (error instanceof BeeuniError ? error.code : String(error)),
  );

test('a healthy project is synced: branch, commit, manifest, agents, models, and one fact', async () => {
  const commit = await remote.commit(repository(), { 'beeuni.yaml': MANIFEST, ...AGENTS });
  const fact = await ask(request());
  assert.deepEqual(fact.repository, { reason: 'Synced', message: '', defaultBranch: 'main', commit });
  assert.equal(fact.credentials.reason, 'NotNeeded');
  assert.equal(fact.manifest.reason, 'Valid');
  assert.deepEqual(
    fact.manifest.lastValid?.agents.map(({ name }) => name),
    ['build', 'review'],
  );
  assert.equal(fact.models.reason, 'AllKnown');
  assert.equal(fact.models.default, 'demo/scripted-large');
  assert.equal(fact.release.reason, 'NotBuilt');
  const before = await facts();
  assert.ok(before > 0);
  await ask(request());
  assert.equal(await facts(), before, 'a look that finds nothing new raises no fact');
});

test('the repository is unreachable, unknown or has no such branch: its own reason, and the last good commit stays', async () => {
  const commit = await remote.commit(repository(), { 'beeuni.yaml': MANIFEST, ...AGENTS });
  await ask(request());
  const away = await ask(request({ generation: 2 }, { url: 'http://127.0.0.1:1/x.git' }));
  assert.deepEqual(
    [away.repository.reason, away.repository.commit, away.manifest.reason],
    ['Unreachable', commit, 'Valid'],
  );
  assert.equal(
    (await ask(request({ generation: 3 }, { url: remote.urlOf('none.git') }))).repository.reason,
    'NotFound',
  );
  const branch = await ask(request({ generation: 4 }, { defaultBranch: 'nope' }));
  assert.equal(branch.repository.reason, 'BranchNotFound');
  assert.match(branch.repository.message, /nope; it has main/);
  assert.equal((await ask(request({ generation: 5 }))).repository.reason, 'Synced');
});

test('credentials that are missing, incomplete, forbidden or wrong have their own reasons, and heal without a new spec', async () => {
  const commit = await locked.commit(repository(), { 'beeuni.yaml': MANIFEST, ...AGENTS });
  const asked = request({}, { url: locked.urlOf(repository()), credentialsSecretName: 'git' });
  const reasons = (fact: ProjectFact) => [fact.credentials.reason, fact.repository.reason];
  assert.deepEqual(reasons(await ask(asked)), ['SecretNotFound', 'AuthFailed']);
  secrets.set('git', { username: 'bot' });
  assert.deepEqual(reasons(await ask(asked)), ['KeyMissing', 'AuthFailed']);
  denied.add('git');
  assert.equal((await ask(asked)).credentials.reason, 'AccessDenied');
  denied.clear();
  secrets.set('git', { 'ssh-privatekey': 'x' });
  assert.equal((await ask(asked)).credentials.reason, 'TypeUnsupported');
  secrets.set('git', { username: 'bot', password: 'wrong' });
  assert.deepEqual(reasons(await ask(asked)), ['Found', 'AuthFailed']);
  secrets.set('git', { username: 'bot', password: CANARY });
  const before = await facts();
  await sync.secretChanged(uid, 'git');
  await sync.idle();
  const healed = await sync.findFact(uid);
  assert.deepEqual(
    [healed?.credentials.reason, healed?.repository.reason, healed?.repository.commit],
    ['Found', 'Synced', commit],
  );
  assert.ok((await facts()) > before);
});

test('a manifest error has line and column, the last valid manifest stays, and a repaired one counts', async () => {
  const good = await remote.commit(repository(), { 'beeuni.yaml': MANIFEST, ...AGENTS });
  await ask(request());
  await remote.commit(repository(), { 'beeuni.yaml': 'beeuni_version: 2\nagents: [\n  x: {\n' });
  const broken = await ask(request());
  assert.equal(broken.manifest.reason, 'SyntaxError');
  assert.ok((broken.manifest.errors[0]?.line ?? 0) > 1 && (broken.manifest.errors[0]?.column ?? 0) >= 1);
  assert.equal(broken.manifest.lastValid?.commit, good);
  assert.equal((await store.find(uid))?.config?.commit, good);
  await remote.commit(repository(), {
    'beeuni.yaml': MANIFEST.replace('default_agent: build', 'default_agent: buidl'),
  });
  const unknown = await ask(request());
  assert.equal(unknown.manifest.reason, 'SchemaError');
  assert.match(unknown.manifest.errors[0]?.message ?? '', /did you mean "build"/);
  assert.equal(unknown.manifest.errors[0]?.line, 2);
  await remote.commit(repository(), { 'beeuni.yaml': { link: '/etc/passwd' } });
  const link = await ask(request());
  assert.equal(link.manifest.reason, 'Missing');
  assert.match(link.manifest.errors[0]?.message ?? '', /symbolic link/);
  await remote.commit(repository(), { 'beeuni.yaml': `# ${'x'.repeat(1_100_000)}\n` });
  assert.equal((await ask(request())).manifest.reason, 'TooLarge');
  const repaired = await remote.commit(repository(), { 'beeuni.yaml': `${MANIFEST}# fixed\n` });
  const fixed = await ask(request());
  assert.deepEqual([fixed.manifest.reason, fixed.manifest.lastValid?.commit], ['Valid', repaired]);
});

test('unknown, disabled and forbidden models have their own reasons with a suggestion', async () => {
  await remote.commit(repository(), {
    'beeuni.yaml': MANIFEST,
    ...AGENTS,
    'agents/build.md': AGENTS['agents/build.md'].replace('scripted-large', 'scripted-larg'),
  });
  const unknown = await ask(request());
  assert.equal(unknown.models.reason, 'UnknownModel');
  assert.deepEqual(unknown.models.invalid, [
    { name: 'demo/scripted-larg', code: 'UnknownModel', usedBy: 'agents/build.md', suggestion: 'demo/scripted-large' },
  ]);
  const both = await ask(
    request({
      generation: 2,
      defaults: { agent: null, model: 'demo/scripted-small' },
      allowedModels: ['demo/scripted-large'],
    }),
  );
  assert.equal(both.models.reason, 'NotAllowed');
  assert.equal(both.models.default, 'demo/scripted-large');
});

test('a change of the registry reaches the affected projects in one pass, and no others', async () => {
  await remote.commit(repository(), { 'beeuni.yaml': MANIFEST, ...AGENTS });
  await ask(request());
  const before = await facts();
  await put({ enabled: false });
  const disabled = await sync.findFact(uid);
  assert.equal(disabled?.models.reason, 'ProviderDisabled');
  assert.ok((await facts()) > before);
  await put();
  assert.equal((await sync.findFact(uid))?.models.reason, 'AllKnown');
  const again = await facts();
  await put({ headers: { 'x-title': 'other' } });
  assert.equal(await facts(), again, 'a change that means nothing to the project raises no fact');
});

test('a provider that projects refer to is not deleted or disabled unless forced', async () => {
  await remote.commit(repository(), { 'beeuni.yaml': MANIFEST, ...AGENTS });
  await ask(request());
  assert.equal(await codeOf(providers.remove('demo', false)), 'provider_referenced');
  const { id: _id, ...disabled } = demo({ enabled: false });
  assert.equal(await codeOf(providers.put('demo', disabled, false)), 'provider_referenced');
  await providers.remove('demo', true);
  assert.equal((await sync.findFact(uid))?.models.reason, 'UnknownModel');
  assert.equal(await codeOf(providers.get('demo')), 'provider_not_found');
});

test('the registry refuses what may not be saved and never shows a key', async () => {
  const create = (more: Record<string, unknown>) => codeOf(providers.create(demo({ id: 'other', ...more })));
  assert.equal(await create({ base_url: 'http://169.254.169.254/v1' }), 'invalid_base_url');
  assert.equal(await create({ base_url: 'ftp://x.example/v1' }), 'invalid_base_url');
  assert.equal(await create({ models: [{ id: 'a' }, { id: 'a' }] }), 'invalid_provider');
  assert.equal(await codeOf(providers.create(demo())), 'already_exists');
  const { id: _id, api_key: _key, ...moved } = demo({ base_url: 'https://elsewhere.example/v1' });
  assert.equal(await codeOf(providers.put('demo', moved, true)), 'invalid_provider');
  const view = await providers.get('demo');
  assert.equal(view.has_key, true);
  assert.equal(JSON.stringify(view).includes(CANARY), false);
  const page = await providers.list({ limit: 1 });
  assert.deepEqual([page.items.length, page.cursor], [1, null]);
  const check = await providers.check('demo', new AbortController().signal);
  assert.deepEqual(check, { reachable: true, message: null, models: ['scripted-large', 'scripted-small'] });
  await put({ api_key: 'sk-wrong' });
  const refused = await providers.check('demo', new AbortController().signal);
  assert.equal(refused.reachable, false);
  assert.match(refused.message ?? '', /refused the key/);
  const dump = await database.pool.query({
    text: "select encode(api_key, 'escape') as k, definition::text from providers",
    values: [],
  });
  assert.equal(JSON.stringify(dump).includes(CANARY), false);
});

test('model names are judged and listed alike', async () => {
  const models = makeModelsApp({ readRegistry: registry.fresh });
  const { verdicts, registryGeneration } = await models.validate(['demo/scripted-large', 'demo/scripted-lrge', 'x']);
  assert.deepEqual(
    verdicts.map(({ code }) => code),
    [null, 'unknown_model', 'unknown_model'],
  );
  assert.equal(verdicts[1]?.suggestions[0], 'demo/scripted-large');
  assert.ok(registryGeneration > 0);
  const first = await models.list({ limit: 1 });
  const second = await models.list({ limit: 1, cursor: first.cursor ?? '' });
  assert.deepEqual(
    [...first.items, ...second.items].map(({ name }) => name),
    ['demo/scripted-large', 'demo/scripted-small'],
  );
  assert.equal(await codeOf(models.list({ limit: 1, cursor: 'garbage' })), 'invalid_cursor');
});

const object = (kind: string, name: string, objectUid: string, spec: unknown) => ({
  apiVersion: 'beeuni.dev/v1alpha1',
  kind,
  metadata: {
    name,
    namespace: 'team',
    uid: objectUid,
    resourceVersion: '1',
    creationTimestamp: '2026-11-30T00:00:00Z',
  },
  spec,
});
const aProject = (spec: Record<string, unknown>): Project =>
  ProjectKind.object.parse(
    object('Project', `shop-${count}`, uid, { repository: { url: remote.urlOf(repository()) }, ...spec }),
  );
const aSession = (spec: Record<string, unknown> = {}): Session =>
  SessionKind.object.parse(
    object('Session', 'one', '99999999-0000-0000-0000-000000000001', {
      projectRef: { name: `shop-${count}` },
      ...spec,
    }),
  );

/** The settings of claims under saved policies and slots of roles. */
const claimsWith = (
  policies: () => readonly StoredPolicy[],
  slots: Partial<Record<ModelRole, string>>,
): ProjectConfigApp =>
  makeProjectConfig({
    store,
    readRegistry: registry.fresh,
    readSecret,
    branchCommit: async (_uid, branch) => (branch === 'develop' ? 'd'.repeat(40) : undefined),
    defaultModel: undefined,
    author: { name: 'Beeuni', email: 'agent@beeuni.dev' },
    listPolicies: async () => policies(),
    limits: COMPILED_LIMITS,
    settings: {
      current: async () => ({
        revision: 0,
        budgets: COMPILED_BUDGETS,
        roles: { ...NO_ROLES, ...slots },
        hab: COMPILED_HAB,
      }),
    },
  });
const policyOf = (agent: string, saved: Partial<StoredPolicy['saved']>): StoredPolicy => ({
  agent,
  revision: 1,
  saved: { vision: null, vision_describe: null, vision_keep_images: null, ...saved },
});

test('B2 B7 B13 a claim gets base, agent, model, roles, image policies, limits and exactly the granted secrets', async () => {
  const config = claimsWith(() => [policyOf('review', { vision: false })], { compaction: 'demo/scripted-small' });
  const entry = (env: string, agents: string[]) => ({ env, secretRef: { name: 'app', key: env }, agents });
  const project = aProject({
    secrets: [entry('NPM', ['build']), entry('OTHER', ['review']), entry('THIRD', ['*'])],
    defaults: { model: 'gone/model' },
  });
  assert.deepEqual(await config.claimConfig(aSession(), project), { wait: 'project_not_synced' });
  const commit = await remote.commit(repository(), { 'beeuni.yaml': MANIFEST, ...AGENTS });
  await ask(request());
  secrets.set('app', { NPM: 'npm-value', OTHER: 'other-value', THIRD: 'third-value' });
  const settings = await config.claimConfig(aSession(), project);
  assert.ok(!('wait' in settings));
  assert.deepEqual(
    [settings.baseBranch, settings.baseCommit, settings.agent, settings.model?.name],
    ['main', commit, 'build', 'demo/scripted-large'],
  );
  assert.deepEqual(
    settings.agents.map(({ name, prompt }) => [name, prompt.trim()]),
    [
      ['build', 'Build things.'],
      ['review', 'Review things.'],
    ],
  );
  assert.deepEqual(
    settings.agents.map(({ vision }) => vision),
    [
      { mode: 'pixels', keepImages: 0 },
      { mode: 'off', keepImages: 0 },
    ],
  );
  assert.deepEqual(
    settings.roles?.map(({ role, model, reason }) => [role, model, reason]),
    [
      ['judge', null, 'off: nothing is assigned to the role'],
      ['vision', null, 'off: model demo/scripted-large takes no images'],
      ['compaction', 'demo/scripted-small', 'it is assigned to the role'],
      ['title', null, 'off: nothing is assigned to the role'],
      ['extraction', 'demo/scripted-large', 'it is the model of the run'],
    ],
  );
  assert.equal(settings.maxModelRequestBytes, COMPILED_BUDGETS.max_model_request_bytes);
  assert.deepEqual(settings.limits, COMPILED_LIMITS);
  assert.deepEqual(settings.env, { NPM: 'npm-value' });
  const claimOf = async (spec: Record<string, unknown>) => {
    const found = await config.claimConfig(aSession(spec), project);
    assert.ok(!('wait' in found));
    return found;
  };
  assert.deepEqual((await claimOf({ agent: 'review' })).env, {});
  assert.equal(
    (await claimOf({ agent: 'review' })).model?.name,
    'demo/scripted-large',
    'a stale project default is skipped',
  );
  assert.deepEqual((await claimOf({ scope: { secrets: [] } })).env, {});
  assert.equal((await claimOf({ model: 'demo/none' })).model, null);
  assert.equal((await claimOf({ branch: { base: 'develop' } })).baseCommit, 'd'.repeat(40));
  assert.equal(await codeOf(claimOf({ branch: { base: 'nope' } })), 'branch_not_found');
});

test('B8 B9 B11 A216 a claim tells how each agent sees images, the model that looks at them, and the tiers of models', async () => {
  let policies: readonly StoredPolicy[] = [];
  const config = claimsWith(() => policies, { vision: 'demo/scripted-eyes' });
  const project = aProject({});
  await remote.commit(repository(), { 'beeuni.yaml': MANIFEST, ...AGENTS });
  await ask(request());
  const eyes = { id: 'scripted-eyes', input: ['text', 'image'], reasoning: true, variants: ['low', 'deep'] };
  await put({ models: [{ id: 'scripted-large' }, { id: 'scripted-small' }, eyes] });
  const told = async () => {
    const claim = await config.claimConfig(aSession({ model: 'demo/scripted-eyes' }), project);
    assert.ok(!('wait' in claim));
    const [build, review] = claim.agents.map(({ vision }) => vision);
    return { build, review, looks: claim.roles?.find(({ role }) => role === 'vision')?.model, model: claim.model };
  };
  const pixels = { mode: 'pixels', keepImages: 0 };
  const plain = await told();
  assert.deepEqual([plain.build, plain.review, plain.looks], [pixels, pixels, 'demo/scripted-eyes']);
  assert.deepEqual([plain.model?.reasoning, plain.model?.variants], [true, ['low', 'deep']]);
  // A saved change counts from the next claim.
  policies = [
    policyOf('build', { vision_describe: true }),
    policyOf('review', { vision: false, vision_describe: true }),
  ];
  const changed = await told();
  assert.deepEqual(
    [changed.build, changed.review, changed.looks],
    [{ mode: 'descriptions', keepImages: 0 }, { mode: 'off', keepImages: 0 }, 'demo/scripted-eyes'],
  );
  await put();
});

test('a Secret that agents are granted is pushed when it changes, another is not', async () => {
  await remote.commit(repository(), { 'beeuni.yaml': MANIFEST, ...AGENTS });
  secrets.set('app', { NPM: '1' });
  const granted = { env: 'NPM', identifier: null, secretName: 'app', key: 'NPM', agents: ['*'] };
  assert.equal((await ask(request({ secrets: [granted] }))).credentials.reason, 'Found');
  await sync.secretChanged(uid, 'app');
  await sync.secretChanged(uid, 'unrelated');
  assert.deepEqual(pushed, [uid]);
  assert.equal((await store.find(uid))?.secretsRevision, 1);
  await sync.idle();
});

test('polling finds a new commit, one replica at a time, and a closed project is forgotten', async () => {
  await remote.commit(repository(), { 'beeuni.yaml': MANIFEST, ...AGENTS });
  await ask(request());
  const commit = await remote.commit(repository(), { 'README.md': 'new' });
  await sync.lookAtDue();
  assert.notEqual((await sync.findFact(uid))?.repository.commit, commit, 'it is not due yet');
  await database.pool.query({
    text: "update projects set due_at = now() - interval '1 second' where uid = $1",
    values: [uid],
  });
  const taken = await Promise.all([
    sync.lookAtDue(),
    store.takeDue(new Date().toISOString(), new Date(Date.now() + 60_000).toISOString(), 10),
  ]);
  assert.deepEqual(taken[1].filter((other) => other === uid).length <= 1, true);
  if (taken[1].includes(uid)) await ask(request());
  assert.equal((await sync.findFact(uid))?.repository.commit, commit);
  await sync.close(uid);
  await sync.close(uid);
  assert.equal(await sync.findFact(uid), undefined);
  const [row] = await database.pool.query<{ kind: string }>({
    text: 'select kind from facts where uid = $1',
    values: [uid],
  });
  assert.equal(row?.kind, 'gone');
});

test('FF11 no secret is in any log line', () => {
  assert.ok(logs.length > 0);
  assert.equal(logs.join('\n').includes(CANARY), false);
});
