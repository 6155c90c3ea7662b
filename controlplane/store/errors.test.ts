// Errors of Postgres by their codes.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { InvalidError, NotFoundError, UnavailableError } from '#base/errors.ts';
import { isDataError, sqlState, translateDatabaseError } from './errors.ts';

const withCode = (code: string) => Object.assign(new Error('text'), { code });

test('what waiting helps against becomes database_unavailable', () => {
  const states = ['08006', '53300', '53100', '57014', '57P01', '57P03', '58030', '40001', '40P01', '25006', '55P03'];
  for (const code of [
    ...states,
    'ECONNREFUSED',
    'ECONNRESET',
    'ENOENT',
    'EPIPE',
    'ETIMEDOUT',
    'EAI_AGAIN',
    'ENOTFOUND',
  ]) {
    const error = translateDatabaseError(withCode(code));
    assert.ok(error instanceof UnavailableError, code);
    assert.equal(error.code, 'database_unavailable');
  }
  assert.ok(translateDatabaseError(new Error('Connection terminated unexpectedly')) instanceof UnavailableError);
});

test('a value that cannot be stored is the fault of the caller, a wrong statement is ours', () => {
  assert.ok(translateDatabaseError(withCode('22021')) instanceof InvalidError);
  for (const ours of [withCode('42601'), withCode('23505'), new TypeError('not a string')]) {
    assert.equal(translateDatabaseError(ours), ours);
  }
  const known = new NotFoundError('not_found', 'nothing');
  assert.equal(translateDatabaseError(known), known);
});

test('the state is found through the error that was made from it', () => {
  const translated = translateDatabaseError(withCode('22021'));
  assert.equal(sqlState(translated), '22021');
  assert.ok(isDataError(translated));
  assert.ok(!isDataError(withCode('57014')));
  assert.ok(!isDataError(new Error('no code')));
  assert.ok(isDataError(withCode('23505')));
});

test('a number that no column has room for is named as what it is', () => {
  const error = Object.assign(new Error('out of range'), { code: '22003' });
  assert.match((translateDatabaseError(error) as Error).message, /out of the range that can be stored$/);
});
