import { type ExternalApp, signedPathOf, useExternalApp } from '../support/sites/external-app.ts';
import { metricsSettings, withToken } from '../support/telemetry/prometheus-text.ts';
import { RELAY_KEY, uploadTarget } from '../support/uploads/relay-app.ts';
import {
  type Ask,
  type Place,
  periods,
  places,
  type Setup,
  type Truth,
  type Variant,
} from './cache-model.ts';
import { CachePorts } from './cache-ports.ts';
import type { StepOf } from './cache-steps.ts';

/** What came of a request; `undefined` where its client had left. */
export interface Observed {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** A service between clients and what it stands on. */
export class CacheWorld {
  readonly app: ExternalApp;
  readonly ports: CachePorts;

  private constructor(app: ExternalApp, ports: CachePorts) {
    this.app = app;
    this.ports = ports;
  }

  static async create(setup: Setup): Promise<CacheWorld> {
    const ports = new CachePorts(setup);
    const app = await useExternalApp({
      ...ports.parts,
      settings: {
        ...metricsSettings,
        ...{ WORKERS: '8', RELAY_SIGNING_KEYS: RELAY_KEY },
        CACHE_REVALIDATE_SECONDS: String(setup.freshForMs / 1000),
        ...(!setup.keepsResults && { CACHE_MEMORY_BYTES: '0' }),
        ...(!setup.keepsOriginals && { CACHE_ORIGINALS_BYTES: '0' }),
      },
    });
    return new CacheWorld(app, ports);
  }

  /** Puts new originals everywhere, of which nothing is known. */
  async begin(): Promise<readonly Truth[]> {
    const { app, ports } = this;
    const truths = await ports.begin();
    const { handlers } = app.site;
    handlers.clear();
    handlers.set(`/${ports.walk}.png`, (...exchange) => void ports.serveSite(...exchange));
    app.requests.length = 0;
    // What the service knows of the store outlives a walk.
    app.clock.advance(periods.storeFailed);
    return truths;
  }

  get siteUrl(): string {
    return this.app.urlOf(`/${this.ports.walk}.png`);
  }

  targetOf(place: Place, variant: Variant): string {
    if (place === 'asset') {
      const tail = {
        small: '.webp?size=16',
        respelled: '.webp?v=2&quality=high&size=16',
        large: '.webp?size=20',
        png: '.png?size=16',
        untouched: '.png?size=4096&quality=lossless',
      };
      return `/${this.ports.keyOf(place)}${tail[variant]}`;
    }
    const query = {
      small: 'width=16&format=webp',
      respelled: 'size=9&format=webp&quality=lossless&width=16',
      large: 'width=20&format=webp',
      png: 'width=16&format=png',
      untouched: '',
    }[variant];
    if (place === 'site') return signedPathOf(this.siteUrl, query);
    return `/${this.ports.keyOf(place)}${query && '?'}${query}`;
  }

  async ask(
    { original, variant, as }: Ask,
    headers: Readonly<Record<string, string>>,
    signal?: AbortSignal,
  ): Promise<Observed | undefined> {
    const place = places[original] ?? 'asset';
    try {
      const response = await this.app.server.inject({
        method: as === 'head' ? 'HEAD' : 'GET',
        url: this.targetOf(place, variant),
        headers,
        ...(signal && { signal }),
      });
      const entries = Object.entries(response.headers).map(([name, value]) => [
        name,
        String(value),
      ]);
      return {
        status: response.statusCode,
        headers: Object.fromEntries(entries),
        body: response.rawPayload,
      };
    } catch (error) {
      if (signal?.aborted) return undefined;
      throw error;
    }
  }

  /** Has the admin listener forget something; what it says. */
  async purge(
    { original, variant }: Ask,
    by: StepOf<'purge'>['by'],
  ): Promise<{ status: number; body: unknown }> {
    const place = places[original] ?? 'asset';
    const [key, url] = [this.ports.keyOf(place), this.siteUrl];
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
    const payload =
      by === 'path'
        ? { paths: [this.targetOf(place, variant)] }
        : (place === 'site' ? ofSite : ofStorage)[by];
    const response = await this.app.askAdmin('/purge', {
      method: 'POST',
      headers: withToken,
      payload,
    });
    return { status: response.statusCode, body: response.json() };
  }

  /** Uploads a new picture; the status of the response. */
  async upload(truth: Truth, replaces: boolean): Promise<number> {
    const target = uploadTarget(this.ports.keyOf(truth.place), { replaces });
    const body = new Uint8Array(this.ports.nextPicture);
    const url = `http://127.0.0.1:${this.app.port}${target}`;
    // A connection that is kept would be closed as the clock advances.
    return (await fetch(url, { method: 'PUT', body, headers: { connection: 'close' } })).status;
  }
}
