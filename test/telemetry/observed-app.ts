import { SIGNING_KEY } from '../support/signed-urls.ts';
import { type ExternalAppOptions, useExternalApp } from '../support/sites/external-app.ts';
import { useOtlpReceiver, useTracing } from '../support/telemetry/otlp-receiver.ts';
import { metricsSettings, scrape } from '../support/telemetry/prometheus-text.ts';
import { useTemporaryDirectory } from '../support/temporary-directory.ts';
import { samples } from '../support/test-app.ts';

/** Service with all optional parts, another site, and a trace collector. */
export type ObservedApp = Awaited<ReturnType<typeof useObservedApp>>;

/** A PNG that is truncated after its header. */
export const CUT_PNG = samples.png.subarray(0, 60);

export async function useObservedApp({ settings, ...options }: ExternalAppOptions = {}) {
  const collector = await useOtlpReceiver();
  const directory = await useTemporaryDirectory();
  const app = await useExternalApp({
    logged: 'debug',
    ...options,
    settings: useTracing(collector, {
      ...metricsSettings,
      STORAGE_DIR: directory.path,
      RELAY_SIGNING_KEYS: SIGNING_KEY,
      ATTACHMENT_SIGNING: 'report',
      ATTACHMENT_SIGNING_KEYS: SIGNING_KEY,
      ...settings,
    }),
  });
  app.originals.put('icons/1/ab', samples.jpeg);
  app.originals.put('emojis/7', samples.text);
  app.originals.put('emojis/8', CUT_PNG);
  app.originals.put('attachments/1/2/a b.txt', samples.text);
  app.site.serve('/cat.jpg', samples.jpeg, { etag: '"one"' });
  app.resolver.set('evil.test', ['10.0.0.1']);
  return { ...app, collector };
}

/** Returns all counters, and the counts of histograms, as `name{label=value,...}` without `darkroom_`. */
export async function readCounts(app: ObservedApp): Promise<ReadonlyMap<string, number>> {
  const { samples: series, types } = await scrape(app);
  const isCount = (name: string): boolean =>
    types.get(name) === 'counter' || types.get(name.replace(/_count$/, '')) === 'histogram';
  const own = series.filter(({ name }) => name.startsWith('darkroom_') && isCount(name));
  return new Map(
    own.map(({ name, labels, value }) => {
      const pairs = Object.entries(labels).map((pair) => pair.join('='));
      return [`${name.replace('darkroom_', '')}{${pairs.join()}}`, value];
    }),
  );
}
