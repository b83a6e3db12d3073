import {
  type Meter,
  type MetricRow,
  metrics,
  type ResponseClass,
  type ResponseCount,
} from '../pipeline/meter.ts';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from './prometheus.ts';

/**
 * Metric that is read at each scrape, as one value or values by a label. It is a counter if its name ends with
 * `_total`, else a gauge.
 */
export type GaugeRow = readonly [
  help: string,
  read: () => number | Readonly<Record<string, number | undefined>>,
  label?: string,
];

type Labels = Readonly<Record<string, string | number>>;

/**
 * Meter for Prometheus. Events are added to plain numbers, which a scrape reads. Every series exists from the start,
 * since rates need a first value; only responses have too many classes.
 */
export class PrometheusMeter implements Meter {
  readonly #registry = new Registry();
  readonly #responses: (ResponseClass & ResponseCount)[] = [];
  readonly #byClass: Record<string, Record<string, Record<number, ResponseCount>>> = {};
  readonly #counts: Record<string, Record<string, number>> = {};
  /** A histogram for each value of a label, since a lookup by labels takes longer than adding. */
  readonly #durations: Record<string, Record<string, Histogram.Internal<string>>> = {};

  constructor() {
    const registers = [this.#registry];
    for (const [key, row] of Object.entries<MetricRow>(metrics)) {
      const { name, help, labels = {}, bucketsSeconds: buckets } = row;
      const [label, values] = Object.entries(labels)[0] ?? [undefined, ['all']];
      const labelNames = label === undefined ? [] : [label];
      const labelsOf = (value: string): Labels => (label === undefined ? {} : { [label]: value });
      if (buckets === undefined) {
        const counts = Object.fromEntries(values.map((value) => [value, 0]));
        this.#counts[key] = counts;
        this.#register(name, help, labelNames, () =>
          Object.entries(counts).map(([value, count]) => [labelsOf(value), count]),
        );
      } else {
        const histogram = new Histogram({
          name,
          help,
          labelNames,
          buckets: [...buckets],
          registers,
        });
        for (const value of values) histogram.zero(labelsOf(value));
        this.#durations[key] = Object.fromEntries(
          values.map((value) => [value, histogram.labels(labelsOf(value))]),
        );
      }
    }
    this.#register(
      'darkroom_requests_total',
      'Requests by resource, status, and source of the response.',
      ['resource', 'status', 'cache'],
      () =>
        this.#responses.map(({ resource, status, cache, responses }) => [
          { resource, status, cache },
          responses,
        ]),
    );
    this.#register(
      'darkroom_sent_bytes_total',
      'Bytes of bodies that were passed to the operating system for clients.',
      ['resource'],
      () => this.#responses.map(({ resource, bodyBytes }) => [{ resource }, bodyBytes]),
    );
  }

  count(name: string, value: string, by = 1): void {
    const counts = this.#counts[name];
    if (counts !== undefined) counts[value] = (counts[value] ?? 0) + by;
  }

  time(name: string, value: string, durationMs: number): void {
    this.#durations[name]?.[value]?.observe(durationMs / 1000);
  }

  countOf({ resource, status, cache }: ResponseClass): ResponseCount {
    // Nested, since building a key takes longer than the rest of this method.
    this.#byClass[resource] ??= {};
    const ofResource = this.#byClass[resource];
    ofResource[cache] ??= {};
    const ofCache = ofResource[cache];
    const known = ofCache[status];
    if (known !== undefined) return known;
    const count = { resource, status, cache, responses: 0, bodyBytes: 0 };
    ofCache[status] = count;
    this.#responses.push(count);
    return count;
  }

  watch(gauges: Readonly<Record<string, GaugeRow>>): void {
    for (const [name, [help, read, label]] of Object.entries(gauges)) {
      this.#register(name, help, label === undefined ? [] : [label], () => {
        const values = read();
        if (typeof values === 'number') return [[{}, values]];
        return Object.entries(values).flatMap(([value, number]) =>
          number === undefined || label === undefined ? [] : [[{ [label]: value }, number]],
        );
      });
    }
  }

  addInfo(name: string, help: string, labels: Labels): void {
    this.#register(name, help, Object.keys(labels), () => [[labels, 1]]);
  }

  watchProcess(): void {
    collectDefaultMetrics({ register: this.#registry });
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  format(): Promise<string> {
    return this.#registry.metrics();
  }

  /** @param read returns values by labels; equal labels are summed */
  #register(
    name: string,
    help: string,
    labelNames: readonly string[],
    read: () => readonly (readonly [labels: Labels, value: number])[],
  ): void {
    const Metric = name.endsWith('_total') ? Counter : Gauge;
    const metric = new Metric({
      name,
      help,
      labelNames,
      registers: [this.#registry],
      collect: () => {
        metric.reset();
        for (const [labels, value] of read()) metric.inc(labels, value);
      },
    });
  }
}
