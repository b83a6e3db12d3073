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

const external = readConfig({ EXTERNAL_SIGNING_KEYS: SIGNING_KEY }).external ?? expect.fail();

type Opened = ReturnType<typeof openSites>;
type Open = Opened['source']['open'];
type Outcome = Parameters<Parameters<typeof openSites>[1]>[0];

/** Reason of a failed fetch, as logged. */
export interface SiteFailure {
  readonly reason: Exclude<Outcome, 'stopped'>;
  readonly host?: string;
  readonly address?: string;
}

/** A resolver with scripted responses. */
export class ScriptedResolver implements NameResolver {
  /** Resolved names, in order. */
  readonly names: string[] = [];
  readonly #answers = new Map<string, (readonly string[])[]>();

  /** Sets the responses for a name, in order; the last one repeats. Without any, queries hang. */
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

/** The client of other sites, with a record of its actions. */
export class TestSites {
  readonly resolver = new ScriptedResolver();
  /** Dialled addresses, in order. */
  readonly dialled: string[] = [];
  readonly outcomes: Outcome[] = [];
  readonly #opened: Opened;

  /** Uses `resolver`, unless the settings name DNS servers. */
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

  /** @returns the error of a fetch; `undefined` if it succeeds */
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
