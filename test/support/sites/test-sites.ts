import { Readable } from 'node:stream';
import { expect } from 'vitest';
import { readConfig } from '../../../src/config/config.ts';
import {
  openSites,
  type SiteDoubles,
  type SiteSettings,
} from '../../../src/storage/remote/open-sites.ts';
import type { NameResolver, ResolvedName } from '../../../src/storage/remote/resolver.ts';
import { SIGNING_KEY } from '../signed-urls.ts';

/** The usual settings of external media. */
const external = readConfig({ EXTERNAL_SIGNING_KEYS: SIGNING_KEY }).external ?? expect.fail();

type Opened = ReturnType<typeof openSites>;
type Open = Opened['source']['open'];
type Outcome = Parameters<Parameters<typeof openSites>[1]>[0];

/** Why a fetch has failed, as the log has it. */
export interface SiteFailure {
  readonly reason: Exclude<Outcome, 'stopped'>;
  readonly host?: string;
  readonly address?: string;
}

/** A resolver that answers what a test says, each time with the next of its answers. */
export class ScriptedResolver implements NameResolver {
  /** Names that were asked for, in order. */
  readonly names: string[] = [];
  readonly #answers = new Map<string, (readonly string[])[]>();

  /** The last answer is given again and again; without one, nothing is answered. */
  set(name: string, ...answers: (readonly string[])[]): void {
    this.#answers.set(name, answers);
  }

  async resolve(name: string): Promise<ResolvedName> {
    this.names.push(name);
    const answers = this.#answers.get(name);
    if (answers === undefined) throw new Error(`The test has no answer for ${name}.`);
    const addresses = answers.length > 1 ? answers.shift() : answers[0];
    return addresses === undefined ? new Promise(() => undefined) : { addresses };
  }
}

/** The way to other sites, with all that it does written down. */
export class TestSites {
  readonly resolver = new ScriptedResolver();
  /** Addresses that were dialled, in order. */
  readonly dialled: string[] = [];
  readonly outcomes: Outcome[] = [];
  readonly #opened: Opened;

  /** Names are resolved by `resolver`, unless the settings name DNS servers. */
  constructor(settings: Partial<SiteSettings> = {}, limits: SiteDoubles['limits'] = {}) {
    this.#opened = openSites(
      { ...external, version: '0', maxWaitMs: 5_000, ...settings },
      (outcome) => this.outcomes.push(outcome),
      {
        limits,
        ...(settings.dnsServers === undefined && { resolver: this.resolver }),
        onDial: (address) => this.dialled.push(address),
      },
    );
  }

  open(url: string, options: Partial<Parameters<Open>[1]> = {}): ReturnType<Open> {
    const { signal } = new AbortController();
    return this.#opened.source.open(url, { signal, isBuffered: true, ...options });
  }

  /** @returns why a fetch failed; `undefined` where it did not */
  async failureOf(url: string) {
    try {
      const response = await this.open(url);
      if (response.body instanceof Readable) response.body.destroy();
      return undefined;
    } catch (error) {
      return error as { readonly cause?: { readonly details: SiteFailure } };
    }
  }
}
