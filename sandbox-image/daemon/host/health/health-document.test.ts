// The health document: what makes it ready, and that it always has the contract's shape.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { healthDocument } from '#schema/wire/health.ts';
import { type DaemonFacts, healthDocumentOf, newsOf } from './health-document.ts';

const someFacts = (facts: Partial<DaemonFacts> = {}): DaemonFacts => ({
  daemonVersion: '0.1.0',
  harnessId: 'opencode',
  hostCapabilities: [],
  harnessCapabilities: ['session.todo'],
  harness: { version: '1', state: 'ok', error: null, sessionId: 's', details: {} },
  bootError: null,
  checkout: { branch: 'b', commit: 'c' },
  configuration: {
    repository: 'https://git.example/shop.git',
    commit: 'c',
    agentConfigEtag: 'e1',
    catalogEtag: 'e2',
    fallbackReason: null,
  },
  onBranch: true,
  sessionBranch: 'b',
  pushError: null,
  turn: null,
  activity: { turnId: null, sinceMs: 0, openRequests: 0 },
  timeline: [{ stage: 'listening', atMs: 80.4 }],
  isolation: 'enforced',
  hasCredential: true,
  uptimeMs: 1_500,
  ...facts,
});

const HARNESS = { version: null, error: null, sessionId: null, details: {} };

describe('healthDocumentOf', () => {
  it('A23 has the shape of the contract at every stage', () => {
    for (const facts of [
      someFacts(),
      someFacts({ harness: null, checkout: null, onBranch: false, sessionBranch: null, hasCredential: false }),
      someFacts({ bootError: { category: 'CloneFailed', message: 'x'.repeat(5_000) } }),
      someFacts({ harness: { ...HARNESS, state: 'error', error: 'y'.repeat(5_000) } }),
    ]) {
      assert.equal(healthDocument.safeParse(healthDocumentOf(facts)).error, undefined);
    }
  });

  it('A20 says where the project came from, what was compiled, and what runs', () => {
    const at = (facts: Partial<DaemonFacts>) => healthDocumentOf(someFacts(facts));
    const ready = at({});
    assert.equal(ready.repo, 'https://git.example/shop.git');
    assert.deepEqual(
      [ready.compiled_boot_mode, ready.compiled_checkout, ready.agent_config_etag],
      ['claim', 'c', 'e1'],
    );
    const running = { harness: 'opencode', version: '1', release_id: null, agent_config_etag: 'e1' };
    assert.deepEqual(ready.runtime, { state: 'converged', running });
    assert.deepEqual(
      [ready.runtime_truth?.daemon, ready.runtime_truth?.catalog.value],
      [{ value: '0.1.0', state: 'converged' }, 'e2'],
    );
    assert.deepEqual(ready.config_provider, {
      provider: 'git',
      expected_sha: 'c',
      actual_sha: 'c',
      fallback_reason: null,
    });
    const before = at({ configuration: null, harness: null, checkout: null });
    assert.deepEqual(
      [before.repo, before.agent_config_etag, before.runtime, before.runtime_truth, before.config_provider],
      [null, null, { state: 'starting', running: null }, null, null],
    );
    const left = { repository: null, commit: 'c', agentConfigEtag: 'e', catalogEtag: 'e', fallbackReason: 'no disk' };
    const provider = at({ configuration: left }).config_provider;
    assert.deepEqual([provider?.actual_sha, provider?.fallback_reason], [null, 'no disk']);
  });

  it('A21 is ready only with the branch, without a boot error and with a ready harness', () => {
    const ready = (facts: Partial<DaemonFacts>) => healthDocumentOf(someFacts(facts)).runtimeReady;
    assert.equal(ready({}), true);
    assert.equal(ready({ onBranch: false }), false);
    assert.equal(ready({ checkout: null }), false);
    assert.equal(ready({ bootError: { category: 'HarnessBoot', message: 'm' } }), false);
    assert.equal(ready({ harness: { ...HARNESS, state: 'starting' } }), false);
    assert.equal(ready({ harness: null }), false);
  });

  it('A21 says "error" for a boot error, else what the harness says', () => {
    const status = (facts: Partial<DaemonFacts>) => healthDocumentOf(someFacts(facts)).status;
    assert.equal(status({}), 'ok');
    assert.equal(status({ bootError: { category: 'CloneFailed', message: 'm' } }), 'error');
    assert.equal(status({ harness: { ...HARNESS, state: 'down' } }), 'down');
    assert.equal(status({ checkout: null }), 'starting');
    assert.equal(status({ harness: null }), 'starting');
  });

  it('shows a running turn, and that it waits for a human', () => {
    const state = (turnId: string | null, openRequests: number) =>
      healthDocumentOf(someFacts({ activity: { turnId, sinceMs: 0, openRequests } })).activity.state;
    assert.deepEqual([state(null, 0), state('t', 0), state('t', 1)], ['Idle', 'Working', 'WaitingForInput']);
  });

  it('A24 tells how a turn stands twice when it was asked, and else not at all', () => {
    const turn = { in_flight: false, end: 'Succeeded', orphaned_prompt: null };
    const asked = healthDocumentOf(someFacts({ turn }));
    assert.deepEqual(asked.harness.turn, turn);
    assert.deepEqual([asked.turn_in_flight, asked.turn_end, asked.turn_orphaned_prompt], [false, 'Succeeded', null]);
    const silent = healthDocumentOf(someFacts());
    assert.deepEqual([silent.harness.turn, silent.turn_in_flight, silent.turn_end], [null, null, null]);
  });

  it('A33 lists what the host offers before what the harness offers', () => {
    const { capabilities } = healthDocumentOf(someFacts({ hostCapabilities: ['file.import'] }));
    assert.deepEqual(capabilities, ['file.import', 'session.todo']);
  });

  it('A22 counts a repository as ready only on the branch of the session', () => {
    const { repo_ready, runtimeReady } = healthDocumentOf(someFacts({ onBranch: false }));
    assert.deepEqual([repo_ready, runtimeReady], [false, false]);
  });

  it('A27 names the source of the configuration, and calls it proven with a ready harness only', () => {
    const config = (facts: Partial<DaemonFacts>) => healthDocumentOf(someFacts(facts)).config;
    assert.deepEqual(
      [config({}).source, config({}).proven, config({ harness: null }).proven],
      ['workspace', true, false],
    );
  });

  it('takes the running clock for no news', () => {
    const news = (facts: Partial<DaemonFacts>) => newsOf(healthDocumentOf(someFacts(facts)));
    assert.equal(news({ uptimeMs: 1 }), news({ uptimeMs: 99_000 }));
    assert.notEqual(news({}), news({ onBranch: false }));
  });
});
