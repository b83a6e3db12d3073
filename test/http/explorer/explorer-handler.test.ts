import { describe, expect, it } from 'vitest';
import type { ExplorerFile } from '../../../src/explorer/explorer-files.ts';
import type { Exchange } from '../../../src/http/exchange.ts';
import { ExplorerHandler } from '../../../src/http/explorer/explorer-handler.ts';
import type { ListedOriginal, OriginListing } from '../../../src/pipeline/ports.ts';
import { FakeClock } from '../../support/test-app.ts';

const LIST = '/explorer/originals.json';

/** A storage with one emoji; counts how often it is looked for. */
class CountingListing implements OriginListing {
  walks = 0;
  failure: Error | undefined;

  async list(prefix: string, visit: (original: ListedOriginal) => boolean): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    if (prefix !== 'emojis/') return;
    this.walks += 1;
    if (this.failure !== undefined) throw this.failure;
    visit({ key: 'emojis/1', sizeBytes: this.walks });
  }
}

const fileOf = (body: Buffer): ExplorerFile => ({ mimeType: 'text/html', body });

/** The handler alone; keeps the bodies that it sends. */
function serve() {
  const listing = new CountingListing();
  const clock = new FakeClock();
  const bodies: unknown[] = [];
  const handler = new ExplorerHandler({
    files: new Map([['index.html', fileOf(Buffer.from('<!doctype html>'))]]),
    listing,
    defaultAvatars: [],
    clock,
  });
  const ask = (target: string): Promise<void> =>
    handler.handle({
      target,
      respond: (_status: number, _fields: readonly string[], body: unknown) => bodies.push(body),
    } as unknown as Exchange);
  return { listing, clock, bodies, ask };
}

describe('the list of originals', () => {
  it('is made once for all who ask meanwhile or in the next two seconds', async () => {
    const { listing, clock, bodies, ask } = serve();
    await Promise.all(Array.from({ length: 50 }, () => ask(LIST)));
    expect(listing.walks).toBe(1);
    expect(bodies).toHaveLength(50);
    expect(new Set(bodies).size).toBe(1); // the same buffer, fifty times

    clock.advance(1_999);
    await ask(`${LIST}?anew`);
    expect(listing.walks).toBe(1);

    clock.advance(2);
    await ask(LIST);
    await ask(LIST);
    expect(listing.walks).toBe(2);
  });

  it('fails for those who wait for it, and for no one after them', async () => {
    const { listing, bodies, ask } = serve();
    listing.failure = new Error('no storage');
    const failures = await Promise.allSettled([ask(LIST), ask(LIST)]);
    expect(failures.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(listing.walks).toBe(1);
    listing.failure = undefined;
    await ask(LIST);
    expect(bodies).toHaveLength(1);
  });
});
