import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fetchOk, startService } from '../../harness/service.ts';
import { compete, type Stage, type Workload } from '../contest.ts';
import { type Starter, startOwn } from '../contestants.ts';
import { PICKED } from '../originals.ts';
import { PICKER_CLIENTS } from './renders.ts';

/** A server that sends what is at hand. */
interface Sender extends Starter {
  readonly targets: readonly string[];
}

/** Hits of about so many bytes: the first photograph at so many pixels. */
const HITS = [
  { name: 'hits of 5 kB', widthPx: 160, atLeast: 0.7 },
  { name: 'hits of 100 kB', widthPx: 900, atLeast: 0.85 },
] as const;
const HIT_CLIENTS = 16;

/** What Node's HTTP adds by itself. */
const OF_CONNECTION = new Set(['connection', 'date', 'keep-alive', 'transfer-encoding']);

const COUNTED = 'each hit is looked up, checked to be current, and counted';

/** Files that are passed on as they are. What one response costs counts in small ones, and is not an aim. */
const PASSTHROUGHS = [
  { name: 'passthrough of 1 MB', bytes: 1_000_000, clients: 8, atLeast: [] },
  { name: 'passthrough of 500 MiB', bytes: 500 * 2 ** 20, clients: 2, atLeast: [0.9] },
] as const;

/** How a film begins (ISO/IEC 14496-12, a box `ftyp`), since Darkroom looks at what it sends. */
const FILM_HEAD = Buffer.from('\0\0\0\x18ftypisom\0\0\x02\0isommp41', 'latin1');
const FILM_KEY = 'attachments/1/2/film.mp4';

const darkroomSends = (...targets: readonly string[]): Sender => ({
  name: 'Darkroom',
  targets,
  start: (folder) => startService('compare-darkroom-caching', { STORAGE_DIR: folder }),
});

/** Cache hits. */
export const hitWorkloads = HITS.map(
  ({ name, widthPx, atLeast }): Workload => ({
    name,
    aims: [{ of: 'Darkroom', to: 'bare Fastify', atLeast, reason: COUNTED }],
    decidedBy: 'perSecond',
    hold: async (stage) => {
      const { folder, photos } = await stage.originals();
      const photo = photos.find(({ path }) => path.endsWith('jpeg'));
      const darkroom = darkroomSends(`/${photo?.path}?width=${widthPx}&quality=high`);
      const { body, fields } = await fetchHit(darkroom, folder);
      const options = [String(body.length), JSON.stringify(fields)] as const;
      const senders = [
        darkroom,
        { name: 'bare Fastify', targets: ['/'], start: () => startOwn('fastify', ...options) },
        { name: 'bare node:http', targets: ['/'], start: () => startOwn('node-http', ...options) },
      ];
      return {
        note: `One response of ${body.length} bytes, asked for by ${HIT_CLIENTS} clients again and again. Fastify and \`node:http\` send a buffer of that size with the same headers.`,
        entries: await competeInSending(stage, name, folder, senders, HIT_CLIENTS),
      };
    },
  }),
);

/** The stills of a picker, all of them at hand. */
export const warmPickerWorkload: Workload = {
  name: 'picker, warm',
  aims: [{ of: 'Darkroom', to: 'bare Fastify', atLeast: 0.9, reason: COUNTED }],
  decidedBy: 'perSecond',
  hold: async (stage) => {
    const { folder, picker } = await stage.originals();
    const darkroom = darkroomSends(...picker.slice(0, PICKED).map((it) => it.darkroomPath));
    const { body, fields } = await fetchHit(darkroom, folder);
    const options = [String(body.length), JSON.stringify(fields)] as const;
    const fastify = { name: 'bare Fastify', targets: ['/'] };
    const senders = [darkroom, { ...fastify, start: () => startOwn('fastify', ...options) }];
    return {
      note: `The ${PICKED} stills of a picker, asked for by ${PICKER_CLIENTS} clients again and again. Fastify sends one buffer of ${body.length} bytes with the same headers.`,
      entries: await competeInSending(stage, 'picker, warm', folder, senders, PICKER_CLIENTS),
    };
  },
};

/** Attachments without parameters, from a folder, beside reading it. */
export const passthroughWorkloads = PASSTHROUGHS.map(
  ({ name, bytes, clients, atLeast }): Workload => ({
    name,
    aims: atLeast.map((least) => ({ of: 'Darkroom', to: 'node:http, direct', atLeast: least })),
    decidedBy: 'perSecond',
    hold: async (stage) => {
      const { folder } = await stage.originals();
      const film = Buffer.alloc(bytes, 7);
      FILM_HEAD.copy(film);
      await mkdir(dirname(join(folder, FILM_KEY)), { recursive: true });
      await writeFile(join(folder, FILM_KEY), film);
      const senders = [
        darkroomSends(`/${FILM_KEY}`),
        {
          name: 'node:http, direct',
          targets: [`/folder/${FILM_KEY}`],
          start: (from: string) => startOwn('folder', from),
        },
      ];
      return {
        note: `A file from the page cache, fetched by ${clients} clients again and again, who read and discard. Directly, it is streamed by \`createReadStream\` behind \`node:http\`.`,
        entries: await competeInSending(stage, name, folder, senders, clients),
      };
    },
  }),
);

/** A response that the service has at hand, and its headers, but for those of the connection. */
async function fetchHit({ start, targets: [target = ''] }: Sender, folder: string) {
  const service = await start(folder);
  await fetchOk(service.origin, target);
  // Now it is a hit.
  const { body, headers } = await fetchOk(service.origin, target);
  await service.stop();
  const fields = Object.fromEntries([...headers].filter(([name]) => !OF_CONNECTION.has(name)));
  return { body, fields };
}

/** Has senders send the same again and again, in turn. */
function competeInSending(
  stage: Stage,
  contest: string,
  folder: string,
  senders: readonly Sender[],
  clients: number,
) {
  return compete(stage, senders, {
    contest,
    folder,
    tryOut: async ({ targets }, origin) => {
      for (const target of targets) await fetchOk(origin, target);
    },
    loadOf: ({ targets }) => ({ clients, paths: targets, isRepeated: true }),
  });
}
