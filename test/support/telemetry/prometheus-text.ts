import { expect } from 'vitest';
import type { TestApp } from '../test-app.ts';

type Labels = Readonly<Record<string, string>>;

export type Scrape = ReturnType<typeof parseScrape>;

/** What the settings of an app with metrics are. */
export const METRICS_TOKEN = 'a-token-of-the-tests';
export const metricsSettings = { ADMIN_PORT: '0', ADMIN_TOKEN: METRICS_TOKEN };
export const withToken = { authorization: `Bearer ${METRICS_TOKEN}` };

/** Has the admin listener of these settings do something. */
export const sendToAdmin = (
  { requestAdmin }: Pick<TestApp, 'requestAdmin'>,
  url: string,
  payload: object,
  method: 'POST' | 'DELETE' = 'POST',
) => requestAdmin(url, { method, payload, headers: withToken });

/** Reads Prometheus' text format (version 0.0.4), strictly. */
export function parseScrape(text: string) {
  /** Types by the names of the metrics. */
  const types = new Map<string, string>();
  /** Series, by names as they stand in the text, `_bucket` and the like included. */
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
    /** The value of the one series that has these labels, among others; 0 if there is none. */
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
