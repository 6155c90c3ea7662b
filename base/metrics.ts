// Turns metric definitions into instruments, and renders them as Prometheus reads them. A counted call costs one look into
// a map. Must not know any single metric; schema/metrics.ts does.
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

/** What is kept for one set of label values. `buckets`: how many values lay in each, not below it. */
type Slot = { readonly labels: string; value: number; count: number; readonly buckets: Float64Array };

/** Bounds of a histogram that names none; those of Prometheus' own clients. */
const DEFAULT_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** Raw label values that are remembered; beyond it they are judged again each time. */
const MAX_REMEMBERED = 2_000;

const escaped = (text: string): string => text.replace(/[\\"\n]/g, (char) => (char === '\n' ? '\\n' : `\\${char}`));

/** Finds the slot of label values. Raw values are remembered, closed ones decide. */
const slotsOf = (metric: Metric, bounds: readonly number[]) => {
  const names = Object.keys(metric.labels);
  const [only, ...others] = names;
  const slots = new Map<string, Slot>();
  const remembered = new Map<string, Slot>();
  const judge = (labels: Readonly<Record<string, string>>): Slot => {
    const text = names
      .map((name) => {
        const known = metric.labels[name] ?? [];
        const value = labels[name] ?? OTHER_LABEL;
        const isKnown = known instanceof RegExp ? known.test(value) : known.includes(value);
        return `${name}="${escaped(isKnown ? value : OTHER_LABEL)}"`;
      })
      .join(',');
    const held = slots.get(text);
    if (held !== undefined) return held;
    const slot = { labels: text, value: 0, count: 0, buckets: new Float64Array(bounds.length) };
    slots.set(text, slot);
    return slot;
  };
  const find = (labels: Readonly<Record<string, string>>): Slot => {
    let raw = only === undefined ? '' : (labels[only] ?? OTHER_LABEL);
    for (const name of others) raw += `\u0000${labels[name] ?? OTHER_LABEL}`;
    const held = remembered.get(raw);
    if (held !== undefined) return held;
    const slot = judge(labels);
    if (remembered.size < MAX_REMEMBERED) remembered.set(raw, slot);
    return slot;
  };
  // Without labels there is one series, which is there from the start.
  if (only === undefined) find({});
  return { slots, find };
};

const numberText = (value: number): string =>
  value === Number.POSITIVE_INFINITY ? '+Inf' : value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value);

const series = (name: string, labels: string, value: number): string =>
  labels === '' ? `${name} ${numberText(value)}` : `${name}{${labels}} ${numberText(value)}`;

const histogramLines = (name: string, slot: Slot, bounds: readonly number[]): readonly string[] => {
  const head = slot.labels === '' ? '' : `${slot.labels},`;
  let below = 0;
  const buckets = bounds.map((bound, at) => {
    below += slot.buckets[at] ?? 0;
    return series(`${name}_bucket`, `${head}le="${bound}"`, below);
  });
  return [
    ...buckets,
    series(`${name}_bucket`, `${head}le="+Inf"`, slot.count),
    series(`${name}_sum`, slot.labels, slot.value),
    series(`${name}_count`, slot.labels, slot.count),
  ];
};

type Made = Readonly<{ instrument: unknown; lines: () => readonly string[] }>;

const make = (metric: Metric<MetricType>): Made => {
  const bounds = metric.type === 'histogram' ? (metric.buckets ?? DEFAULT_BUCKETS) : [];
  const { slots, find } = slotsOf(metric, bounds);
  const head = [`# HELP ${metric.name} ${metric.help.replace(/[\\\n]/g, ' ')}`, `# TYPE ${metric.name} ${metric.type}`];
  const check = (value: number): number => {
    if (!Number.isFinite(value)) throw new TypeError(`${metric.name}: ${value} is not a number that can be counted`);
    return value;
  };
  const plain = (): readonly string[] => [
    ...head,
    ...[...slots.values()].map((slot) => series(metric.name, slot.labels, slot.value)),
  ];
  switch (metric.type) {
    case 'counter':
      return {
        instrument: {
          inc: (labels: Record<string, string>, by = 1) => {
            if (check(by) < 0) throw new TypeError(`${metric.name}: a counter does not fall`);
            find(labels).value += by;
          },
        },
        lines: plain,
      };
    case 'gauge':
      return {
        instrument: {
          set: (labels: Record<string, string>, value: number) => {
            find(labels).value = value;
          },
        },
        lines: plain,
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
        lines: () => [...head, ...[...slots.values()].flatMap((slot) => histogramLines(metric.name, slot, bounds))],
      };
  }
};

/** Instruments of the given definitions and the page that shows them. Each call makes a registry of its own. */
export const createMetrics = <const D extends Readonly<Record<string, Metric>>>(
  definitions: D,
): Readonly<{ instruments: Instruments<D>; page: MetricsPage }> => {
  const setters: (() => void)[] = [];
  const made = Object.entries(definitions).map(([key, metric]) => [key, make(metric)] as const);
  return {
    instruments: Object.fromEntries(made.map(([key, { instrument }]) => [key, instrument])) as Instruments<D>,
    page: {
      contentType: 'text/plain; version=0.0.4; charset=utf-8',
      render: async () => {
        for (const set of setters) set();
        return `${made.map(([, { lines }]) => lines().join('\n')).join('\n\n')}\n`;
      },
      onScrape: (set) => {
        setters.push(set);
      },
    },
  };
};
