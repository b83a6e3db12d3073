import { beforeEach, expect, test } from 'vitest';
import { type ExternalApp, useExternalApp } from '../../support/sites/external-app.ts';
import {
  type OtlpReceiver,
  useOtlpReceiver,
  useTracing,
} from '../../support/telemetry/otlp-receiver.ts';
import { metricsSettings, scrape } from '../../support/telemetry/prometheus-text.ts';
import { samples } from '../../support/test-app.ts';

let app: ExternalApp;
let collector: OtlpReceiver;

beforeEach(async () => {
  collector = await useOtlpReceiver();
  app = await useExternalApp({ settings: useTracing(collector, metricsSettings) });
  app.site.serve('/cat.jpg', samples.jpeg, { etag: '"one"' });
});

test('fetches are counted by what they have come to, and no host is named', async () => {
  app.resolver.set('evil.test', ['10.0.0.1']);
  await app.ask('/cat.jpg', 'width=40');
  await app.ask('/cat.jpg');
  await app.ask('/nothing');
  await app.askUrl('http://evil.test/', 'width=40');
  await app.askUrl('http://evil.test/', 'width=40');
  const { samples: series } = await scrape(app);
  const counts = Object.fromEntries(
    series
      .filter(({ name, value }) => name === 'darkroom_external_fetches_total' && value > 0)
      .map(({ labels, value }) => [labels.outcome, value]),
  );
  expect(counts).toEqual({ fetched: 2, missing: 1, address: 1 });
  expect(JSON.stringify(series)).not.toMatch(/site\.test|evil\.test/);
});

test('a fetch has a span, with why it has failed', async () => {
  await app.ask('/cat.jpg', 'width=40');
  app.resolver.set('evil.test', ['10.0.0.1']);
  await app.askUrl('http://evil.test/', 'width=40');
  const fetches = () => collector.spans.filter(({ name }) => name === 'fetch');
  await expect.poll(() => fetches().length).toBe(2);
  const [good, bad] = fetches().map(({ attributes }) => attributes);
  expect(good).toEqual({
    'darkroom.fetch.unchanged': false,
    'darkroom.bytes': samples.jpeg.length,
  });
  expect(bad).toMatchObject({ 'darkroom.fetch.failure': 'address' });
});
