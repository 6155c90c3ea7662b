// Proves that what `make up` applies as a person is what the guard lets a person apply.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MODEL_ANNOTATION, sampleSession } from './sample-objects.ts';

test('the sample Session says for which model it was made, outside the names that only Beeuni sets', () => {
  const session = sampleSession('hello', 'sample', 'say hello', 'scripted/demo-large') as {
    metadata: { annotations: Record<string, string> };
  };
  assert.deepEqual(session.metadata.annotations, { [MODEL_ANNOTATION]: 'scripted/demo-large' });
  assert.ok(!MODEL_ANNOTATION.startsWith('beeuni.dev/'));
});
