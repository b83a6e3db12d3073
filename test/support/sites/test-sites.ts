import type { FetchOutcome } from '../../../src/pipeline/meter.ts';
import type { SiteResponse, SiteValidators } from '../../../src/pipeline/originals/sites.ts';
import {
  openSites,
  type SiteDoubles,
  type SiteSettings,
} from '../../../src/storage/remote/open-sites.ts';
import { ScriptedResolver } from './scripted-resolver.ts';

/** The way to other sites, with all that it does written down. */
export class TestSites {
  readonly resolver = new ScriptedResolver();
  /** Addresses that were dialled, in order. */
  readonly dialled: string[] = [];
  readonly outcomes: FetchOutcome[] = [];
  readonly #opened: ReturnType<typeof openSites>;

  constructor(
    settings: Partial<SiteSettings> = {},
    limits: SiteDoubles['limits'] = {},
    { hasRealResolver = false } = {},
  ) {
    this.#opened = openSites(
      {
        ports: [80, 443],
        allowedHosts: [],
        blockedHosts: [],
        allowedNetworks: [],
        blockedNetworks: [],
        nat64Prefixes: [],
        dnsServers: undefined,
        minAgeSeconds: 3_600,
        maxAgeSeconds: 604_800,
        version: '0',
        maxBytes: 500_000_000,
        maxWaitMs: 5_000,
        ...settings,
      },
      { noteFetch: (outcome) => this.outcomes.push(outcome) },
      {
        limits,
        ...(!hasRealResolver && { resolver: this.resolver }),
        onDial: (address) => this.dialled.push(address),
      },
    );
  }

  get connections() {
    return this.#opened.connections;
  }

  open(url: string, signal = new AbortController().signal): Promise<SiteResponse> {
    return this.#opened.sites.open({ url, signal });
  }

  /** The same, of which a state is known. */
  openKnown(url: string, known: SiteValidators): Promise<SiteResponse> {
    return this.#opened.sites.open({ url, known, signal: new AbortController().signal });
  }

  /** @returns why a fetch failed; `undefined` where it did not */
  async failureOf(url: string): Promise<unknown> {
    try {
      const response = await this.open(url);
      if (response.kind === 'content') response.body.destroy();
      return undefined;
    } catch (error) {
      return error;
    }
  }

  close(): void {
    this.connections.close();
  }
}
