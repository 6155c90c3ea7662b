// The supervisor API on a real Postgres over HTTP: what is saved, refused, audited, and what two writers get.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import fc from 'fast-check';
import { COMPILED_BUDGETS } from '#schema/settings/budgets.ts';
import { COMPILED_HAB, HAB_NAMES } from '#schema/settings/hab.ts';
import { freshDatabase, type TestDatabase } from '#test/support/postgres.ts';
import { type Reply, type SettingsApi, startSettingsApi } from '#test/support/settings-api.ts';

let database: TestDatabase;
let api: SettingsApi;
before(async () => {
  database = await freshDatabase({ poolSize: 12 });
  api = await startSettingsApi(database.pool, { environmentModel: 'env/main' });
});
after(() => api.stop());
beforeEach(async () => {
  for (const text of ['delete from workspace_settings', 'delete from audit']) {
    await database.pool.query({ text, values: [] });
  }
});

const get = (): Promise<Reply> => api.send('GET', 'supervisor');
const put = (body: unknown, headers?: Record<string, string>): Promise<Reply> =>
  api.send('PUT', 'supervisor', body, headers);
const errorOf = ({ body }: Reply) =>
  body['error'] as { code: string; message: string; details?: Record<string, unknown> };
const rows = <Row>(text: string): Promise<Row[]> => database.pool.query<Row>({ text, values: [] });
const saved = async () =>
  Object.fromEntries(
    (await rows<{ key: string; value: unknown }>('select key, value from workspace_settings order by key')).map(
      ({ key, value }) => [key, value],
    ),
  );

test('B22 GET gives roles, coefficients, embedding status, effective and compiled budgets and the saved names', async () => {
  const { status, body, etag } = await get();
  const { revision, ...rest } = body;
  assert.deepEqual([status, etag], [200, `"${revision}"`]);
  assert.deepEqual(rest, {
    judge_model: '',
    vision_model: '',
    compaction_model: '',
    title_model: '',
    extraction_model: '',
    hab_coefficients: COMPILED_HAB,
    hab_defaults: COMPILED_HAB,
    hab_saved: [],
    embedding: { model: null, reachable: null, last_error: null, vector_size: null, checked_at: null },
    harness: COMPILED_BUDGETS,
    harness_defaults: COMPILED_BUDGETS,
    harness_saved: [],
    problems: [],
  });
});

test('B1 B3 B23 a role is saved under its key and nothing besides; an absent one is kept, an empty one is reset', async () => {
  await put({ judge_model: 'acme/large', title_model: 'acme/small' });
  assert.deepEqual(await saved(), { 'eval.judge.model': 'acme/large', 'harness.title.model': 'acme/small' });
  const { body } = await put({ judge_model: '' });
  assert.deepEqual(await saved(), { 'harness.title.model': 'acme/small' });
  assert.deepEqual([body['judge_model'], body['title_model']], ['', 'acme/small']);
});

test('B23 a model that is unknown, disabled or of a disabled provider is refused with near names, and nothing is saved', async () => {
  const cases = [
    ['acme/larg', 'unknown_model', ['acme/large']],
    ['acme/old', 'model_disabled', []],
    ['closed/large', 'provider_disabled', ['acme/large']],
    ['large', 'unknown_model', ['acme/large']],
    [' ', 'unknown_model', []],
    ['x'.repeat(256), 'unknown_model', []],
  ] as const;
  for (const [name, code, suggestions] of cases) {
    const reply = await put({ harness: { keep_groups_max: 10 }, hab_coefficients: { safety: 2 }, vision_model: name });
    const error = errorOf(reply);
    assert.deepEqual([name, reply.status, error.code, error.details?.['field']], [name, 400, code, 'vision_model']);
    assert.match(error.message, /^body\.vision_model: /);
    const given = error.details?.['suggestions'] as string[];
    for (const suggestion of suggestions) assert.ok(given.includes(suggestion), `${name}: ${given.join()}`);
    assert.deepEqual(await saved(), {});
  }
});

test('B24 a number saves, null resets, an absent knob is untouched, and both count at once', async () => {
  const first = await put({ harness: { keep_groups_max: 10, compaction_tail_bytes: 1_000 } });
  assert.deepEqual(first.body['harness_saved'], ['compaction_tail_bytes', 'keep_groups_max']);
  assert.deepEqual(first.body['harness'], {
    ...COMPILED_BUDGETS,
    keep_groups_max: 10,
    compaction_tail_bytes: 1_000,
  });
  const second = await put({ harness: { keep_groups_max: null } });
  assert.deepEqual(second.body['harness_saved'], ['compaction_tail_bytes']);
  assert.deepEqual(await saved(), { 'harness.budgets.compaction_tail_bytes': 1_000 });
});

test('B22 coefficients are saved and reset like budgets; unknown names and values out of range are refused', async () => {
  const { body } = await put({ hab_coefficients: { correctness: 10, efficiency: 0, safety: 2.5 } });
  assert.deepEqual(body['hab_coefficients'], { ...COMPILED_HAB, correctness: 10, efficiency: 0, safety: 2.5 });
  assert.deepEqual(body['hab_saved'], ['correctness', 'safety', 'efficiency']);
  assert.deepEqual((await put({ hab_coefficients: { correctness: null } })).body['hab_saved'], [
    'safety',
    'efficiency',
  ]);
  for (const [name, value, code, message] of [
    ['correctness', 10.01, 'invalid_setting', /hab_coefficients\.correctness must be at most 10$/],
    ['correctness', -0.1, 'invalid_setting', /hab_coefficients\.correctness must be at least 0$/],
    ['corectness', 1, 'unknown_setting', /hab_coefficients\.corectness is not known; did you mean "correctness"\?$/],
  ] as const) {
    const error = errorOf(await put({ hab_coefficients: { [name]: value } }));
    assert.equal(error.code, code);
    assert.match(error.message, message);
  }
});

const MIB = 1_048_576;
const REFUSED: readonly (readonly [body: Record<string, unknown>, code: string, message: RegExp])[] = [
  [
    { harness: { max_model_request_bytes: 2 * MIB + 1 } },
    'invalid_setting',
    /max_model_request_bytes must be at most 2097152$/,
  ],
  [
    { harness: { continue_as_new_bytes: 512 * MIB + 1 } },
    'invalid_setting',
    /continue_as_new_bytes must be at most 536870912$/,
  ],
  [
    { harness: { tool_output_max_bytes: 64 * MIB + 1 } },
    'invalid_setting',
    /tool_output_max_bytes must be at most 67108864$/,
  ],
  [{ harness: { max_model_request_bytes: 1 } }, 'invalid_setting', /max_model_request_bytes must be at least 16384$/],
  [{ harness: { compaction_trigger_bytes: 1 } }, 'invalid_setting', /compaction_trigger_bytes must be at least 8192$/],
  [
    { hab_coefficients: Object.fromEntries(HAB_NAMES.map((name) => [name, 0])) },
    'invalid_setting',
    /^body\.hab_coefficients would all be 0, so no run could have a score; leave one above 0$/,
  ],
  [{ harness: { keep_groups_max: 65 } }, 'invalid_setting', /keep_groups_max must be at most 64$/],
  [{ harness: { keep_groups_max: 0 } }, 'invalid_setting', /keep_groups_max must be at least 1$/],
  [{ harness: { compaction_tail_bytes: -1 } }, 'invalid_setting', /compaction_tail_bytes must be at least 1$/],
  [{ harness: { compaction_tail_bytes: 1.5 } }, 'invalid_setting', /compaction_tail_bytes must be a whole number$/],
  [{ harness: { compaction_tail_bytes: 1e300 } }, 'invalid_setting', /compaction_tail_bytes must be at most 67108864$/],
  [{ harness: { keep_groups_min: 9 } }, 'invalid_setting', /keep_groups_min would be 9, above keep_groups_max \(8\)$/],
  [{ harness: { keep_groups_max: 1 } }, 'invalid_setting', /keep_groups_max would be 1, below keep_groups_min \(2\)$/],
  [
    { harness: { compaction_trigger_bytes: 2 * MIB } },
    'invalid_setting',
    /compaction_trigger_bytes would be 2097152, above max_model_request_bytes \(2064384\)$/,
  ],
  [
    { harness: { max_model_request_bytes: MIB } },
    'invalid_setting',
    /max_model_request_bytes would be 1048576, below compaction_trigger_bytes \(1258291\)$/,
  ],
  [
    { harness: { keep_group_min: 1 } },
    'unknown_setting',
    /harness\.keep_group_min is not known; did you mean "keep_groups_min"/,
  ],
  [
    { harness: { constructor: 1, toString: 2 } },
    'unknown_setting',
    /harness\.constructor is not known; known are max_model/,
  ],
  [{ harness: { image_max_side: 100 } }, 'unknown_setting', /harness\.image_max_side is not known/],
  [{ harness: { model_activity_timeout: 100 } }, 'unknown_setting', /harness\.model_activity_timeout is not known/],
  [{ harness: { keep_groups_max: '9' } }, 'invalid_request', /^body\.harness\.keep_groups_max must be a number$/],
  [{ harness: { keep_groups_max: [9] } }, 'invalid_request', /^body\.harness\.keep_groups_max must be a number$/],
  [{ harness: [] }, 'invalid_request', /^body\.harness must be an object$/],
  [{ judge_model: 7 }, 'invalid_request', /^body\.judge_model must be a string$/],
  [{ judge_model: null }, 'invalid_request', /^body\.judge_model must be a string$/],
  [{ judge_model: 'x'.repeat(257) }, 'invalid_request', /^body\.judge_model must be at most 256 characters$/],
  [{ judge: 'acme/large' }, 'unknown_field', /^body\.judge is not a field that is known$/],
  [{ revision: 3 }, 'unknown_field', /^body\.revision is not a field that is known$/],
];
for (const [body, code, message] of REFUSED) {
  test(`B25 refuses ${JSON.stringify(body).slice(0, 70)} as ${code}, with field and limit, and saves nothing`, async () => {
    const reply = await put({ title_model: 'acme/large', ...body });
    const error = errorOf(reply);
    assert.deepEqual([reply.status, error.code], [400, code], error.message);
    assert.match(error.message, message);
    assert.deepEqual(await saved(), {});
  });
}

test('B25 a body that is no JSON object of ours is refused, never a 500', async () => {
  for (const [text, status] of [
    ['', 400],
    ['null', 400],
    ['[]', 400],
    ['"x"', 400],
    ['{', 400],
    ['{"harness":{"keep_groups_max":NaN}}', 400],
    ['{"harness":{"keep_groups_max":1e999}}', 400],
    ['{"harness":{"__proto__":1}}', 400],
    ['{"judge_model":"acme/large","judge_model":""}', 400],
    [`{"harness":${'{"a":'.repeat(70)}1${'}'.repeat(71)}`, 400],
    [`{"judge_model":"${'x'.repeat(1_100_000)}"}`, 413],
  ] as const) {
    const reply = await put(text, { 'content-type': 'application/json' });
    assert.equal(reply.status, status, `${text.slice(0, 60)}: ${JSON.stringify(reply.body).slice(0, 200)}`);
  }
  assert.deepEqual(await saved(), {});
});

test('B25 the pair of a rule may be changed together, and every bound itself is allowed', async () => {
  const { status, body } = await put({
    harness: {
      keep_groups_min: 64,
      keep_groups_max: 64,
      max_model_request_bytes: 2 * MIB,
      compaction_trigger_bytes: 2 * MIB,
      continue_as_new_bytes: 512 * MIB,
      tool_output_max_bytes: 64 * MIB,
      compaction_card_max_bytes: 256,
      compaction_tail_bytes: 1,
    },
  });
  assert.equal(status, 200, JSON.stringify(body));
  // Resetting one of the two alone would break the rule.
  const error = errorOf(await put({ harness: { keep_groups_max: null } }));
  assert.match(error.message, /keep_groups_max would be 8, below keep_groups_min \(64\)$/);
});

test('B22 the last weight above 0 is not taken away, neither by a number nor by a reset of what is saved', async () => {
  const none = Object.fromEntries(HAB_NAMES.map((name) => [name, 0]));
  assert.equal((await put({ hab_coefficients: { ...none, safety: 1 } })).status, 200);
  assert.equal(errorOf(await put({ hab_coefficients: { safety: 0 } })).code, 'invalid_setting');
  assert.equal(
    (await put({ hab_coefficients: { safety: 0, correctness: null } })).status,
    200,
    'the compiled one is 1',
  );
});

test('B25 the answer of PUT is the payload of GET', async () => {
  const answer = await put({ judge_model: 'acme/large', harness: { keep_groups_max: 9 } });
  assert.deepEqual(await get(), answer);
});

test('B25 each changed key has its own audit row with before and after, an unchanged one has none', async () => {
  await put({ judge_model: 'acme/large', harness: { keep_groups_max: 9 } });
  await put({ judge_model: 'acme/large', harness: { keep_groups_max: 10 }, title_model: '' });
  await put({ harness: { keep_groups_max: null } });
  const audit = await rows<Record<string, unknown>>(
    `select operation, name, subject, before, after, status from audit where name is not null order by id`,
  );
  const row = (operation: string, name: string, before: unknown, after: unknown) => ({
    operation,
    name,
    subject: 'user:ann',
    before,
    after,
    status: 200,
  });
  assert.deepEqual(audit, [
    row('saveSetting', 'eval.judge.model', null, 'acme/large'),
    row('saveSetting', 'harness.budgets.keep_groups_max', null, 9),
    row('saveSetting', 'harness.budgets.keep_groups_max', 9, 10),
    row('resetSetting', 'harness.budgets.keep_groups_max', 10, null),
  ]);
  const calls = await rows<{ operation: string }>('select operation from audit where name is null');
  assert.equal(calls.length, 3, 'and each call its own');
});

test('B25 a refused change leaves the row of its call and none of a key', async () => {
  await put({ harness: { keep_groups_max: 65 } });
  const audit = await rows('select operation, code from audit');
  assert.deepEqual(audit, [{ operation: 'putSupervisor', code: 'invalid_setting' }]);
});

test('20-control-plane §2 a change of an older state gets 412 with the last state, and changes nothing', async () => {
  const { etag } = await get();
  const first = await put({ title_model: 'acme/small' }, { 'if-match': etag ?? '' });
  assert.equal(first.status, 200);
  assert.notEqual(first.etag, etag);
  const late = await put({ title_model: 'acme/large' }, { 'if-match': etag ?? '' });
  assert.deepEqual([late.status, errorOf(late).code], [412, 'precondition_failed']);
  assert.deepEqual(errorOf(late).details?.['current'], first.body);
  assert.deepEqual(await saved(), { 'harness.title.model': 'acme/small' });
  const again = await put({ title_model: 'acme/large' }, { 'if-match': `"no", ${first.etag}` });
  assert.equal(again.status, 200);
});

test('20-control-plane §2 an idempotency key gives the same answer and ETag again, and changes once', async () => {
  const key = { 'idempotency-key': 'settings-once' };
  const first = await put({ title_model: 'acme/large' }, key);
  await put({ title_model: 'acme/small' });
  assert.deepEqual(await put({ title_model: 'acme/large' }, key), first);
  assert.deepEqual(await saved(), { 'harness.title.model': 'acme/small' });
});

test('if-match takes * and lists, and refuses what is no validator', async () => {
  assert.equal((await put({}, { 'if-match': '*' })).status, 200);
  assert.equal((await put({}, { 'if-match': 'W/"0"' })).status, 412, 'a weak validator is the revision that it names');
  for (const header of ['0', '"', 'W/', '"a" "b"', ',']) {
    assert.equal((await put({}, { 'if-match': header })).status, 400, header);
  }
});

test('a change that changes nothing keeps the revision', async () => {
  const first = await put({ judge_model: 'acme/large' });
  assert.equal((await put({ judge_model: 'acme/large' })).etag, first.etag);
  assert.equal((await put({})).etag, first.etag);
});

test('of twenty writers with one ETag exactly one wins, and its settings are whole', async () => {
  const { etag } = await get();
  const replies = await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      put({ harness: { keep_groups_min: n + 1, keep_groups_max: n + 1 } }, { 'if-match': etag ?? '' }),
    ),
  );
  const won = replies.filter(({ status }) => status === 200);
  assert.deepEqual([won.length, replies.filter(({ status }) => status === 412).length], [1, 19]);
  const values = await saved();
  assert.equal(values['harness.budgets.keep_groups_min'], values['harness.budgets.keep_groups_max']);
});

test('writers without an ETag never mix: every state that is read is one writer’s whole, and no rule is ever broken', async () => {
  const pairs = Array.from({ length: 12 }, (_, n) => n + 1);
  let reading = true;
  const reader = (async () => {
    while (reading) {
      const { body } = await get();
      const harness = body['harness'] as Record<string, number>;
      assert.ok((harness['keep_groups_min'] ?? 0) <= (harness['keep_groups_max'] ?? 0));
      if ((body['harness_saved'] as string[]).length > 0) {
        assert.equal(harness['keep_groups_min'], harness['keep_groups_max']);
      }
    }
  })();
  await Promise.all(pairs.map((n) => put({ harness: { keep_groups_min: n, keep_groups_max: n } })));
  reading = false;
  await reader;
});

test('a registry that is away gives 503 for names and does not hinder budgets or resets', async () => {
  await put({ judge_model: 'acme/large' });
  api.breakRegistry(true);
  try {
    const named = await put({ title_model: 'acme/large' });
    assert.deepEqual([named.status, errorOf(named).code], [503, 'registry_unavailable']);
    assert.equal((await put({ harness: { keep_groups_max: 9 }, judge_model: '' })).status, 200);
    assert.equal((await get()).status, 200);
  } finally {
    api.breakRegistry(false);
  }
});

test('B12 B46 D19 effective names value, source and what each knob, limit and role overrode', async () => {
  const other = await startSettingsApi(database.pool, {
    environmentModel: 'env/main',
    variables: {
      BEEUNI_COMPACTION_KEEP_GROUPS_MAX: '9',
      TEMPORALITY_IMAGE_MAX_SIDE: '800',
      BEEUNI_CONTINUE_AS_NEW_BYTES: 'lots',
    },
  });
  try {
    await other.send('PUT', 'supervisor', { harness: { keep_groups_max: 10 }, judge_model: 'acme/large' });
    await database.pool.query({
      text: `insert into workspace_settings (key, value) values ('harness.title.model', '"closed/large"')`,
      values: [],
    });
    const { body } = await other.send('GET', 'effective');
    const named = (list: string, key: string, name: string) =>
      (body[list] as Record<string, unknown>[]).find((entry) => entry[key] === name);
    assert.deepEqual(named('knobs', 'name', 'keep_groups_max'), {
      name: 'keep_groups_max',
      key: 'harness.budgets.keep_groups_max',
      unit: 'groups',
      least: 1,
      most: 64,
      value: 10,
      source: 'saved',
      overrode: [
        { source: 'environment', value: 9 },
        { source: 'default', value: 8 },
      ],
    });
    const side = named('limits', 'name', 'image_max_side');
    assert.deepEqual([side?.['value'], side?.['source'], side?.['key']], [800, 'environment', null]);
    assert.equal(named('knobs', 'name', 'continue_as_new_bytes')?.['source'], 'default');
    const title = named('roles', 'role', 'title');
    assert.deepEqual(
      [title?.['assigned'], title?.['model'], title?.['source']],
      ['closed/large', 'acme/large', 'judge'],
    );
    assert.match(JSON.stringify(title?.['overrode']), /provider closed of model closed\/large is disabled/);
    assert.deepEqual(
      (body['problems'] as { name: string }[]).map(({ name }) => name),
      ['BEEUNI_CONTINUE_AS_NEW_BYTES', 'harness.title.model'],
    );
    assert.match(JSON.stringify(body['problems']), /the role title passes its model over: provider closed of model/);
    assert.match(
      String(named('roles', 'role', 'vision')?.['reason']),
      /^in a run the model of the run, if it takes images;/,
    );
    const view = await other.send('GET', 'supervisor');
    assert.deepEqual(view.body['problems'], body['problems']);
  } finally {
    await other.stop();
  }
});

test('rows that nobody could have saved do not count, are reported, and can be reset', async () => {
  await database.pool.query({
    text: `insert into workspace_settings (key, value) values
      ('harness.budgets.keep_groups_max', '"nine"'), ('harness.budgets.compaction_tail_bytes', '1.5'),
      ('eval.judge.model', '7'), ('eval.hab.safety', '99'), ('from.the.future', '1')`,
    values: [],
  });
  const { status, body } = await get();
  assert.equal(status, 200);
  assert.deepEqual(
    [body['harness'], body['hab_coefficients'], body['judge_model']],
    [COMPILED_BUDGETS, COMPILED_HAB, ''],
  );
  assert.equal((body['problems'] as unknown[]).length, 4);
  const reset = await put({
    harness: { keep_groups_max: null, compaction_tail_bytes: null },
    judge_model: '',
    hab_coefficients: { safety: null },
  });
  assert.deepEqual(reset.body['problems'], []);
  assert.deepEqual(await saved(), { 'from.the.future': 1 });
});

test('a role is a reference that holds its provider', async () => {
  await put({ judge_model: 'acme/large' });
  const judge = 'workspace setting eval.judge.model (acme/large)';
  assert.deepEqual(await api.app.findReferences('acme'), [judge]);
  assert.deepEqual(await api.app.findReferences('acme', new Set(['large'])), [judge]);
  assert.deepEqual(await api.app.findReferences('acme', new Set(['small'])), []);
  assert.deepEqual(await api.app.findReferences('acm'), []);
});

test('FF9 no body, of any shape and size, gets an answer that is not declared', async () => {
  const key = fc.oneof(
    fc.constantFrom('judge_model', 'title_model', 'harness', 'hab_coefficients', 'keep_groups_max', 'safety', 'x'),
    fc.string({ maxLength: 12 }),
  );
  const leaf = fc.oneof(
    fc.constantFrom<unknown>('acme/large', '', null, 9, -1, 1e300, 0.5, true),
    fc.string({ unit: 'binary', maxLength: 20 }),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
  );
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { maxDepth: 4 },
      leaf,
      fc.array(tie('tree'), { maxLength: 3 }),
      fc.dictionary(key, tie('tree'), { maxKeys: 5 }),
    ),
  }));
  const statuses = new Set<number>();
  await fc.assert(
    fc.asyncProperty(fc.dictionary(key, tree, { maxKeys: 5 }), async (body) => {
      const { status, body: answer } = await put(body);
      statuses.add(status);
      assert.ok(status === 200 || status === 400, `${status} for ${JSON.stringify(body)}: ${JSON.stringify(answer)}`);
      if (status === 400) assert.ok(errorOf({ status, etag: null, body: answer }).message.length < 2_000);
    }),
    { seed: 20261130, numRuns: 300 },
  );
  assert.deepEqual(
    [...statuses].sort((a, b) => a - b),
    [200, 400],
  );
  assert.equal((await get()).status, 200);
});
