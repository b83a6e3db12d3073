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

/** A response that the service has at hand. */
interface Hit {
  readonly folder: string;
  readonly sender: Sender;
  readonly sizeBytes: number;
  readonly etag: string;
}

/** Cache hits, and conditional requests for the smaller of them. */
export function hitWorkloads(): readonly Workload[] {
  const hits = HITS.map(
    ({ name, widthPx }): Workload => ({
      name,
      aims: [{ of: 'Darkroom', to: 'bare Fastify', atLeast: 0.85 }],
      hold: async (stage) => {
        const { folder, sender, sizeBytes } = await findHit(stage, widthPx);
        const scratch = await mkdtemp(join(tmpdir(), 'darkroom-compare-file-'));
        await writeFile(join(scratch, 'file'), Buffer.alloc(sizeBytes, 7));
        const senders = [sender, ...describePeers(sizeBytes, scratch)];
        const note = `One response of ${sizeBytes} bytes, asked for by ${CLIENTS} clients again and again. The others send a buffer, or a file from the page cache, of that size; nginx may use all cores, the others' main process one.`;
        const request = { name, note, clients: CLIENTS, measures: RESPONSE_MEASURES, folder };
        return holdRepeated(stage, { ...request, senders }).finally(() =>
          rm(scratch, { recursive: true }),
        );
      },
    }),
  );
  const name = 'conditional requests';
  const conditional: Workload = {
    name,
    aims: [{ of: 'a client that has it', to: 'Darkroom', atLeast: 1 }],
    hold: async (stage) => {
      const { folder, sender, sizeBytes, etag } = await findHit(stage, HITS[0].widthPx);
      const client = {
        name: 'a client that has it',
        header: `If-None-Match: ${etag}`,
        status: 304,
      };
      const note = `Darkroom alone: a hit of ${sizeBytes} bytes, and the same with the ETag of what the client has, which is a 304. ${CLIENTS} clients.`;
      const request = { name, note, clients: CLIENTS, measures: RESPONSE_MEASURES, folder };
      return holdRepeated(stage, { ...request, senders: [sender, { ...sender, ...client }] });
    },
  };
  return [...hits, conditional];
}

async function findHit(stage: Stage, widthPx: number): Promise<Hit> {
  const { folder, photos } = await stage.originals();
  const photo = photos.find(({ format }) => format === 'jpeg');
  const target = `/${photo?.path}?width=${widthPx}&quality=high`;
  const service = await cachingDarkroom.start(folder);
  const { body, headers } = await fetchOk(service.origin, target);
  await service.stop();
  const sender = { name: 'Darkroom', start: cachingDarkroom.start, target };
  return { folder, sender, sizeBytes: body.length, etag: headers.get('etag') ?? '' };
}

/** Servers that have nothing to look up: a body of so many bytes from memory, and a file as large. */
function describePeers(bytes: number, folder: string): readonly Sender[] {
  const start = (kind: 'fastify' | 'http') => () => startOwn('fixed-server', kind, String(bytes));
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
