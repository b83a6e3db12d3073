import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { CreateBucketCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { startCephRgw } from '../../../test/support/ceph-rgw.ts';
import { startService } from '../../harness/service.ts';
import { type Contest, holdContest, type Player, type Stage, type Workload } from '../contest.ts';
import { type RunningServer, startOwn } from '../contestants.ts';
import { missingNginx, startStaticNginx } from '../nginx.ts';
import { playLoad } from '../turns.ts';

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
const BUCKET = 'originals';

/** How a film begins (ISO/IEC 14496-12, a box `ftyp`), since Darkroom looks at what it sends. */
const FILM_HEAD = Buffer.from('\0\0\0\x18ftypisom\0\0\x02\0isommp41', 'latin1');

/** Where Debian has them. */
const CEPH = ['ceph-mon', 'ceph-osd', 'radosgw', 'ceph'].map((name) => `/usr/bin/${name}`);

/** A server that sends the file. */
interface Sender {
  readonly name: string;
  readonly target: string;
  readonly start: () => Promise<RunningServer>;
}

/** Attachments without parameters, from a folder and from S3, beside reading where they come from. */
export function passthroughWorkloads(): readonly Workload[] {
  return SIZES.flatMap((size): Workload[] => {
    // What one response costs counts in small ones, and is not an aim.
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
    const target = `/${KEY}`;
    const startDarkroom = () =>
      startService('compare-darkroom-files', { STORAGE_DIR: folder, EXPLORER: 'off' });
    const startDirect = () => startOwn('bucket-server', folder, '0');
    const senders: Sender[] = [
      { name: 'Darkroom', target, start: startDarkroom },
      { name: 'node:http, direct', target: `/bucket/${KEY}`, start: startDirect },
    ];
    const missing = missingNginx();
    if (missing !== undefined) stage.noteAbsence(name, 'nginx static', missing);
    else senders.push({ name: 'nginx static', target, start: () => startStaticNginx(folder) });
    const note = `A file from the page cache, fetched by ${size.clients} clients again and again, who read and discard. Directly, it is streamed by \`createReadStream\` behind \`node:http\`; nginx has the kernel send it (sendfile), on all cores.`;
    return await hold(stage, name, note, size, senders);
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function holdS3(stage: Stage, name: string, size: Size): Promise<Contest | undefined> {
  if (!CEPH.every((program) => existsSync(program))) {
    const why = 'needs a Ceph RGW (Debian: ceph-mon ceph-osd ceph-common radosgw)';
    stage.noteAbsence(name, 'all', why);
    return undefined;
  }
  const { endpoint, accessKeyId, secretAccessKey, stop } = await startCephRgw();
  try {
    const credentials = { accessKeyId, secretAccessKey };
    await putObject(endpoint, credentials, createFilm(size.bytes));
    const environment = {
      STORAGE: 's3',
      S3_BUCKET: BUCKET,
      S3_ENDPOINT: endpoint,
      AWS_ACCESS_KEY_ID: accessKeyId,
      AWS_SECRET_ACCESS_KEY: secretAccessKey,
      AWS_EC2_METADATA_DISABLED: 'true',
    };
    const senders: Sender[] = [
      {
        name: 'Darkroom',
        target: `/${KEY}`,
        start: () => startService('compare-darkroom-s3', environment),
      },
      {
        name: 'RGW, direct',
        target: `/${BUCKET}/${KEY}`,
        start: async () => ({ origin: endpoint, pid: undefined, stop: async () => undefined }),
      },
    ];
    const note = `The same from a Ceph RGW on this machine, which keeps it in memory; directly, it is a plain GET of a public object. RGW, its OSD, Darkroom and the clients share the cores: what Darkroom uses, the others lack.`;
    return await hold(stage, name, note, size, senders);
  } finally {
    await stop();
  }
}

/** Puts an object that is public into a new bucket. */
async function putObject(
  endpoint: string,
  credentials: { readonly accessKeyId: string; readonly secretAccessKey: string },
  body: Buffer,
): Promise<void> {
  const client = new S3Client({
    endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials,
    requestChecksumCalculation: 'WHEN_REQUIRED',
  });
  await client.send(new CreateBucketCommand({ Bucket: BUCKET }));
  const object = { Bucket: BUCKET, Key: KEY, Body: body, ACL: 'public-read' } as const;
  await client.send(new PutObjectCommand(object));
  client.destroy();
}

async function hold(
  stage: Stage,
  name: string,
  note: string,
  { bytes, clients }: Size,
  senders: readonly Sender[],
): Promise<Contest> {
  const players: Player[] = [];
  for (const sender of senders) {
    const server = await sender.start();
    const load = { kind: 'closed', clients, paths: [sender.target], isRepeated: true } as const;
    const play = (durationMs: number) =>
      playLoad(stage, sender.name, server, { ...load, durationMs });
    players.push({
      name: sender.name,
      play: async () => {
        await play(WARM_UP_MS);
        const { turn, responses, usage } = await play(stage.turnMs);
        const sentBytes = responses.length * bytes;
        const { cpuSeconds } = usage;
        return {
          ...turn,
          mebibytesPerSecond: sentBytes / 2 ** 20 / (turn.seconds ?? 1),
          ...(cpuSeconds !== undefined && {
            cpuSecondsPerGibibyte: (cpuSeconds * 2 ** 30) / sentBytes,
          }),
        };
      },
      leave: () => server.stop(),
    });
  }
  const measures = [
    'mebibytesPerSecond',
    'p50Ms',
    'p99Ms',
    'cpuSecondsPerGibibyte',
    'peakBytes',
    'responses',
  ] as const;
  return holdContest({ name, note, measures, rounds: stage.rounds, hasPractice: false }, players);
}
