import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import {
  counters,
  histograms,
  type Meter,
  type ResponseClass,
  type ResponseCount,
} from '../pipeline/meter.ts';

/**
 * A metric that is read at each scrape: its help, and its value or its values by a label. With `_total` at the end of
 * its name it is a counter, which never falls while the process lives; else a gauge.
 */
export type Reading = readonly [
  help: string,
  read: () => number | Readonly<Record<string, number | undefined>>,
  label?: string,
];

type Labels = Readonly<Record<string, string | number>>;
type CountsByValue = Readonly<Record<string, Record<string, number>>>;

/**
 * Counts for Prometheus, in its text format. Frequent events are added to plain numbers, which are read at a scrape.
 * Rates need a first value, also for what has not happened yet, so every series exists from the start, except for the
 * classes of responses, which are too many.
 */
export class PrometheusMeter implements Meter {
  readonly #registry = new Registry();
  readonly #responses: (ResponseClass & ResponseCount)[] = [];
  readonly #byClass: Record<string, Record<string, Record<number, ResponseCount>>> = {};
  readonly #counts: CountsByValue;
  /** A histogram for each value of a label: to look one up by its labels would take longer than to add to it. */
  readonly #durations: Readonly<Record<string, Record<string, Histogram.Internal<string>>>>;

  constructor() {
    const registers = [this.#registry];
    this.#counts = mapValues(counters, ({ values }) =>
      Object.fromEntries(values.map((value) => [value, 0])),
    );
    this.#durations = mapValues(histograms, ({ name, help, label, values, bucketsSeconds }) => {
      const buckets = [...bucketsSeconds];
      const histogram = new Histogram({ name, help, labelNames: [label], buckets, registers });
      for (const value of values) histogram.zero({ [label]: value });
      return Object.fromEntries(values.map((value) => [value, histogram.labels(value)]));
    });
    for (const [key, row] of Object.entries(counters)) {
      const label = 'label' in row ? row.label : undefined;
      this.#register(row.name, row.help, label === undefined ? [] : [label], () =>
        Object.entries(this.#counts[key] ?? {}).map(([value, count]) => [
          label === undefined ? {} : { [label]: value },
          count,
        ]),
      );
    }
    this.#register(
      'darkroom_requests_total',
      'Requests by what they asked for, status, and where the response came from.',
      ['resource', 'status', 'cache'],
      () =>
        this.#responses.map(({ resource, status, cache, responses }) => [
          { resource, status, cache },
          responses,
        ]),
    );
    this.#register(
      'darkroom_sent_bytes_total',
      'Bytes of bodies that were handed over to the system, on their way to clients.',
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
    // Nested, since to put a key together for each response takes longer than all else here.
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

  /** Adds metrics that are read at each scrape. */
  watch(readings: Readonly<Record<string, Reading>>): void {
    for (const [name, [help, read, label]] of Object.entries(readings)) {
      this.#register(name, help, label === undefined ? [] : [label], () => {
        const values = read();
        if (typeof values === 'number') return [[{}, values]];
        return Object.entries(values).flatMap(([value, number]) =>
          number === undefined || label === undefined ? [] : [[{ [label]: value }, number]],
        );
      });
    }
  }

  /** Adds a metric that is always 1: its labels are what it tells. */
  inform(name: string, help: string, labels: Labels): void {
    this.#register(name, help, Object.keys(labels), () => [[labels, 1]]);
  }

  /** Adds prom-client's own metrics of the process: CPU, memory, garbage collection, lag of the event loop. */
  watchProcess(): void {
    collectDefaultMetrics({ register: this.#registry });
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** Formats all metrics in the text format of Prometheus. */
  format(): Promise<string> {
    return this.#registry.metrics();
  }

  /** @param read returns the series with their values; those of equal labels are added up */
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

function mapValues<Row, Value>(
  rows: Readonly<Record<string, Row>>,
  map: (row: Row) => Value,
): Record<string, Value> {
  return Object.fromEntries(Object.entries(rows).map(([key, row]) => [key, map(row)]));
}
