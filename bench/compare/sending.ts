import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fetchOk, startService } from '../harness/service.ts';
import type { Contest, Contestant, Requirement } from './contest.ts';
import { PICKED } from './originals.ts';
import { startOwn } from './renderers.ts';
import { PICKER_CLIENTS } from './renders.ts';

const HIT_CLIENTS = 16;

/** Headers that Node's HTTP server adds by itself. */
const OF_CONNECTION = new Set(['connection', 'date', 'keep-alive', 'transfer-encoding']);

/** Beginning of a film (ISO/IEC 14496-12, a box `ftyp`), since Darkroom sniffs the type of what it sends. */
const FILM_HEAD = Buffer.from('\0\0\0\x18ftypisom\0\0\x02\0isommp41', 'latin1');
const FILM_KEY = 'attachments/1/2/film.mp4';

const besideFastify = (kind: Requirement['kind'], atLeast: number): Requirement => ({
  kind,
  to: 'bare Fastify',
  atLeast,
  reason: 'Darkroom looks up each hit, checks that it is current, and counts it',
});

/** Hits: the first photograph, in a width that gives about so many bytes. */
const hitContests = [
  { name: 'hits of 5 kB', widthPx: 160, atLeast: 0.7 },
  { name: 'hits of 100 kB', widthPx: 900, atLeast: 0.85 },
].map(
  ({ name, widthPx, atLeast }): Contest => ({
    name,
    requirements: [besideFastify('gate', atLeast)],
    prepare: async ({ originals }) => {
      const photos = await originals.list('photos');
      const photo = photos.find(({ path }) => path.endsWith('jpeg'));
      const target = `/${photo?.path}?width=${widthPx}&quality=high`;
      const { bytes, contestants } = await createHitContestants(originals.folder, [target]);
      return {
        note: `One response of ${bytes} bytes, requested by ${HIT_CLIENTS} clients again and again. Fastify and \`node:http\` send a buffer of that size with the same headers.`,
        clients: HIT_CLIENTS,
        isRepeated: true,
        contestants,
      };
    },
  }),
);

const warmPicker: Contest = {
  name: 'picker, warm',
  requirements: [besideFastify('aim', 0.9), besideFastify('gate', 0.55)],
  prepare: async ({ originals }) => {
    const targets = (await originals.list('picker')).slice(0, PICKED).map((it) => it.darkroomPath);
    const { bytes, contestants } = await createHitContestants(originals.folder, targets);
    return {
      note: `The ${PICKED} stills of a picker, requested by ${PICKER_CLIENTS} clients again and again. Fastify and \`node:http\` send one buffer of ${bytes} bytes with the same headers.`,
      clients: PICKER_CLIENTS,
      isRepeated: true,
      contestants,
    };
  },
};

/** Creates Darkroom with these targets in memory, and servers that send a buffer like the first of them. */
async function createHitContestants(folder: string, paths: readonly string[]) {
  const darkroom = createSender('Darkroom', () => startCaching(folder), paths);
  const { origin, stop } = await darkroom.start();
  const { body, headers } = await fetchOk(origin, paths[0] ?? '/')
    .then(() => fetchOk(origin, paths[0] ?? '/')) // now it is a hit
    .finally(stop);
  const fields = Object.fromEntries([...headers].filter(([name]) => !OF_CONNECTION.has(name)));
  const options = [String(body.length), JSON.stringify(fields)] as const;
  return {
    bytes: body.length,
    contestants: [
      darkroom,
      createSender('bare Fastify', () => startOwn('fastify', ...options), ['/']),
      createSender('bare node:http', () => startOwn('node-http', ...options), ['/']),
    ],
  };
}

/** An attachment without parameters. */
const passthrough: Contest = {
  name: 'passthrough of 500 MiB',
  requirements: [{ kind: 'gate', to: 'node:http, direct', atLeast: 0.9 }],
  prepare: async ({ originals: { folder } }) => {
    const film = Buffer.alloc(500 * 2 ** 20, 7);
    FILM_HEAD.copy(film);
    await mkdir(dirname(join(folder, FILM_KEY)), { recursive: true });
    await writeFile(join(folder, FILM_KEY), film);
    return {
      note: 'A file in the page cache, fetched by 2 clients again and again, which discard what they read. `node:http, direct` streams it by `createReadStream`.',
      clients: 2,
      isRepeated: true,
      contestants: [
        createSender('Darkroom', () => startCaching(folder), [`/${FILM_KEY}`]),
        createSender('node:http, direct', () => startOwn('folder', folder), [`/any/${FILM_KEY}`]),
      ],
    };
  },
};

export const sendingContests = [warmPicker, ...hitContests, passthrough];

const startCaching = (folder: string) =>
  startService('compare-darkroom-caching', { STORAGE_DIR: folder });

/** Creates a contestant that sends what it has; the check puts all paths into its cache. */
function createSender(
  name: string,
  start: Contestant['start'],
  paths: readonly string[],
): Contestant {
  const check = async (origin: string): Promise<void> => {
    for (const path of paths) await fetchOk(origin, path);
  };
  return { name, start, paths, check };
}
