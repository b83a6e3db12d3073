import { Readable } from 'node:stream';
import type { Config } from '../../config/config.ts';
import { sniffContentType } from '../../pipeline/originals/content-sniff.ts';
import type { Origin } from '../../pipeline/ports.ts';
import { clampRange } from '../../storage/origin-object.ts';
import { formatErrorResponse, withOfflineApp } from '../offline-app.ts';
import { silentLog } from '../plain-log.ts';
import type { OriginalAddress } from './original-address.ts';

/**
 * Why the service would never serve a file as the original of an address: it is asked, with the file in
 * the place of all originals, for the least that it can be asked for, a small still.
 *
 * @returns what the API would say; `undefined` where it would serve it
 * @throws `signal.reason`
 */
export async function findServingFault(
  config: Config,
  { urlPath }: OriginalAddress,
  bytes: Buffer,
  signal: AbortSignal,
): Promise<string | undefined> {
  const parts = { log: silentLog, origin: createTrialOrigin(bytes) };
  return withOfflineApp(config, parts, signal, async (ask) => {
    const response = await ask(`${urlPath}?size=16`);
    if (response.status === 200) return undefined;
    const type = await sniffContentType(bytes);
    return `${await formatErrorResponse(response)} (It is ${type}.)`;
  });
}

function createTrialOrigin(bytes: Buffer): Origin {
  return {
    read: async (_key, { signal, range }) => {
      signal.throwIfAborted();
      const { first, last } = clampRange(range, bytes.length);
      return {
        sizeBytes: bytes.length,
        etag: 'trial',
        lastModified: undefined,
        storedContentType: undefined,
        body: Readable.from([bytes.subarray(first, last + 1)], { objectMode: false }),
      };
    },
  };
}
