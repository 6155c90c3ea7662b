// What the members of OpenCode refuse by themselves.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConflictError } from '#base/errors.ts';
import { type MembersPorts, opencodeMembers } from './members.ts';

test('A62 a rewind is taken back once, and where there is none that is an error', async () => {
  let reverted = true;
  const told: string[] = [];
  const client = {
    isReverted: async () => reverted,
    unrevert: async () => {
      reverted = false;
    },
  };
  const server = { client, sessionId: () => 'ses_1' };
  const ports = { server: () => server, emit: ({ type }: { type: string }) => told.push(type) };
  const { unrevert } = opencodeMembers(ports as unknown as MembersPorts).optional.rewind;
  const { signal } = new AbortController();
  await unrevert(signal);
  await assert.rejects(unrevert(signal), (error) => error instanceof ConflictError && error.code === 'not_rewound');
  assert.deepEqual(told, ['session.unreverted']);
});
