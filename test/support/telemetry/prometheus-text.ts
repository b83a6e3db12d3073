import { expect } from 'vitest';
import type { TestApp } from '../test-app.ts';

type Labels = Readonly<Record<string, string>>;

export type Scrape = ReturnType<typeof parseScrape>;

export const METRICS_TOKEN = 'a-token-of-the-tests';
export const metricsSettings = { ADMIN_PORT: '0', ADMIN_TOKEN: METRICS_TOKEN };
export const withToken = { authorization: `Bearer ${METRICS_TOKEN}` };

/** Sends a change to the admin listener of an app with `metricsSettings`. */
export const sendToAdmin = (
  { requestAdmin }: Pick<TestApp, 'requestAdmin'>,
  url: string,
  payload: object,
  method: 'POST' | 'DELETE' = 'POST',
) => requestAdmin(url, { method, payload, headers: withToken });

/** Parses Prometheus' text format (version 0.0.4) strictly. */
export function parseScrape(text: string) {
  /** Types by metric name. */
  const types = new Map<string, string>();
  /** Series, with suffixes like `_bucket` in their names. */
  const samples: { name: string; labels: Labels; value: number }[] = [];
  for (const line of text.split('\n')) {
    const type = /^# TYPE (\S+) (counter|gauge|histogram|summary)$/.exec(line);
    if (type?.[1] !== undefined) types.set(type[1], type[2] ?? '');
    if (line === '' || line.startsWith('#')) continue;
    const parts = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (parts === null) throw new Error(`No sample: ${line}`);
    const [, name = '', labelText = '', value] = parts;
    const labels = [...labelText.matchAll(/([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"(?:,|$)/g)];
    samples.push({
      name,
      labels: Object.fromEntries(labels.map(([, label, text]) => [label, text])),
      value: Number(value),
    });
  }
  return {
    samples,
    types,
    /** Returns the value of the only series with at least these labels; 0 if it is missing. */
    read: (name: string, labels: Labels = {}): number => {
      const found = samples.filter(
        (sample) =>
          sample.name === name &&
          Object.entries(labels).every(([label, text]) => sample.labels[label] === text),
      );
      if (found.length > 1) throw new Error(`${found.length} series are ${name}`);
      return found[0]?.value ?? 0;
    },
  };
}

export async function scrape(app: TestApp): Promise<Scrape> {
  const { statusCode, body } = await app.requestAdmin('/metrics', { headers: withToken });
  expect(statusCode).toBe(200);
  return parseScrape(body);
}
