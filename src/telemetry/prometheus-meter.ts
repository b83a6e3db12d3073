import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import {
  counters,
  histograms,
  type Meter,
  type ResponseClass,
  type ResponseCount,
} from '../pipeline/meter.ts';

/** A metric that is read from somewhere when somebody asks for it. */
export interface Reading {
  /** With `_total` at its end it is a counter, which never falls while the process lives; else a gauge. */
  readonly name: string;
  readonly help: string;
  /** One value, or several by the values of the label; none where there is nothing to read. */
  readonly read: () => number | Readonly<Record<string, number | undefined>> | undefined;
  /** Label of its values, if it has several. */
  readonly label?: string | undefined;
  /** Labels that never change. */
  readonly labels?: Readonly<Record<string, string>>;
}

/**
 * Counts for Prometheus, in its text format. What happens often is added to plain numbers, which are read when
 * somebody asks. Rates need a first value, also of what has not happened yet: all is there from the start, but for the
 * classes of responses, which are too many.
 */
export class PrometheusMeter implements Meter {
  readonly #registry = new Registry();
  readonly #responses: (ResponseClass & ResponseCount)[] = [];
  readonly #byClass: Record<string, Record<string, Record<number, ResponseCount>>> = {};
  readonly #counts: Readonly<Record<string, Record<string, number>>>;
  /** A histogram for each value of a label: to look one up by its labels would take longer than to add to it. */
  readonly #durations: Readonly<Record<string, Record<string, Histogram.Internal<string>>>>;

  constructor() {
    const zero = ({ values }: { readonly values: readonly string[] }): Record<string, number> =>
      Object.fromEntries(values.map((value) => [value, 0]));
    this.#counts = mapValues(counters, zero);
    this.#durations = mapValues(histograms, ({ name, help, label, values, bucketsSeconds }) => {
      const registers = [this.#registry];
      const buckets = [...bucketsSeconds];
      const histogram = new Histogram({ name, help, labelNames: [label], buckets, registers });
      for (const value of values) histogram.zero({ [label]: value });
      return Object.fromEntries(values.map((value) => [value, histogram.labels(value)]));
    });
    for (const [key, row] of Object.entries(counters)) {
      const read = (): Readonly<Record<string, number>> => this.#counts[key] ?? {};
      this.watch([
        'label' in row ? { ...row, read } : { ...row, read: () => Object.values(read())[0] },
      ]);
    }
    this.#registerResponses();
  }

  count(name: string, value: string, by = 1): void {
    const counts = this.#counts[name];
    if (counts !== undefined) counts[value] = (counts[value] ?? 0) + by;
  }

  time(name: string, value: string, durationMs: number): void {
    this.#durations[name]?.[value]?.observe(durationMs / 1000);
  }

  /** Adds numbers that are read when somebody asks. */
  watch(readings: readonly Reading[]): void {
    for (const { name, help, label, labels = {}, read } of readings) {
      const Metric = name.endsWith('_total') ? Counter : Gauge;
      const metric = new Metric({
        name,
        help,
        labelNames: [...(label === undefined ? [] : [label]), ...Object.keys(labels)],
        registers: [this.#registry],
        collect: () => {
          metric.reset();
          const values = read();
          if (typeof values === 'number') metric.inc(labels, values);
          else if (label !== undefined) {
            for (const [key, value] of Object.entries(values ?? {})) {
              if (value !== undefined) metric.inc({ ...labels, [label]: key }, value);
            }
          }
        },
      });
    }
  }

  /** Adds prom-client's own metrics of the process: CPU, memory, garbage collection, lag of the event loop. */
  watchProcess(): void {
    collectDefaultMetrics({ register: this.#registry });
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

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** Formats all metrics in the text format of Prometheus. */
  format(): Promise<string> {
    return this.#registry.metrics();
  }

  #registerResponses(): void {
    const responses = this.#responses;
    new Counter({
      name: 'darkroom_requests_total',
      help: 'Requests by what they asked for, status, and where the answer came from.',
      labelNames: ['resource', 'status', 'cache'],
      registers: [this.#registry],
      collect() {
        this.reset();
        for (const count of responses) {
          const { resource, status, cache } = count;
          this.inc({ resource, status, cache }, count.responses);
        }
      },
    });
    new Counter({
      name: 'darkroom_sent_bytes_total',
      help: 'Bytes of bodies that were handed over to the system, on their way to clients.',
      labelNames: ['resource'],
      registers: [this.#registry],
      collect() {
        this.reset();
        for (const { resource, bodyBytes } of responses) this.inc({ resource }, bodyBytes);
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
