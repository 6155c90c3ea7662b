// The rule of pushes and the lines around it, without git.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FLUSH, PktLineError, pktLine, readSection } from './pkt-line.ts';
import { historyRefusal, type PushRule, parsePushRequest, refusalOf, reportLines } from './push-rule.ts';

const A = 'a'.repeat(40);
const B = 'b'.repeat(40);
const ZERO = '0'.repeat(40);
const RULE: PushRule = { branch: 'beeuni/one-12345', forcePush: 'Forbidden' };
const OWN = 'refs/heads/beeuni/one-12345';
const command = (ref: string, newId = B) => ({ oldId: A, newId, ref });

test('A203 only the branch of the session goes through, and the refusal names it', () => {
  assert.equal(refusalOf(command(OWN), RULE), undefined);
  for (const ref of [
    'refs/heads/main',
    'refs/tags/beeuni/one-12345',
    'HEAD',
    `${OWN}/x`,
    OWN.toUpperCase(),
    `${OWN}\u0000`,
    'refs/heads/../heads/beeuni/one-12345',
    'refs/replace/x',
    '',
  ]) {
    assert.match(refusalOf(command(ref), RULE) ?? '', /its own branch only: beeuni\/one-12345/, ref);
  }
});

test('a deletion is refused, a forced push by the word of the Project', () => {
  assert.match(refusalOf(command(OWN, ZERO), RULE) ?? '', /does not delete/);
  assert.match(historyRefusal(false, RULE) ?? '', /forcePush/);
  assert.equal(historyRefusal(true, RULE), undefined);
  assert.equal(historyRefusal(false, { ...RULE, forcePush: 'Allowed' }), undefined);
});

test('commands and capabilities are read, and anything else in their place is refused', () => {
  const lines = (...texts: string[]) => texts.map((text) => new TextEncoder().encode(text));
  const push = parsePushRequest(
    lines(`shallow ${A}`, `${A} ${B} ${OWN}\0 report-status side-band-64k`, `${ZERO} ${B} refs/heads/x`),
  );
  assert.deepEqual(
    push?.commands.map(({ ref }) => ref),
    [OWN, 'refs/heads/x'],
  );
  assert.equal(push?.capabilities.has('side-band-64k'), true);
  for (const text of ['push-cert\0', `${A} ${B}`, `${A} ${B} `, `x${A.slice(1)} ${B} r`, `${A} ${B} a\0b\0`, '']) {
    assert.equal(
      parsePushRequest(lines(`${A} ${B} ${OWN}`, text)) === undefined || text === `${A} ${B} a\0b\0`,
      true,
      text,
    );
  }
  assert.equal(parsePushRequest([Uint8Array.of(0xff)]), undefined);
});

test('a report has a line per command, and a reason cannot break out of its line', () => {
  const report = reportLines(
    [command(OWN), command('refs/heads/x')],
    new Map([['refs/heads/x', 'no\nok refs/heads/main']]),
  );
  assert.deepEqual(report, ['unpack ok\n', `ok ${OWN}\n`, 'ng refs/heads/x no ok refs/heads/main\n']);
});

const chunks = async function* (bytes: Buffer, sizes: readonly number[]): AsyncGenerator<Buffer> {
  let at = 0;
  for (const size of [...sizes, bytes.length]) {
    if (at >= bytes.length) return;
    yield bytes.subarray(at, at + Math.max(size, 1));
    at += Math.max(size, 1);
  }
};

test('lines are read as written, however the bytes arrive, and what follows the flush is kept', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.string({ minLength: 1, maxLength: 200 }).filter((text) => !text.endsWith('\n')),
        { maxLength: 6 },
      ),
      fc.uint8Array({ maxLength: 50 }),
      fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 60 }),
      async (lines, tail, sizes) => {
        const bytes = Buffer.concat([...lines.map((line) => pktLine(`${line}\n`)), FLUSH, tail]);
        const section = await readSection(chunks(bytes, sizes), 100_000);
        const rest: Buffer[] = [];
        for await (const part of section.rest) rest.push(part);
        assert.deepEqual(
          section.lines.map((line) => line.toString('utf8')),
          lines,
        );
        assert.deepEqual(Buffer.concat(rest), Buffer.from(tail));
      },
    ),
    { numRuns: 100 },
  );
});

test('wrong lengths, cut lines and endless sections are refused', async () => {
  const read = (text: string, limit = 1_000) => readSection(chunks(Buffer.from(text), []), limit);
  for (const text of ['zzzz', '0003', 'fff5', '0010abc', '00', '0008abcd'])
    await assert.rejects(read(text), PktLineError, text);
  await assert.rejects(read('0008abcd'.repeat(200)), PktLineError);
  assert.deepEqual((await read('')).lines, []);
});
