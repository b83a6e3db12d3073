import { signedPathOf, useExternalApp } from '../support/sites/external-app.ts';
import { metricsSettings, sendToAdmin } from '../support/telemetry/prometheus-text.ts';
import { RELAY_KEY, uploadTarget } from '../support/uploads/relay-app.ts';
import {
  type ModelRequest,
  type Place,
  periods,
  places,
  type Setup,
  type Truth,
  type Variant,
} from './cache-model.ts';
import { CachePorts } from './cache-ports.ts';
import type { StepOf } from './cache-steps.ts';

export type CacheWorld = Awaited<ReturnType<typeof createWorld>>;

export type Observed = Exclude<Awaited<ReturnType<CacheWorld['request']>>, undefined>;

const assetTails: Readonly<Record<Variant, string>> = {
  small: '.webp?size=16',
  respelled: '.webp?v=2&quality=high&size=16',
  large: '.webp?size=20',
  png: '.png?size=16',
  untouched: '.png?size=4096&quality=lossless',
};
const queries: Readonly<Record<Variant, string>> = {
  small: 'width=16&format=webp',
  respelled: 'size=9&format=webp&quality=lossless&width=16',
  large: 'width=20&format=webp',
  png: 'width=16&format=png',
  untouched: '',
};

/** Starts a service until the end of the test. */
export async function createWorld(setup: Setup) {
  const ports = new CachePorts(setup);
  const app = await useExternalApp({
    ...ports.parts,
    settings: {
      ...metricsSettings,
      WORKERS: '8',
      RELAY_SIGNING_KEYS: RELAY_KEY,
      CACHE_REVALIDATE_SECONDS: String(setup.freshForMs / 1000),
      ...(!setup.keepsResults && { CACHE_MEMORY_BYTES: '0' }),
      ...(!setup.keepsOriginals && { CACHE_ORIGINALS_BYTES: '0' }),
    },
  });
  const urlOfSite = () => app.urlOf(`/${ports.walk}.png`);
  const placeOf = ({ original }: ModelRequest): Place => places[original] ?? 'asset';

  const targetOf = (place: Place, variant: Variant): string => {
    const key = ports.keyOf(place);
    if (place === 'asset') return `/${key}${assetTails[variant]}`;
    const query = queries[variant];
    return place === 'site' ? signedPathOf(urlOfSite(), query) : `/${key}${query && '?'}${query}`;
  };

  return {
    app,
    ports,
    begin: (): readonly Truth[] => {
      const truths = ports.begin();
      const { handlers } = app.site;
      handlers.clear();
      handlers.set(`/${ports.walk}.png`, (...exchange) => void ports.serveSite(...exchange));
      app.requests.length = 0;
      // The service remembers a failure of the store across walks.
      app.clock.advance(periods.storeFailed);
      return truths;
    },
    /** @returns `undefined` if the client left */
    request: async (
      request: ModelRequest,
      headers: Readonly<Record<string, string>>,
      signal?: AbortSignal,
    ) => {
      const method = request.as === 'head' ? 'HEAD' : 'GET';
      const url = targetOf(placeOf(request), request.variant);
      try {
        return await app.server.inject({ method, url, headers, ...(signal && { signal }) });
      } catch (error) {
        if (signal?.aborted) return undefined;
        throw error;
      }
    },
    purge: (request: ModelRequest, by: StepOf<'purge'>['by']) => {
      const place = placeOf(request);
      const [key, url] = [ports.keyOf(place), urlOfSite()];
      const ofStorage = {
        key: { assets: [key] },
        prefix: { prefix: key.replace(/[^/]+$/, '') },
        others: { assets: [`${key}x`] },
      };
      const ofSite = {
        key: { external: [`${url}#top`] },
        prefix: { external: [url.replace('http', 'HTTP')] },
        others: { external: [`${url}x`] },
      };
      const paths = [targetOf(place, request.variant)];
      const named = place === 'site' ? ofSite : ofStorage;
      return sendToAdmin(app, '/purge', by === 'path' ? { paths } : named[by]);
    },
    /** Uploads a new picture; returns the status. */
    upload: async (truth: Truth, replaces: boolean): Promise<number> => {
      const target = uploadTarget(ports.keyOf(truth.place), { replaces });
      const body = new Uint8Array(ports.nextPicture);
      const url = `http://127.0.0.1:${app.port}${target}`;
      // A kept connection would be closed as the clock advances.
      return (await fetch(url, { method: 'PUT', body, headers: { connection: 'close' } })).status;
    },
  };
}
