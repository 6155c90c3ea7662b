// Instruments from definitions, and their closed labels.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { counter, gauge, histogram } from '#schema/define-metric.ts';
import { METRICS } from '#schema/metrics.ts';
import { createMetrics } from './metrics.ts';

test('a label value outside its set is recorded as other', async () => {
  const { instruments, page } = createMetrics({
    hits: counter('hits_total', 'Hits.', { kind: ['Pod'], code: /^[1-5]\d\d$/ }),
  });
  instruments.hits.inc({ kind: 'Pod', code: '200' });
  instruments.hits.inc({ kind: 'my-secret-name', code: 'x' }, 2);
  const text = await page.render();
  assert.match(text, /beeuni_hits_total\{kind="Pod",code="200"\} 1/);
  assert.match(text, /beeuni_hits_total\{kind="other",code="other"\} 2/);
  assert.doesNotMatch(text, /my-secret-name/);
});

test('gauges that are ages are set when the page is rendered', async () => {
  const { instruments, page } = createMetrics({ age: gauge('age_seconds', 'Age.') });
  let age = 1;
  page.onScrape(() => instruments.age.set({}, age));
  assert.match(await page.render(), /beeuni_age_seconds 1/);
  age = 2;
  assert.match(await page.render(), /beeuni_age_seconds 2/);
});

test('series that come and go are replaced as a whole, and none is left behind', async () => {
  const { instruments, page } = createMetrics({ rest: gauge('rest_ratio', 'Rest.', { project: /^[a-z]*$/ }) });
  instruments.rest.replace([
    [{ project: '' }, 1],
    [{ project: 'shop' }, 0.5],
  ]);
  instruments.rest.replace([[{ project: 'blog' }, 0.25]]);
  assert.match(await page.render(), /ratio gauge\nbeeuni_rest_ratio\{project="blog"\} 0.25\n$/);
  instruments.rest.set({ project: 'shop' }, 0.125);
  assert.match(await page.render(), /project="shop"\} 0.125/);
});

test('a name that breaks the rules is refused', () => {
  assert.throws(() => counter('hits', 'No suffix.'), TypeError);
  assert.throws(() => gauge('hits_total', 'Not a counter.'), TypeError);
  assert.throws(() => histogram('Hits', 'Not snake case.'), TypeError);
});

test('every metric of the product can be registered, each name once', async () => {
  const names = Object.values(METRICS).map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  const text = await createMetrics(METRICS).page.render();
  for (const name of names) assert.match(text, new RegExp(`# TYPE ${name} `));
});

test('a histogram is rendered with cumulated buckets, its sum and its count', async () => {
  const { instruments, page } = createMetrics({
    wait: histogram('wait_seconds', 'A wait.', { kind: ['a"b'] }, [0.1, 1]),
  });
  for (const value of [0.1, 0.5, 7]) instruments.wait.observe({ kind: 'a"b' }, value);
  assert.deepEqual((await page.render()).trim().split('\n').slice(2), [
    'beeuni_wait_seconds_bucket{kind="a\\"b",le="0.1"} 1',
    'beeuni_wait_seconds_bucket{kind="a\\"b",le="1"} 2',
    'beeuni_wait_seconds_bucket{kind="a\\"b",le="+Inf"} 3',
    'beeuni_wait_seconds_sum{kind="a\\"b"} 7.6',
    'beeuni_wait_seconds_count{kind="a\\"b"} 3',
  ]);
});

test('any number of foreign label values make one series, and a number that is none is refused', async () => {
  const { instruments, page } = createMetrics({ hits: counter('hits_total', 'Hits.', { kind: ['Pod'] }) });
  for (let at = 0; at < 5_000; at += 1) instruments.hits.inc({ kind: `x${at}` });
  assert.match(await page.render(), /beeuni_hits_total\{kind="other"\} 5000\n$/);
  assert.throws(() => instruments.hits.inc({ kind: 'Pod' }, Number.NaN), TypeError);
  assert.throws(() => instruments.hits.inc({ kind: 'Pod' }, -1), TypeError);
});
