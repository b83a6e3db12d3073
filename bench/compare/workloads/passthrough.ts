import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { startService } from '../../harness/service.ts';
import { missingCeph, startBucket } from '../bucket.ts';
import { type Contest, holdContest, type Player } from '../contest.ts';
import { keepingDarkroom, type RunningServer, startOwn } from '../contestants.ts';
import { askAgainAndAgain } from '../hit-load.ts';
import { missingNginx, startFolderNginx } from '../nginx.ts';
import { describeAnswers, measureServer, readServerCpuSeconds } from '../server-numbers.ts';
import type { Stage, Workload } from '../workload.ts';

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

/** Before each turn, so that the file has been read and the code compiled, in milliseconds. */
const WARM_UP_MS = 500;

const KEY = 'attachments/1/2/film.mp4';

/** How a film begins (ISO/IEC 14496-12, a box `ftyp`), since Darkroom looks at what it sends. */
const FILM_HEAD = Buffer.from('\0\0\0\x18ftypisom\0\0\x02\0isommp41', 'latin1');

/** Whoever sends the file; the first is Darkroom. */
interface Sender {
  readonly name: string;
  readonly target: string;
  readonly start: () => Promise<RunningServer>;
}

/** Attachments without parameters, from a folder and from S3, beside reading where they come from. */
export function passthroughWorkloads(): readonly Workload[] {
  return SIZES.flatMap((size): Workload[] => {
    // What one answer costs counts in small ones, and is not an aim.
    const aims = (to: string) =>
      size.bytes > 2 ** 20 ? [{ of: 'Darkroom', to, atLeast: 0.9 }] : [];
    const fromFolder = `passthrough of ${size.title}`;
    const fromS3 = `passthrough of ${size.title} from S3`;
    return [
      {
        name: fromFolder,
        aims: aims('node:http, direct'),
        hold: (stage) => holdFolder(stage, fromFolder, size),
      },
      { name: fromS3, aims: aims('RGW, direct'), hold: (stage) => holdS3(stage, fromS3, size) },
    ];
  });
}

function createFilm(bytes: number): Buffer {
  const film = Buffer.alloc(bytes, 7);
  FILM_HEAD.copy(film);
  return film;
}

async function holdFolder(stage: Stage, name: string, size: Size): Promise<Contest> {
  const folder = await mkdtemp(join(tmpdir(), 'darkroom-compare-files-'));
  try {
    const file = join(folder, KEY);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, createFilm(size.bytes));
    const senders: Sender[] = [
      { name: 'Darkroom', target: `/${KEY}`, start: async () => keepingDarkroom.start(folder) },
      {
        name: 'node:http, direct',
        target: `/${KEY}`,
        start: () => startOwn('file-server.js', 'compare-file-server', folder),
      },
    ];
    const missing = missingNginx();
    if (missing !== undefined) stage.excuse(name, 'nginx static', missing);
    else {
      const start = (): Promise<RunningServer> => startFolderNginx(folder);
      senders.push({ name: 'nginx static', target: `/${KEY}`, start });
    }
    const note = `A file from the page cache, fetched by ${size.clients} clients again and again, who read and discard. Directly, it is streamed by \`createReadStream\` behind \`node:http\`; nginx has the kernel send it (sendfile), on all cores.`;
    return await hold(stage, name, note, size, senders);
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function holdS3(stage: Stage, name: string, size: Size): Promise<Contest | undefined> {
  const missing = missingCeph();
  if (missing !== undefined) {
    stage.excuse(name, 'all', missing);
    return undefined;
  }
  const { settings, endpoint, bucket, stop } = await startBucket(KEY, createFilm(size.bytes));
  try {
    const senders: Sender[] = [
      {
        name: 'Darkroom',
        target: `/${KEY}`,
        start: () => startService(settings, 'bench-report/compare-darkroom-s3.log'),
      },
      {
        name: 'RGW, direct',
        target: `/${bucket}/${KEY}`,
        start: async () => ({ origin: endpoint, pid: undefined, stop: async () => undefined }),
      },
    ];
    const note = `The same from a Ceph RGW on this machine, which keeps it in memory; directly, it is a plain GET of a public object. RGW, its OSD, Darkroom and the clients share the cores: what Darkroom uses, the others lack.`;
    return await hold(stage, name, note, size, senders);
  } finally {
    await stop();
  }
}

async function hold(
  stage: Stage,
  name: string,
  note: string,
  size: Size,
  senders: readonly Sender[],
): Promise<Contest> {
  const players: Player[] = [];
  for (const sender of senders) players.push(enter(sender, await sender.start(), size, stage));
  const measures = [
    'mebibytesPerSecond',
    'p50Ms',
    'p99Ms',
    'cpuSecondsPerGibibyte',
    'peakBytes',
    'answers',
  ] as const;
  return holdContest({ name, note, measures, rounds: stage.rounds, hasPractice: false }, players);
}

function enter(
  { name, target }: Sender,
  server: RunningServer,
  { bytes, clients }: Size,
  { turnMs: durationMs }: Stage,
): Player {
  return {
    name,
    play: async () => {
      const head = `GET ${target} HTTP/1.1`;
      const load = { clients, durationMs, status: 200 };
      await askAgainAndAgain(server.origin, head, { ...load, durationMs: WARM_UP_MS });
      const before = readServerCpuSeconds(server);
      const { latenciesMs, seconds } = await askAgainAndAgain(server.origin, head, load);
      const used = measureServer(server, before);
      const sentBytes = latenciesMs.length * bytes;
      return {
        ...describeAnswers(server, before, latenciesMs, seconds),
        mebibytesPerSecond: sentBytes / 2 ** 20 / seconds,
        ...(used !== undefined && {
          cpuSecondsPerGibibyte: (used.cpuSeconds * 2 ** 30) / sentBytes,
        }),
      };
    },
    leave: () => server.stop(5_000),
  };
}
