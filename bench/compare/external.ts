import { formatExternalPath } from '../../src/contract/signing/external-path.ts';
import { SigningKeys } from '../../src/contract/signing/signing-keys.ts';
import { startService } from '../harness/service.ts';
import type { Contest } from './contest.ts';
import { bucketSettings, COLD, darkroom, type Renderer, startOwn } from './renderers.ts';
import { createContestant } from './renders.ts';

/** Delay of each response of the site and of the bucket. */
const LATENCY_MS = 20;

/** Connections that Darkroom opens to one host at a time. */
const CLIENTS = 2;

const KEY = 'a-key-that-signs-in-benchmarks-alone';

/** Cold renders of external media beside those of the same photographs in a bucket with the same latency. */
export const externalContest: Contest = {
  name: 'photos of another site',
  requirements: [{ kind: 'gate', to: 'Darkroom, S3', atLeast: 0.91 }],
  prepare: async (stage) => {
    const { originals } = stage;
    const renderings = await originals.list('photos');
    const { origin, stop } = await startOwn('folder', originals.folder, String(LATENCY_MS));
    return {
      note: `Every response is fetched and rendered: no caches, and no rendering is requested twice. Photographs of 2 to 4 megapixels, to widths of 480 to 640 as WebP, from a server that responds after ${LATENCY_MS} ms: another site to one contestant, a bucket to the other one. ${CLIENTS} clients.`,
      clients: CLIENTS,
      isRepeated: false,
      contestants: [fromSite(origin), fromBucket(origin)].map((renderer) =>
        createContestant(renderer, renderings, stage),
      ),
      close: stop,
    };
  },
};

function fromSite(site: string): Renderer {
  const keys = new SigningKeys([KEY]);
  return {
    name: 'Darkroom, another site',
    start: (folder) =>
      startService('compare-darkroom-external', {
        STORAGE_DIR: folder,
        EXTERNAL_SIGNING_KEYS: KEY,
        EXTERNAL_PORTS: new URL(site).port,
        EXTERNAL_ALLOWED_NETWORKS: '127.0.0.1/32',
        ...COLD,
      }),
    targetOf: ({ path, darkroomPath }) => {
      const [, query] = darkroomPath.split('?');
      return `${formatExternalPath(`${site}/originals/${path}`, keys)}?${query}`;
    },
  };
}

function fromBucket(endpoint: string): Renderer {
  return {
    ...darkroom,
    name: 'Darkroom, S3',
    start: () => startService('compare-darkroom-bucket', { ...bucketSettings(endpoint), ...COLD }),
  };
}
