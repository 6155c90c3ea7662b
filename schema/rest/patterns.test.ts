// Every pattern that a public route puts a caller's text to, against text that makes careless patterns slow.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { cpuMsOf } from '#test/support/cpu-time.ts';
import { PUBLIC_ROUTES } from './index.ts';

const LENGTH = 50_000;
/** A linear pattern takes a millisecond; the bound leaves room for a busy machine. */
const LIMIT_MS = 250;

const patternsIn = (value: unknown): readonly string[] => {
  if (typeof value !== 'object' || value === null) return [];
  const own = (value as { pattern?: unknown }).pattern;
  return [...(typeof own === 'string' ? [own] : []), ...Object.values(value).flatMap(patternsIn)];
};
const patternsOf = (schema: z.ZodType | undefined): readonly string[] =>
  schema === undefined ? [] : patternsIn(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }));

const patterns = [
  ...new Set(
    PUBLIC_ROUTES.flatMap(({ params, query, body }) => [params, query, body].flatMap((part) => patternsOf(part))),
  ),
];
const ENDS = ['', '!', '\n', '-', '\u0000'];
const HEADS = [
  'a',
  '-',
  'a-',
  'a.',
  'a/',
  '0',
  ' ',
  '.',
  '/',
  'aA',
  'project,',
  '2026-11-30T',
  '%',
  '\\',
  '"',
  '\u001b[2J',
];

test('FF13 no pattern of a public route takes long over hostile text', () => {
  assert.ok(patterns.length >= 10, `only ${patterns.length} patterns were seen`);
  for (const pattern of patterns) {
    const compiled = new RegExp(pattern);
    for (const head of HEADS) {
      for (const end of ENDS) {
        const text = head.repeat(LENGTH / head.length) + end;
        const tookMs = cpuMsOf(() => void compiled.test(text));
        assert.ok(
          tookMs < LIMIT_MS,
          `${pattern} took ${Math.round(tookMs)} ms of CPU over ${JSON.stringify(head)} … ${JSON.stringify(end)}`,
        );
      }
    }
  }
});
