import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { startService } from '../../harness/service.ts';
import type { Contest, Stage, Workload } from '../contest.ts';
import { startOwn } from '../contestants.ts';
import { missingNginx, startStaticNginx } from '../nginx.ts';
import { holdRepeated } from './repeated.ts';

/** A file that is passed on as it is, and by how many at a time it is fetched. */
interface Size {
  readonly title: string;
  readonly bytes: number;
  readonly clients: number;
}

const SIZES: readonly Size[] = [
  { title: '1 MB', bytes: 1_000_000, clients: 8 },
  { title: '500 MiB', bytes: 500 * 2 ** 20, clients: 2 },
];

const MEASURES = [
  'mebibytesPerSecond',
  'p50Ms',
  'p99Ms',
  'cpuSecondsPerGibibyte',
  'peakBytes',
  'responses',
] as const;

const KEY = 'attachments/1/2/film.mp4';

/** How a film begins (ISO/IEC 14496-12, a box `ftyp`), since Darkroom looks at what it sends. */
const FILM_HEAD = Buffer.from('\0\0\0\x18ftypisom\0\0\x02\0isommp41', 'latin1');

/** Attachments without parameters, from a folder, beside reading it. */
export function passthroughWorkloads(): readonly Workload[] {
  return SIZES.map((size): Workload => {
    const name = `passthrough of ${size.title}`;
    // What one response costs counts in small ones, and is not an aim.
    const aim = { of: 'Darkroom', to: 'node:http, direct', atLeast: 0.9 };
    const aims = size.bytes > 2 ** 20 ? [aim] : [];
    return { name, aims, hold: (stage) => holdFolder(stage, name, size) };
  });
}

function createFilm(bytes: number): Buffer {
  const film = Buffer.alloc(bytes, 7);
  FILM_HEAD.copy(film);
  return film;
}

async function holdFolder(stage: Stage, name: string, { bytes, clients }: Size): Promise<Contest> {
  const folder = await mkdtemp(join(tmpdir(), 'darkroom-compare-files-'));
  try {
    const file = join(folder, KEY);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, createFilm(bytes));
    const environment = { STORAGE_DIR: folder, EXPLORER: 'off' };
    const start = () => startService('compare-darkroom-files', environment);
    const senders = [
      { name: 'Darkroom', target: `/${KEY}`, start },
      {
        name: 'node:http, direct',
        target: `/${KEY}`,
        start: () => startOwn('folder-server', folder),
      },
      {
        name: 'nginx static',
        target: `/${KEY}`,
        missing: missingNginx,
        start: () => startStaticNginx(folder),
      },
    ];
    const note = `A file from the page cache, fetched by ${clients} clients again and again, who read and discard. Directly, it is streamed by \`createReadStream\` behind \`node:http\`; nginx has the kernel send it (sendfile), on all cores.`;
    return await holdRepeated(stage, { name, note, clients, measures: MEASURES, senders, folder });
  } finally {
    await rm(folder, { recursive: true });
  }
}
