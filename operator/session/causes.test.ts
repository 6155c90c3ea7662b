// Proves that the conditions of a Session name the cause, not only that there is one.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aProject, aProjectFact, aSessionFact, at, observed, podUid } from '#test/support/session-fixtures.ts';
import { specAccepted } from './accept.ts';
import { daemonNote } from './daemon.ts';

test('Active says why the last turn failed', () => {
  const fact = aSessionFact(podUid(1), {
    lastTurn: {
      id: 'trn_1',
      promptId: null,
      isSpecPrompt: false,
      outcome: 'Failed',
      final: true,
      message: 'the model service is unavailable',
      startedAt: at(0),
      finishedAt: at(1),
      summary: null,
    },
  });
  const health = fact.health ?? assert.fail('no health');
  const note = daemonNote('Active', observed({}), { state: 'answering', health, fact });
  assert.equal(note.message, 'no turn runs; the last one ended Failed: the model service is unavailable');
});

test('SpecAccepted says why the Project has no valid manifest', () => {
  const message = 'RepositoryReady Unreachable: the host did not answer';
  const condition = { type: 'Ready', status: 'False', reason: 'NotReady', message, lastTransitionTime: at(0) } as const;
  const fact = aProjectFact();
  const note = specAccepted(
    observed({
      project: aProject({}, { status: { conditions: [condition] } }),
      projectFact: { ...fact, manifest: { ...fact.manifest, lastValid: null } },
    }),
  );
  assert.equal(note.message, `project shop has no valid manifest yet: ${message}`);
});
