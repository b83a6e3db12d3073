import { type FastifyInstance, fastify } from 'fastify';
import { afterEach, describe, expect, it } from 'vitest';
import type { ExplorerFile } from '../../../src/explorer/explorer-files.ts';
import { ExplorerHandler } from '../../../src/http/explorer/explorer-handler.ts';
import { BufferPieces, PIECE_BYTES } from '../../../src/http/media/buffer-chunks.ts';
import { OriginalsCatalogue } from '../../../src/pipeline/originals/catalogue.ts';
import type { ListedOriginal, OriginListing } from '../../../src/pipeline/ports.ts';
import { FakeClock } from '../../support/test-app.ts';

const LIST = '/explorer/originals.json';

/** A storage with one emoji; counts how often it is looked for. */
class CountingListing implements OriginListing {
  walks = 0;

  async list(prefix: string, visit: (original: ListedOriginal) => boolean): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    if (prefix !== 'emojis/') return;
    this.walks += 1;
    visit({ key: 'emojis/1', sizeBytes: this.walks });
  }
}

const fileOf = (body: Buffer): ExplorerFile => ({ mimeType: 'text/javascript', body });
const large = Buffer.alloc(2 * PIECE_BYTES + 1, 'darkroom');
const small = large.subarray(0, PIECE_BYTES);

let server: FastifyInstance;
afterEach(() => server.close());

/** The handler alone behind a server; keeps what is sent. */
function serve() {
  const listing = new CountingListing();
  const clock = new FakeClock();
  const payloads: unknown[] = [];
  const handler = new ExplorerHandler({
    files: new Map([
      ['index.html', fileOf(Buffer.from('<!doctype html>'))],
      ['large.js', fileOf(large)],
      ['small.js', fileOf(small)],
    ]),
    catalogue: new OriginalsCatalogue(listing),
    defaultAvatars: [],
    clock,
  });
  server = fastify({ exposeHeadRoutes: false });
  server.addHook('onSend', async (_request, _reply, payload) => {
    payloads.push(payload);
  });
  server.route({
    method: ['GET', 'HEAD'],
    url: '/*',
    handler: (request, reply) => handler.handle(request, reply),
  });
  return { listing, clock, payloads };
}

describe('the list of originals', () => {
  it('is made once for all who ask meanwhile, and for who asks in the next two seconds', async () => {
    const { listing, clock, payloads } = serve();
    await Promise.all(Array.from({ length: 50 }, () => server.inject(LIST)));
    expect(listing.walks).toBe(1);
    expect(payloads).toHaveLength(50);
    expect(new Set(payloads).size).toBe(1); // the same buffer, fifty times

    clock.advance(1_999);
    const head = await server.inject({ method: 'HEAD', url: LIST });
    expect(head.statusCode).toBe(200);
    expect((await server.inject(`${LIST}?anew`)).statusCode).toBe(200);
    expect(listing.walks).toBe(1);

    clock.advance(1);
    await server.inject({ method: 'HEAD', url: LIST });
    await server.inject(LIST);
    expect(listing.walks).toBe(2);
  });
});

describe('a file of the page', () => {
  it('goes out in pieces where it is large, as other bodies do', async () => {
    const { payloads } = serve();
    for (const [name, body] of Object.entries({ 'large.js': large, 'small.js': small })) {
      const url = `/explorer/${name}`;
      const get = await server.inject(url);
      expect(get.rawPayload.equals(body), name).toBe(true);
      const head = await server.inject({ method: 'HEAD', url });
      for (const { headers } of [get, head]) {
        expect(headers['content-length'], name).toBe(String(body.length));
      }
      expect(head.rawPayload).toHaveLength(0);
    }
    expect(payloads.map((each) => each instanceof BufferPieces)).toEqual([
      ...[true, false], // GET and HEAD of the large one
      ...[false, false],
    ]);
  });
});
