// A configuration document as people may see it.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { redactConfig } from './redact-config.ts';

describe('redactConfig', () => {
  it('A62 takes out what a key says is secret, wherever it lies', () => {
    const document = {
      provider: { beeuni: { options: { apiKey: 'loopback-token', baseURL: 'http://127.0.0.1:1/v1' } } },
      list: [{ Authorization: 'Bearer x', name: 'kept' }],
      model: 'beeuni/large',
    };
    assert.deepEqual(redactConfig(document, []), {
      provider: { beeuni: { options: { apiKey: '[redacted]', baseURL: 'http://127.0.0.1:1/v1' } } },
      list: [{ Authorization: '[redacted]', name: 'kept' }],
      model: 'beeuni/large',
    });
  });

  it('takes out known secrets by their value, and every value of an environment', () => {
    const document = { command: ['run', '--with=s3cr3t-value'], mcp: { a: { environment: { HOST: 'plain' } } } };
    assert.deepEqual(redactConfig(document, ['s3cr3t-value', 'run']), {
      command: ['run', '--with=[redacted]'],
      mcp: { a: { environment: { HOST: '[redacted]' } } },
    });
  });

  it('ends on a document that is deeper than anything real', () => {
    let deep: Record<string, unknown> = { password: 'x' };
    for (let n = 0; n < 100; n += 1) deep = { deep };
    assert.ok(!JSON.stringify(redactConfig(deep, [])).includes('"x"'));
  });
});
