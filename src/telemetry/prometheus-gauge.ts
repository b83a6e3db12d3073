import { Counter, Gauge, type Registry } from 'prom-client';

/** A metric that is read from somewhere when somebody asks for it. */
export interface Reading {
  /** With `_total` at its end it is a counter, which never falls while the process lives; else a gauge. */
  readonly name: string;
  readonly help: string;
  /** What its values differ by, if there is more than one. */
  readonly label?: string;
  /** Labels that never change. */
  readonly labels?: Readonly<Record<string, string>>;
  /** One value, or several by the values of the label; none where there is nothing to read. */
  readonly read: () => number | Readonly<Record<string, number | undefined>> | undefined;
}

/** Adds a reading to the metrics of a registry. */
export function registerReading(registry: Registry, reading: Reading): void {
  const { name, help, label, labels = {}, read } = reading;
  const Metric = name.endsWith('_total') ? Counter : Gauge;
  const metric = new Metric({
    name,
    help,
    labelNames: [...(label === undefined ? [] : [label]), ...Object.keys(labels)],
    registers: [registry],
    collect: () => {
      metric.reset();
      const values = read();
      if (typeof values === 'number') metric.inc(labels, values);
      else if (label !== undefined) {
        for (const [name, value] of Object.entries(values ?? {})) {
          if (value !== undefined) metric.inc({ ...labels, [label]: name }, value);
        }
      }
    },
  });
}
