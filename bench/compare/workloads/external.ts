import { formatExternalPath } from '../../../src/contract/signing/external-path.ts';
import { SigningKeys } from '../../../src/contract/signing/signing-keys.ts';
import { type Service, startService } from '../../harness/service.ts';
import type { Workload } from '../contest.ts';
import { COLD, type Contestant, darkroom, startOwn } from '../contestants.ts';
import { competeInRenders } from './renders.ts';

/** How far away both are, in milliseconds. */
const LATENCY_MS = 20;

/** No more than may be connected to one host at once. */
const CLIENTS = 2;

const KEY = 'a-key-that-signs-in-benchmarks-alone';

/** Cold renders of external media beside those of the same photographs in a bucket, at the same latency. */
export const externalWorkload: Workload = {
  name: 'photos of another site',
  aims: [{ of: 'Darkroom, another site', to: 'Darkroom, S3', atLeast: 0.91 }],
  decidedBy: 'p50Ms',
  hold: async (stage) => {
    const { folder, photos: renderings } = await stage.originals();
    const bucket = await startOwn('folder', folder, String(LATENCY_MS));
    try {
      const contest = externalWorkload.name;
      const plan = { contest, folder, renderings, clients: CLIENTS, isLikenessWanted: false };
      const contestants = [fromSite(bucket), fromBucket(bucket)];
      return {
        note: `Every response is fetched and rendered: no caches, and nothing is asked for twice. Photographs of 2 to 4 megapixels, to a width of 512 in their own format, from a server that is ${LATENCY_MS} ms away; it is a bucket to one, and another site to the other. ${CLIENTS} clients.`,
        entries: await competeInRenders(stage, contestants, plan),
      };
    } finally {
      await bucket.stop();
    }
  },
};

function fromSite({ origin }: Service): Contestant {
  const keys = new SigningKeys([KEY]);
  return {
    ...darkroom,
    name: 'Darkroom, another site',
    start: (folder) =>
      startService('compare-darkroom-external', {
        STORAGE_DIR: folder,
        EXTERNAL_SIGNING_KEYS: KEY,
        EXTERNAL_PORTS: new URL(origin).port,
        EXTERNAL_ALLOWED_NETWORKS: '127.0.0.1/32',
        ...COLD,
      }),
    targetOf: ({ path, darkroomPath }) => {
      const [, query] = darkroomPath.split('?');
      return `${formatExternalPath(`${origin}/originals/${path}`, keys)}?${query}`;
    },
  };
}

function fromBucket({ origin }: Service): Contestant {
  return {
    ...darkroom,
    name: 'Darkroom, S3',
    start: () =>
      startService('compare-darkroom-bucket', {
        STORAGE: 's3',
        S3_BUCKET: 'originals',
        S3_ENDPOINT: origin,
        AWS_ACCESS_KEY_ID: 'anybody',
        AWS_SECRET_ACCESS_KEY: 'whatever',
        AWS_EC2_METADATA_DISABLED: 'true',
        ...COLD,
      }),
  };
}
