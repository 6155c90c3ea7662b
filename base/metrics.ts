// Turns metric definitions into instruments. A counted call costs one look into a map; prom-client writes the page from
// what the maps hold. Must not know any single metric; schema/metrics.ts does. Source: docs/decisions/0024.
import { type Metric as PageMetric, Registry } from 'prom-client';
import { type Metric, type MetricType, OTHER_LABEL } from '#schema/define-metric.ts';

type Labels<L extends string> = [L] extends [never] ? Readonly<Record<never, never>> : Readonly<Record<L, string>>;

/** A number that only grows; `by` is at least 0 and 1 when absent. */
export type Counter<L extends string = never> = Readonly<{ inc: (labels: Labels<L>, by?: number) => void }>;
/** A number that is set. */
export type Gauge<L extends string = never> = Readonly<{
  set: (labels: Labels<L>, value: number) => void;
  /** Sets these series and forgets all others: for label values that come and go. */
  replace: (series: readonly (readonly [labels: Labels<L>, value: number])[]) => void;
}>;
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

/** What is kept for one set of label values. `buckets`: how many values lay in each, not below it. */
type Slot = {
  readonly labels: Readonly<Record<string, string>>;
  value: number;
  count: number;
  readonly buckets: Float64Array;
};

/** Bounds of a histogram that names none; those of Prometheus' own clients. */
const DEFAULT_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** Raw label values that are remembered; beyond it they are judged again each time. */
const MAX_REMEMBERED = 2_000;

/** Slots by raw label values: a level for each label, so that no text is put together for a look. */
type Level = { slot: Slot | undefined; readonly next: Map<string, Level> };
const newLevel = (): Level => ({ slot: undefined, next: new Map() });

/** Finds the slot of label values. Raw values are remembered, closed ones decide. */
const slotsOf = (metric: Metric, bounds: readonly number[]) => {
  const names = Object.keys(metric.labels);
  const slots = new Map<string, Slot>();
  let remembered = newLevel();
  let rememberedCount = 0;
  const judge = (labels: Readonly<Record<string, string>>): Slot => {
    const closed: Record<string, string> = {};
    for (const name of names) {
      const known = metric.labels[name] ?? [];
      const value = labels[name] ?? OTHER_LABEL;
      const isKnown = known instanceof RegExp ? known.test(value) : known.includes(value);
      closed[name] = isKnown ? value : OTHER_LABEL;
    }
    const text = Object.values(closed).join('\u0000');
    const held = slots.get(text);
    if (held !== undefined) return held;
    const slot = { labels: closed, value: 0, count: 0, buckets: new Float64Array(bounds.length) };
    slots.set(text, slot);
    return slot;
  };
  const remember = (labels: Readonly<Record<string, string>>): Slot => {
    const slot = judge(labels);
    if (rememberedCount >= MAX_REMEMBERED) return slot;
    rememberedCount += 1;
    let level = remembered;
    for (const name of names) {
      const value = labels[name] ?? OTHER_LABEL;
      const next = level.next.get(value) ?? newLevel();
      level.next.set(value, next);
      level = next;
    }
    level.slot = slot;
    return slot;
  };
  const find = (labels: Readonly<Record<string, string>>): Slot => {
    let level: Level | undefined = remembered;
    for (const name of names) {
      level = level.next.get(labels[name] ?? OTHER_LABEL);
      if (level === undefined) return remember(labels);
    }
    return level.slot ?? remember(labels);
  };
  // Without labels there is one series, which is there from the start.
  if (names.length === 0) find({});
  const forget = (): void => {
    slots.clear();
    remembered = newLevel();
    rememberedCount = 0;
  };
  return { slots, find, forget };
};

/** One series as prom-client's registry reads it. */
type Value = Readonly<{ metricName?: string; labels: Readonly<Record<string, string | number>>; value: number }>;

const histogramValues = (name: string, slot: Slot, bounds: readonly number[]): readonly Value[] => {
  const { labels } = slot;
  const bucket = (le: string | number, value: number): Value => ({
    metricName: `${name}_bucket`,
    labels: { ...labels, le },
    value,
  });
  let below = 0;
  const buckets = bounds.map((bound, at) => {
    below += slot.buckets[at] ?? 0;
    return bucket(bound, below);
  });
  return [
    ...buckets,
    bucket('+Inf', slot.count),
    { metricName: `${name}_sum`, labels, value: slot.value },
    { metricName: `${name}_count`, labels, value: slot.count },
  ];
};

type Made = Readonly<{ instrument: unknown; values: () => readonly Value[] }>;

const make = (metric: Metric<MetricType>): Made => {
  const bounds = metric.type === 'histogram' ? (metric.buckets ?? DEFAULT_BUCKETS) : [];
  const { slots, find, forget } = slotsOf(metric, bounds);
  const check = (value: number): number => {
    if (!Number.isFinite(value)) throw new TypeError(`${metric.name}: ${value} is not a number that can be counted`);
    return value;
  };
  const plain = (): readonly Value[] => [...slots.values()].map(({ labels, value }) => ({ labels, value }));
  switch (metric.type) {
    case 'counter':
      return {
        instrument: {
          inc: (labels: Record<string, string>, by = 1) => {
            if (check(by) < 0) throw new TypeError(`${metric.name}: a counter does not fall`);
            find(labels).value += by;
          },
        },
        values: plain,
      };
    case 'gauge':
      return {
        instrument: {
          set: (labels: Record<string, string>, value: number) => {
            find(labels).value = value;
          },
          replace: (series: readonly (readonly [Record<string, string>, number])[]) => {
            forget();
            for (const [labels, value] of series) find(labels).value = value;
          },
        },
        values: plain,
      };
    case 'histogram':
      return {
        instrument: {
          observe: (labels: Record<string, string>, value: number) => {
            const slot = find(labels);
            slot.value += check(value);
            slot.count += 1;
            for (let at = 0; at < bounds.length; at += 1) {
              if (value > (bounds[at] ?? 0)) continue;
              slot.buckets[at] = (slot.buckets[at] ?? 0) + 1;
              return;
            }
          },
        },
        values: () => [...slots.values()].flatMap((slot) => histogramValues(metric.name, slot, bounds)),
      };
  }
};

/** The metric as the registry asks for it: it reads `name`, and the answer of `get`. */
const pageMetric = (metric: Metric<MetricType>, values: Made['values']): PageMetric => {
  const { name, help, type } = metric;
  const get = async () => ({ name, help, type, aggregator: 'sum', values: values() });
  return { name, get } as unknown as PageMetric;
};

/** Instruments of the given definitions and the page that shows them. Each call makes a registry of its own. */
export const createMetrics = <const D extends Readonly<Record<string, Metric>>>(
  definitions: D,
): Readonly<{ instruments: Instruments<D>; page: MetricsPage }> => {
  const registry = new Registry();
  const setters: (() => void)[] = [];
  const instruments = Object.fromEntries(
    Object.entries(definitions).map(([key, metric]) => {
      const { instrument, values } = make(metric);
      registry.registerMetric(pageMetric(metric, values));
      return [key, instrument];
    }),
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
