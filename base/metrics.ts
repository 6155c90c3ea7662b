// Turns metric definitions into instruments of one registry. Must not know any single metric; schema/metrics.ts does.
import { Counter as PromCounter, Gauge as PromGauge, Histogram as PromHistogram, Registry } from 'prom-client';
import { type Metric, type MetricType, OTHER_LABEL } from '#schema/define-metric.ts';

type Labels<L extends string> = [L] extends [never] ? Readonly<Record<never, never>> : Readonly<Record<L, string>>;

/** A number that only grows; `by` is at least 0 and 1 when absent. */
export type Counter<L extends string = never> = Readonly<{ inc: (labels: Labels<L>, by?: number) => void }>;
/** A number that is set. */
export type Gauge<L extends string = never> = Readonly<{ set: (labels: Labels<L>, value: number) => void }>;
/** A distribution; values are in the unit of the metric's name. */
export type Histogram<L extends string = never> = Readonly<{ observe: (labels: Labels<L>, value: number) => void }>;

type InstrumentOf<M> =
  M extends Metric<infer T, infer L>
    ? T extends 'counter'
      ? Counter<L>
      : T extends 'gauge'
        ? Gauge<L>
        : Histogram<L>
    : never;

/** One instrument per definition, under the same key. */
export type Instruments<D extends Readonly<Record<string, Metric>>> = { readonly [K in keyof D]: InstrumentOf<D[K]> };

/** What is behind the `/metrics` route. */
export type MetricsPage = Readonly<{
  contentType: string;
  /** The page in Prometheus' text format, after every `onScrape` function has run. */
  render: () => Promise<string>;
  /** Runs `set` before each rendering: for gauges that are ages or sizes. */
  onScrape: (set: () => void) => void;
}>;

const closed = (metric: Metric, labels: Readonly<Record<string, string>>): Record<string, string> => {
  const result: Record<string, string> = {};
  for (const [name, values] of Object.entries(metric.labels)) {
    const value = labels[name] ?? OTHER_LABEL;
    const known = values instanceof RegExp ? values.test(value) : values.includes(value);
    result[name] = known ? value : OTHER_LABEL;
  }
  return result;
};

const instrument = (registry: Registry, metric: Metric<MetricType>): unknown => {
  const options = {
    name: metric.name,
    help: metric.help,
    labelNames: Object.keys(metric.labels),
    registers: [registry],
  };
  switch (metric.type) {
    case 'counter': {
      const inner = new PromCounter(options);
      return { inc: (labels: Record<string, string>, by = 1) => inner.inc(closed(metric, labels), by) };
    }
    case 'gauge': {
      const inner = new PromGauge(options);
      return { set: (labels: Record<string, string>, value: number) => inner.set(closed(metric, labels), value) };
    }
    case 'histogram': {
      const inner = new PromHistogram(
        metric.buckets === undefined ? options : { ...options, buckets: [...metric.buckets] },
      );
      return {
        observe: (labels: Record<string, string>, value: number) => inner.observe(closed(metric, labels), value),
      };
    }
  }
};

/** Instruments of the given definitions and the page that shows them. Each call makes a registry of its own. */
export const createMetrics = <const D extends Readonly<Record<string, Metric>>>(
  definitions: D,
): Readonly<{ instruments: Instruments<D>; page: MetricsPage }> => {
  const registry = new Registry();
  const setters: (() => void)[] = [];
  const instruments = Object.fromEntries(
    Object.entries(definitions).map(([key, metric]) => [key, instrument(registry, metric)]),
  ) as Instruments<D>;
  return {
    instruments,
    page: {
      contentType: registry.contentType,
      render: async () => {
        for (const set of setters) set();
        return registry.metrics();
      },
      onScrape: (set) => {
        setters.push(set);
      },
    },
  };
};
