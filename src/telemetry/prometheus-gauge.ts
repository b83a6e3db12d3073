import { Counter, Gauge, type Registry } from 'prom-client';

/** A metric that is read from somewhere when somebody asks for it. */
export interface Reading {
  readonly name: string;
  readonly help: string;
  /** A counter never falls while the process lives. */
  readonly type: 'gauge' | 'counter';
  /** What its values differ by, if there is more than one. */
  readonly label?: string;
  /** Labels that never change. */
  readonly labels?: Readonly<Record<string, string>>;
  /** One value, or several by the values of the label; none where there is nothing to be told. */
  readonly read: () => number | Readonly<Record<string, number | undefined>> | undefined;
}

/** Adds a reading to what a registry tells. */
export function registerReading(registry: Registry, reading: Reading): void {
  const { name, help, label, labels: fixed = {}, read } = reading;
  const settings = {
    name,
    help,
    labelNames: [...(label === undefined ? [] : [label]), ...Object.keys(fixed)],
    registers: [registry],
  };
  if (reading.type === 'gauge') {
    new Gauge({
      ...settings,
      collect() {
        this.reset();
        for (const { labels, value } of valuesOf(read(), label))
          this.set({ ...labels, ...fixed }, value);
      },
    });
  } else {
    new Counter({
      ...settings,
      collect() {
        this.reset();
        for (const { labels, value } of valuesOf(read(), label))
          this.inc({ ...labels, ...fixed }, value);
      },
    });
  }
}

function valuesOf(read: ReturnType<Reading['read']>, label: string | undefined) {
  if (read === undefined) return [];
  if (typeof read === 'number') return [{ labels: {}, value: read }];
  return Object.entries(read).flatMap(([name, value]) =>
    value === undefined || label === undefined ? [] : [{ labels: { [label]: name }, value }],
  );
}
