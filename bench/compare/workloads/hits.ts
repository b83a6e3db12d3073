import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fetchOk } from '../../harness/service.ts';
import type { Stage, Workload } from '../contest.ts';
import { cachingDarkroom, startOwn } from '../contestants.ts';
import { missingNginx, startStaticNginx } from '../nginx.ts';
import { RESPONSE_MEASURES } from '../turns.ts';
import { holdRepeated, type Sender } from './repeated.ts';

const CLIENTS = 16;

/** Hits of about so many bytes: the first photograph at so many pixels. */
const HITS = [
  { name: 'hits of 5 kB', widthPx: 160 },
  { name: 'hits of 100 kB', widthPx: 900 },
] as const;

/** What Node's HTTP adds by itself. */
const OF_CONNECTION = new Set(['connection', 'date', 'keep-alive', 'transfer-encoding']);

const COUNTED = 'each hit is looked up, checked to be current, and counted';

/** A response that the service has at hand. */
interface Hit {
  readonly folder: string;
  readonly sender: Sender;
  readonly sizeBytes: number;
  /** Of the response, but for those of the connection. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Cache hits. */
export function hitWorkloads(): readonly Workload[] {
  return HITS.map(
    ({ name, widthPx }): Workload => ({
      name,
      aims: [{ of: 'Darkroom', to: 'bare Fastify', atLeast: 0.85, reason: COUNTED }],
      hold: async (stage) => {
        const { folder, sender, sizeBytes, headers } = await findHit(stage, widthPx);
        const scratch = await mkdtemp(join(tmpdir(), 'darkroom-compare-file-'));
        await writeFile(join(scratch, 'file'), Buffer.alloc(sizeBytes, 7));
        const senders = [sender, ...describePeers(sizeBytes, headers, scratch)];
        const note = `One response of ${sizeBytes} bytes, asked for by ${CLIENTS} clients again and again. Fastify and \`node:http\` send a buffer of that size with the same headers, nginx a file from the page cache; nginx may use all cores, the others' main process one.`;
        const request = { name, note, clients: CLIENTS, measures: RESPONSE_MEASURES, folder };
        return holdRepeated(stage, { ...request, senders }).finally(() =>
          rm(scratch, { recursive: true }),
        );
      },
    }),
  );
}

async function findHit(stage: Stage, widthPx: number): Promise<Hit> {
  const { folder, photos } = await stage.originals();
  const photo = photos.find(({ path }) => path.endsWith('jpeg'));
  const target = `/${photo?.path}?width=${widthPx}&quality=high`;
  const service = await cachingDarkroom.start(folder);
  await fetchOk(service.origin, target);
  // Now it is a hit.
  const { body, headers } = await fetchOk(service.origin, target);
  await service.stop();
  const sender = { name: 'Darkroom', start: cachingDarkroom.start, target };
  const fields = [...headers].filter(([name]) => !OF_CONNECTION.has(name));
  return { folder, sender, sizeBytes: body.length, headers: Object.fromEntries(fields) };
}

/** Servers that have nothing to look up: a body of so many bytes from memory, and a file as large. */
function describePeers(bytes: number, headers: Hit['headers'], folder: string): readonly Sender[] {
  const start = (kind: 'fastify' | 'http') => () =>
    startOwn('fixed-server', kind, String(bytes), JSON.stringify(headers));
  return [
    { name: 'bare Fastify', target: '/body', start: start('fastify') },
    { name: 'bare node:http', target: '/body', start: start('http') },
    {
      name: 'nginx static',
      target: '/file',
      missing: missingNginx,
      start: () => startStaticNginx(folder),
    },
  ];
}
