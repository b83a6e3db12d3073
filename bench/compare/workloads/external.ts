import { formatExternalPath } from '../../../src/contract/signing/external-path.ts';
import { SigningKeys } from '../../../src/contract/signing/signing-keys.ts';
import { type Service, startService } from '../../harness/service.ts';
import { type Contest, holdContest, type Player, type Stage, type Workload } from '../contest.ts';
import { type Contestant, PATIENT, startOwn } from '../contestants.ts';
import { createTrial, lineUp } from '../line-up.ts';
import { playLoad } from '../turns.ts';

const NAME = 'photos of another site';

/** How far away both are, in milliseconds. */
const LATENCY_MS = 20;

/** No more than may be connected to one host at once. */
const CLIENTS = 2;

const KEY = 'a-key-that-signs-in-benchmarks-alone';

const COLD = {
  CACHE_MEMORY_BYTES: '0',
  CACHE_ORIGINALS_BYTES: '0',
  ...PATIENT,
};

/** Cold renders of external media beside those of the same photographs in a bucket, at the same latency. */
export function externalWorkload(): Workload {
  return {
    name: NAME,
    aims: [{ of: 'Darkroom, another site', to: 'Darkroom, S3', atLeast: 0.91 }],
    hold,
  };
}

async function hold(stage: Stage): Promise<Contest> {
  const { rounds, turnMs: durationMs } = stage;
  const { folder, photos } = await stage.originals();
  const bucket = await startOwn('bucket-server', folder, String(LATENCY_MS));
  try {
    const share = Math.floor(photos.length / (rounds + 1));
    const contestants = [fromSite(bucket), fromBucket(bucket)];
    const starters = await lineUp(stage, NAME, contestants, folder, createTrial(photos));
    const players = starters.map(
      ({ contestant, server }): Player => ({
        name: contestant.name,
        play: async (round) => {
          const ofRound = photos.slice(round * share, (round + 1) * share);
          const paths = ofRound.map(contestant.targetOf);
          const load = { kind: 'closed', clients: CLIENTS, paths, durationMs } as const;
          return await playLoad(stage, contestant.name, server, load);
        },
        leave: () => server.stop(),
      }),
    );
    const note = `Every response is fetched and rendered: no caches, and nothing is asked for twice. Photographs of 2 to 4 megapixels, to a width of 512 in their own format, from a server that is ${LATENCY_MS} ms away; it is a bucket to one, and another site to the other. ${CLIENTS} clients.`;
    const measures = ['p50Ms', 'p99Ms', 'perSecond', 'cpuSecondsPer1000', 'responses'] as const;
    return await holdContest({ name: NAME, note, measures, rounds, hasPractice: true }, players);
  } finally {
    await bucket.stop();
  }
}

function fromSite({ origin }: Service): Contestant {
  const keys = new SigningKeys([KEY]);
  return {
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
    targetOf: ({ darkroomPath }) => darkroomPath,
  };
}
