import assert from 'node:assert/strict';
import { test } from 'node:test';
import { effective } from './effective.ts';
import { DEFAULT_PLATFORM_FLAGS, effectiveFlags, featureStatus, type PlatformFlags } from './effective-flags.ts';

const INHERIT = {
  llmGateway: 'Inherit',
  piHarness: 'Inherit',
  configReleases: 'Inherit',
  warmSessions: 'Inherit',
} as const;
const platform = (llmGateway: PlatformFlags['llm_gateway']): PlatformFlags => ({
  ...DEFAULT_PLATFORM_FLAGS,
  llm_gateway: llmGateway,
});
const gateway = (state: 'Inherit' | 'Enabled' | 'Disabled', flags: PlatformFlags['llm_gateway']) =>
  effectiveFlags({ ...INHERIT, llmGateway: state }, platform(flags)).llm_gateway;

test('D19 a project that inherits has the value of the platform', () => {
  for (const value of [true, false]) {
    assert.deepEqual(gateway('Inherit', { default: value, available: true }), {
      value,
      layer: 'Platform',
      overrode: [],
      available: true,
    });
  }
});

test('D19 a project that says something overrides the platform, and the answer says what', () => {
  assert.deepEqual(gateway('Disabled', { default: true, available: true }), {
    value: false,
    layer: 'Project',
    overrode: [{ layer: 'Platform', value: true }],
    available: true,
  });
  assert.equal(gateway('Enabled', { default: false, available: true }).value, true);
});

test('a feature that is not available is off, whatever project and platform say', () => {
  assert.deepEqual(gateway('Enabled', { default: true, available: false }), {
    value: false,
    layer: 'Unavailable',
    overrode: [
      { layer: 'Project', value: true },
      { layer: 'Platform', value: true },
    ],
    available: false,
  });
});

test('A9 A207 A209 an installation that sets nothing has the gateway on, pi off, and releases and warm sessions unavailable', () => {
  assert.deepEqual(featureStatus(effectiveFlags(INHERIT, DEFAULT_PLATFORM_FLAGS)), [
    { name: 'llm_gateway', enabled: true, available: true, source: 'Platform' },
    { name: 'pi_harness', enabled: false, available: true, source: 'Platform' },
    { name: 'config_releases', enabled: false, available: false, source: 'Unavailable' },
    { name: 'warm_sessions', enabled: false, available: false, source: 'Unavailable' },
  ]);
});

test('D19 the first layer that says something decides, and falsy values count', () => {
  const layers = [
    { layer: 'session', value: undefined },
    { layer: 'project', value: 0 },
    { layer: 'platform', value: 5 },
  ];
  assert.deepEqual(effective(layers), { value: 0, layer: 'project', overrode: [{ layer: 'platform', value: 5 }] });
  assert.equal(effective([{ layer: 'a', value: undefined }]), undefined);
});
