import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { CreateBucketCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { type CephRgw, startCephRgw } from '../../../test/support/s3/ceph-rgw.ts';
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
const BUCKET = 'originals';

/** How a film begins (ISO/IEC 14496-12, a box `ftyp`), since Darkroom looks at what it sends. */
const FILM_HEAD = Buffer.from('\0\0\0\x18ftypisom\0\0\x02\0isommp41', 'latin1');

/** Where Debian has them. */
const CEPH = ['ceph-mon', 'ceph-osd', 'radosgw', 'ceph'].map((name) => `/usr/bin/${name}`);

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
        target: `/bucket/${KEY}`,
        start: () => startOwn('bucket-server', folder, '0'),
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

async function holdS3(
  stage: Stage,
  name: string,
  { bytes, clients }: Size,
): Promise<Contest | undefined> {
  if (!CEPH.every((program) => existsSync(program))) {
    const why = 'needs a Ceph RGW (Debian: ceph-mon ceph-osd ceph-common radosgw)';
    stage.noteAbsence(name, 'all', why);
    return undefined;
  }
  const rgw = await startCephRgw();
  const environment = {
    STORAGE: 's3',
    S3_BUCKET: BUCKET,
    S3_ENDPOINT: rgw.endpoint,
    AWS_ACCESS_KEY_ID: rgw.accessKeyId,
    AWS_SECRET_ACCESS_KEY: rgw.secretAccessKey,
    AWS_EC2_METADATA_DISABLED: 'true',
  };
  try {
    await putObject(rgw, createFilm(bytes));
    const start = () => startService('compare-darkroom-s3', environment);
    const direct = { origin: rgw.endpoint, pid: undefined, stop: async () => undefined };
    const senders = [
      { name: 'Darkroom', target: `/${KEY}`, start },
      { name: 'RGW, direct', target: `/${BUCKET}/${KEY}`, start: async () => direct },
    ];
    const note = `The same from a Ceph RGW on this machine, which keeps it in memory; directly, it is a plain GET of a public object. RGW, its OSD, Darkroom and the clients share the cores: what Darkroom uses, the others lack.`;
    const request = { name, note, clients, measures: MEASURES, senders, folder: '' };
    return await holdRepeated(stage, request);
  } finally {
    await rgw.stop();
  }
}

/** Puts an object that is public into a new bucket. */
async function putObject(rgw: CephRgw, body: Buffer): Promise<void> {
  const { endpoint, accessKeyId, secretAccessKey } = rgw;
  const client = new S3Client({
    endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId, secretAccessKey },
    requestChecksumCalculation: 'WHEN_REQUIRED',
  });
  await client.send(new CreateBucketCommand({ Bucket: BUCKET }));
  const object = { Bucket: BUCKET, Key: KEY, Body: body, ACL: 'public-read' } as const;
  await client.send(new PutObjectCommand(object));
  client.destroy();
}
