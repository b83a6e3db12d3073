import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { formatExternalPath } from '../../src/contract/signing/external-path.ts';
import { SigningKeys } from '../../src/contract/signing/signing-keys.ts';
import type { Originals, Rendering } from '../harness/originals.ts';
import { bucketSettings, fetchOk, startOwn, startService } from '../harness/service.ts';
import type { Contest } from './contest.ts';
import {
  COLD,
  createRenderer,
  createSender,
  darkroom,
  type Renderer,
  renderers,
} from './contestants.ts';

/** Enough clients to keep every core busy. */
const RENDER_CLIENTS = 8;
const HIT_CLIENTS = 16;

/** Number of stills in a client's emoji picker, and of clients that open their pickers at the same time. */
const PICKED = 300;
const PICKER_CLIENTS = 64;

/** Number of clients that request media of another site: Darkroom's maximum of connections to one host. */
const SITE_CLIENTS = 2;
const SITE_LATENCY_MS = 20;
const SITE_KEY = 'a-key-that-signs-in-benchmarks-alone';

/** Headers that Node's HTTP server adds. */
const OF_CONNECTION = new Set(['connection', 'date', 'keep-alive', 'transfer-encoding']);

/** Start of a video (ISO/IEC 14496-12, a box `ftyp`), because Darkroom detects the type from the content. */
const FILM_HEAD = Buffer.from('\0\0\0\x18ftypisom\0\0\x02\0isommp41', 'latin1');
const FILM_KEY = 'attachments/1/2/film.mp4';
const FILM_BYTES = 500 * 2 ** 20;

type ListRenderings = (originals: Originals) => Promise<readonly Rendering[]>;

/** Lists all contests; `peers` are rendering servers in addition to the standard ones. */
export function createContests(peers: readonly Renderer[]): readonly Contest[] {
  const cold = (
    name: string,
    note: string,
    gates: Contest['gates'],
    list: ListRenderings,
    clients = RENDER_CLIENTS,
  ): Contest => ({
    ...{ name, gates, clients, isRepeated: false },
    note: `Every response is rendered: no caches, and no rendering is requested twice. ${note}`,
    enter: async (stage) => {
      const renderings = await list(stage.originals);
      const isAnimated = renderings.some((rendering) => rendering.isAnimated);
      return [...renderers, ...peers]
        .filter(({ isForStillsOnly = false }) => !(isForStillsOnly && isAnimated))
        .map((renderer) => createRenderer(renderer, renderings, stage));
    },
  });
  const photographs = (format: 'jpeg' | 'png' | 'webp', gates: Contest['gates']): Contest =>
    cold(
      `${format} photographs`,
      `Photographs of 2 to 4 megapixels, as ${format.toUpperCase()}, to widths of 480 to 640 as WebP.`,
      gates,
      async (originals) =>
        (await originals.list('photos')).filter(({ path }) => path.endsWith(format)),
    );
  return [
    photographs('jpeg', { 'raw sharp': 0.82, IPX: 0.75 }),
    photographs('png', { 'raw sharp': 0.7, IPX: 0.7 }),
    photographs('webp', { 'raw sharp': 0.86, IPX: 0.6 }),
    cold(
      'avatars',
      'Squares of 256 to 1024 px, as JPEG, PNG and WebP, to 16 to 256 px as WebP and PNG.',
      { 'raw sharp': 0.88 },
      (originals) => originals.list('avatars'),
    ),
    cold(
      'emojis',
      'Animations of 96 and 128 px with 12 and 24 frames, as GIF and WebP, to 20 to 80 px as both.',
      { 'raw sharp': 4, IPX: 4 },
      (originals) => originals.list('emojis'),
    ),
    cold(
      'picker, cold',
      'Stills of the corpus and the samples, drawings and photographs, to 48 px as WebP; raw sharp encodes each once, lossy.',
      { 'raw sharp': 0.7 },
      (originals) => originals.list('picker'),
      PICKER_CLIENTS,
    ),
    hits(
      'picker, warm',
      `The ${PICKED} stills of a picker; Fastify sends one of them.`,
      0.55,
      async (originals) => (await originals.list('picker')).slice(0, PICKED),
      PICKER_CLIENTS,
    ),
    hits('hits of 5 kB', 'A photograph of 160 px.', 0.7, listPhotograph(160)),
    hits('hits of 100 kB', 'A photograph of 900 px.', 0.85, listPhotograph(900)),
    passthrough,
    anotherSite,
  ];
}

const listPhotograph =
  (widthPx: number): ListRenderings =>
  async (originals) => {
    const photos = await originals.list('photos');
    return photos
      .filter(({ path }) => path.endsWith('jpeg'))
      .slice(0, 1)
      .map((it) => ({ ...it, darkroomPath: `/${it.path}?width=${widthPx}&quality=high` }));
  };

const startCaching = (directory: string) =>
  startService('compare-darkroom-caching', { STORAGE_DIR: directory });

/** Creates a contest of responses in memory against Fastify, which sends a buffer with the same headers. */
function hits(
  name: string,
  note: string,
  gate: number,
  list: ListRenderings,
  clients = HIT_CLIENTS,
): Contest {
  return {
    ...{ name, clients, isRepeated: true, gates: { 'bare Fastify': gate } },
    note: `${note} All responses are hits; Fastify sends a buffer with the same headers.`,
    enter: async ({ originals }) => {
      const { directory } = originals;
      const paths = (await list(originals)).map(({ darkroomPath }) => darkroomPath);
      const sender = createSender('Darkroom', () => startCaching(directory), paths);
      const { origin, stop } = await sender.start();
      const { body, headers } = await fetchOk(origin, paths[0] ?? '/')
        .then(() => fetchOk(origin, paths[0] ?? '/')) // the next request is a hit
        .finally(stop);
      const fields = Object.fromEntries([...headers].filter(([key]) => !OF_CONNECTION.has(key)));
      const startFastify = () => startOwn('fastify', String(body.length), JSON.stringify(fields));
      return [sender, createSender('bare Fastify', startFastify, ['/'])];
    },
  };
}

/** An attachment without parameters. */
const passthrough: Contest = {
  name: 'passthrough of 500 MiB',
  note: 'A file in the page cache, whose bytes the clients discard. `node:http, direct` streams it by `createReadStream`.',
  clients: 2,
  isRepeated: true,
  gates: { 'node:http, direct': 0.9 },
  enter: async ({ originals: { directory } }) => {
    const film = Buffer.alloc(FILM_BYTES, 7);
    FILM_HEAD.copy(film);
    await mkdir(dirname(join(directory, FILM_KEY)), { recursive: true });
    await writeFile(join(directory, FILM_KEY), film);
    return [
      createSender('Darkroom', () => startCaching(directory), [`/${FILM_KEY}`]),
      createSender('node:http, direct', () => startOwn('directory', directory), [
        `/any/${FILM_KEY}`,
      ]),
    ];
  },
};

/** Cold renders of external media, compared with the same photographs in a bucket with the same latency. */
const anotherSite: Contest = {
  name: 'photos of another site',
  note: `Every response is fetched and rendered, as in the contests of photographs, from a server that responds after ${SITE_LATENCY_MS} ms: another site to one contestant, a bucket to the other one.`,
  clients: SITE_CLIENTS,
  isRepeated: false,
  gates: { 'Darkroom, S3': 0.91 },
  enter: async (stage) => {
    const renderings = await stage.originals.list('photos');
    const site = await startOwn('directory', stage.originals.directory, String(SITE_LATENCY_MS));
    stage.helpers.push(site);
    const keys = new SigningKeys([SITE_KEY]);
    const fromSite: Renderer = {
      name: 'Darkroom, another site',
      start: (directory) =>
        startService('compare-darkroom-external', {
          STORAGE_DIR: directory,
          EXTERNAL_SIGNING_KEYS: SITE_KEY,
          EXTERNAL_PORTS: new URL(site.origin).port,
          EXTERNAL_ALLOWED_NETWORKS: '127.0.0.1/32',
          ...COLD,
        }),
      targetOf: ({ path, darkroomPath }) => {
        const [, query] = darkroomPath.split('?');
        return `${formatExternalPath(`${site.origin}/originals/${path}`, keys)}?${query}`;
      },
    };
    const fromBucket: Renderer = {
      ...darkroom,
      name: 'Darkroom, S3',
      start: () =>
        startService('compare-darkroom-bucket', { ...bucketSettings(site.origin), ...COLD }),
    };
    return [fromSite, fromBucket].map((renderer) => createRenderer(renderer, renderings, stage));
  },
};
