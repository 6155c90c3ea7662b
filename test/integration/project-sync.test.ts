// Syncing projects against a real git remote and a real Postgres: what each wrong input becomes, and how it heals.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { makeModelsApp } from '#controlplane/app/models.ts';
import { type ProjectFact, projectFact, type SyncRequest } from '#schema/wire/sync.ts';
import { CANARY, codeOf, type SyncWorld, startSyncWorld } from '#test/support/sync-world.ts';
import { claimCases } from './project-claim-cases.ts';

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

let world: SyncWorld;
let database: SyncWorld['database'];
let remote: SyncWorld['remote'];
let locked: SyncWorld['locked'];
let store: SyncWorld['store'];
let sync: SyncWorld['sync'];
let providers: SyncWorld['providers'];
let registry: SyncWorld['registry'];
let count = 0;
let uid = '';
let pollIntervalSeconds = 60;

before(async () => {
  world = await startSyncWorld();
  ({ database, remote, locked, store, sync, providers, registry } = world);
});
after(() => world.stop());
beforeEach(async () => {
  count += 1;
  uid = `00000000-0000-0000-0000-${String(count).padStart(12, '0')}`;
  pollIntervalSeconds = 60;
  world.secrets.clear();
  world.denied.clear();
  world.pushed.length = 0;
  await world.put();
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
  world.secrets.set('git', { username: 'bot' });
  assert.deepEqual(reasons(await ask(asked)), ['KeyMissing', 'AuthFailed']);
  world.denied.add('git');
  assert.equal((await ask(asked)).credentials.reason, 'AccessDenied');
  world.denied.clear();
  world.secrets.set('git', { 'ssh-privatekey': 'x' });
  assert.equal((await ask(asked)).credentials.reason, 'TypeUnsupported');
  world.secrets.set('git', { username: 'bot', password: 'wrong' });
  assert.deepEqual(reasons(await ask(asked)), ['Found', 'AuthFailed']);
  world.secrets.set('git', { username: 'bot', password: CANARY });
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
  await world.put({ enabled: false });
  const disabled = await sync.findFact(uid);
  assert.equal(disabled?.models.reason, 'ProviderDisabled');
  assert.ok((await facts()) > before);
  await world.put();
  assert.equal((await sync.findFact(uid))?.models.reason, 'AllKnown');
  const again = await facts();
  await world.put({ headers: { 'x-title': 'other' } });
  assert.equal(await facts(), again, 'a change that means nothing to the project raises no fact');
});

test('a provider that projects refer to is not deleted or disabled unless forced', async () => {
  await remote.commit(repository(), { 'beeuni.yaml': MANIFEST, ...AGENTS });
  await ask(request());
  assert.equal(await codeOf(providers.remove('demo', false)), 'provider_referenced');
  const { id: _id, ...disabled } = world.demo({ enabled: false });
  assert.equal(await codeOf(providers.put('demo', disabled, false)), 'provider_referenced');
  await providers.remove('demo', true);
  assert.equal((await sync.findFact(uid))?.models.reason, 'UnknownModel');
  assert.equal(await codeOf(providers.get('demo')), 'provider_not_found');
});

test('the registry refuses what may not be saved and never shows a key', async () => {
  const create = (more: Record<string, unknown>) => codeOf(providers.create(world.demo({ id: 'other', ...more })));
  assert.equal(await create({ base_url: 'http://169.254.169.254/v1' }), 'invalid_base_url');
  assert.equal(await create({ base_url: 'ftp://x.example/v1' }), 'invalid_base_url');
  assert.equal(await create({ models: [{ id: 'a' }, { id: 'a' }] }), 'invalid_provider');
  assert.equal(await codeOf(providers.create(world.demo())), 'already_exists');
  const { id: _id, api_key: _key, ...moved } = world.demo({ base_url: 'https://elsewhere.example/v1' });
  assert.equal(await codeOf(providers.put('demo', moved, true)), 'invalid_provider');
  const view = await providers.get('demo');
  assert.equal(view.has_key, true);
  assert.equal(JSON.stringify(view).includes(CANARY), false);
  const page = await providers.list({ limit: 1 });
  assert.deepEqual([page.items.length, page.cursor], [1, null]);
  const check = await providers.check('demo', new AbortController().signal);
  assert.deepEqual(check, { reachable: true, message: null, models: ['scripted-large', 'scripted-small'] });
  await world.put({ api_key: 'sk-wrong' });
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

claimCases(() => ({
  world,
  uid,
  project: `shop-${count}`,
  repository: repository(),
  commit: () => remote.commit(repository(), { 'beeuni.yaml': MANIFEST, ...AGENTS }),
  ask: () => ask(request()),
}));

test('a Secret that agents are granted is pushed when it changes, another is not', async () => {
  await remote.commit(repository(), { 'beeuni.yaml': MANIFEST, ...AGENTS });
  world.secrets.set('app', { NPM: '1' });
  const granted = { env: 'NPM', identifier: null, secretName: 'app', key: 'NPM', agents: ['*'] };
  assert.equal((await ask(request({ secrets: [granted] }))).credentials.reason, 'Found');
  await sync.secretChanged(uid, 'app');
  await sync.secretChanged(uid, 'unrelated');
  assert.deepEqual(world.pushed, [uid]);
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
  assert.ok(world.logs.length > 0);
  assert.equal(world.logs.join('\n').includes(CANARY), false);
});
