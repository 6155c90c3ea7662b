// A metric as a plain value: registered by base/metrics.ts, described in docs/reference. Must not know any registry.

/** What a metric measures. */
export type MetricType = 'counter' | 'gauge' | 'histogram';

/** The values that a label may take: a list, or a pattern for small sets such as status codes. */
export type LabelValues = readonly string[] | RegExp;

/** One metric. Anything outside a label's values is recorded as `other`, so that no id can become a label. */
export type Metric<T extends MetricType = MetricType, L extends string = string> = Readonly<{
  /** `beeuni_<noun>_<unit>`, counters end in `_total`; base units (seconds, bytes). */
  name: string;
  type: T;
  help: string;
  labels: Readonly<Record<L, LabelValues>>;
  /** Upper bounds of a histogram, in the unit of the name. */
  buckets?: readonly number[] | undefined;
}>;

/** Label values that every label may take besides its own. */
export const OTHER_LABEL = 'other';

const NAME = /^beeuni_[a-z0-9]+(_[a-z0-9]+)*$/;

const define =
  <T extends MetricType>(type: T) =>
  <const L extends string = never>(
    name: string,
    help: string,
    labels: Readonly<Record<L, LabelValues>> = {} as Readonly<Record<L, LabelValues>>,
    buckets?: readonly number[],
  ): Metric<T, L> => {
    const full = `beeuni_${name}`;
    if (!NAME.test(full)) throw new TypeError(`metric name ${full} is not snake case`);
    if ((type === 'counter') !== full.endsWith('_total'))
      throw new TypeError(`${full}: counters, and only they, end in _total`);
    return { name: full, type, help, labels, buckets };
  };

/** A number that only grows. Its name ends in `_total`. Throws TypeError on a bad name. */
export const counter = define('counter');
/** A number that goes up and down. Throws TypeError on a bad name. */
export const gauge = define('gauge');
/** A distribution. Throws TypeError on a bad name. */
export const histogram = define('histogram');
